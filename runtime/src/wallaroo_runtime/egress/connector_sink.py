"""Delivery to a program that speaks the connector protocol, in two-phase commits: SPECIFICATION.md, section 7."""

import os
import secrets
import select
import socket
import time
from collections.abc import Callable, Iterator

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.diagnostic.fault import reach
from wallaroo.experimental import protocol, transaction
from wallaroo.experimental.protocol import NEVER, PROTOCOL_VERSION, ProtocolError, ReceivedFrame
from wallaroo.experimental.tcp import connected
from wallaroo.experimental.transaction import OUTPUT, Order
from wallaroo_runtime.egress.feed import Feed, Piece
from wallaroo_runtime.egress.sink import IDLE_S, Sink
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.position import SinkPosition

CONNECT_S, ANSWER_S = 5.0, 60.0
TRANSACTION_BYTES = 4 * 1024 * 1024
RECEIVE_BYTES = 65536
PROGRAM = "wallaroo"


class Refused(ConnectionError):
    """The connector refuses output at the moment. The text of the error has the reason."""


class SinkConnection:
    """A connection to the connector of a sink, with the received frames of the connector protocol.

    Args:
        wake: A descriptor that becomes readable when waiting must end.
        is_over: Returns whether waiting for answers must end.

    Raises:
        OSError: The sink cannot be connected to.
    """

    def __init__(self, config: pb.Sink, wake: int, is_over: Callable[[], bool]) -> None:
        self._socket = connected(config.host, config.tcp_port, CONNECT_S)
        self._socket.settimeout(ANSWER_S)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wake, self._is_over = wake, is_over
        self._received = bytearray()
        self._frames: list[ReceivedFrame] = []

    def send(self, data: bytes) -> None:
        """Send frames. Wait while the sink does not read.

        Raises:
            OSError: The connection broke, or the sink did not read for too long.
        """
        self._socket.sendall(data)

    def answer(self, tag: int) -> ReceivedFrame:
        """Wait for a frame with a tag (its kind). Skip acknowledgements, since only a commit moves the position.

        Raises:
            Refused: The sink refuses, sends another frame, or does not answer in time.
            OSError: The connection broke.
        """
        deadline = time.monotonic() + ANSWER_S
        while True:
            while self._frames:
                frame = self._frames.pop(0)
                if frame.tag == tag:
                    return frame
                self._check(frame)
            if time.monotonic() >= deadline:
                reason = f"no answer within {ANSWER_S:g} s"
                raise Refused(reason)
            self.wait(IDLE_S)
            if self._is_over():
                reason = "the egress ends"
                raise Refused(reason)

    def order(self, tag: int) -> Order:
        """Wait for an order (a message of two-phase commit) with this tag, in a frame from the sink.

        Raises:
            Refused: As for `answer`.
        """
        order = transaction.read(self.answer(protocol.MESSAGE).payload)
        if order.tag != tag:
            reason = f"an order with tag {order.tag}, not {tag}"
            raise Refused(reason)
        return order

    def wait(self, timeout_s: float) -> None:
        """Wait until the sink sends something, or another thread signals new output or the end of delivery.

        Raises:
            Refused: The sink has closed the connection.
            OSError: The connection broke.
        """
        ready, _, _ = select.select([self._socket.fileno(), self._wake], [], [], timeout_s)
        if self._wake in ready:
            os.read(self._wake, 8)
        if self._socket.fileno() in ready:
            data = self._socket.recv(RECEIVE_BYTES)
            if not data:
                reason = "it closed the connection"
                raise Refused(reason)
            self._received += data
            try:
                self._frames += protocol.cut(self._received)
            except ProtocolError as error:
                raise Refused(str(error)) from error

    def check(self) -> None:
        """Check frames that the sink has sent without a request: acknowledgements, errors, or a wish to connect again.

        Raises:
            Refused: The sink sent an error, or asks for a new connection.
        """
        while self._frames:
            self._check(self._frames.pop(0))

    @staticmethod
    def _check(frame: ReceivedFrame) -> None:
        if frame.tag == protocol.ERROR:
            raise Refused(frame.error)
        if frame.tag == protocol.RESTART:
            reason = "it asks for a new connection"
            raise Refused(reason)
        if frame.tag != protocol.ACK:
            reason = f"a frame with tag {frame.tag} that was not asked for"
            raise Refused(reason)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


class CommittingSink(Sink):
    """Delivers the output of one sink from the outbox in transactions: the connector has each message exactly once.

    A transaction that the sink has prepared is committed if it ends at or before the recorded position, else aborted.
    Parameters and attributes are those of `Sink`; `position` is the end of the last prepared transaction.
    """

    def _keep_connected(self) -> None:
        self._name_output(f"{self.config.name} {secrets.token_hex(8)}")
        self._refused_for = ""
        super()._keep_connected()

    def _connect(self) -> SinkConnection:
        return SinkConnection(self.config, self._wake, lambda: self._abandoned)

    def _is_lasting(self, before: SinkPosition) -> bool:
        # Without progress the wait grows: a sink that refuses at once must not be asked twenty times a second.
        return self.position != before

    def _use(self, stream: SinkConnection) -> bool:  # type: ignore[override]
        """Deliver over a connection. Return False if it breaks, and True if all is delivered or abandoned."""
        try:
            self._greet(stream)
            self._deliver_all(stream)
        except Refused as error:
            self.state = "connecting"
            if not self._abandoned and str(error) != self._refused_for:
                self._refused_for = str(error)
                self._say(Diagnostic.of("R693", sink=self.config.name, address=self.address, reason=error))
        except OSError as error:
            if error.filename is not None:
                raise  # the error is of a file, not of the connection
            self.state = "connecting"
        else:
            return True
        finally:
            stream.close()
        return self._abandoned

    def _greet(self, stream: SinkConnection) -> None:
        """Begin the protocol, commit or abort the sink's prepared transactions, and agree on the next position."""
        stream.send(protocol.hello(PROTOCOL_VERSION, self.config.cookie, PROGRAM, self.position.sender))
        stream.answer(protocol.OK)
        stream.send(transaction.framed(Order(transaction.LIST_UNCOMMITTED, number=1)))
        for name in stream.order(transaction.REPLY_UNCOMMITTED).ids:
            sender, _, messages = name.rpartition(":")
            is_commit = sender == self.position.sender and int(messages) <= self.position.messages
            stream.send(transaction.framed(Order(transaction.PHASE_2, (name,), is_commit=is_commit)))
        self._notify(stream)

    def _notify(self, stream: SinkConnection) -> None:
        at = self.position.total_bytes - self.position.base
        stream.send(protocol.notify(OUTPUT, self.config.name, at))
        frame = stream.answer(protocol.NOTIFY_ACK)
        ((_, point),) = frame.positions
        point = 0 if point == NEVER else point
        if not frame.is_accepted or point != at:
            reason = f"it has the output up to byte {point}, the outbox goes on at byte {at}"
            raise Refused(reason if frame.is_accepted else "it does not take the stream of output")
        self._refused_for = ""

    def _deliver_all(self, stream: SinkConnection) -> None:
        feed = Feed(self._directory, self.config.port, self.position)
        try:
            while not self._abandoned:
                pieces = self._send(stream, feed)
                if pieces:
                    self._commit(stream, pieces)
                elif self._draining:
                    return
                else:
                    stream.wait(IDLE_S)
                    stream.check()
        finally:
            feed.close()

    def _send(self, stream: SinkConnection, feed: Feed) -> list[Piece]:
        """Send waiting output for one transaction, and return it as pieces (messages of one frame each)."""
        pieces: list[Piece] = []
        size = 0
        while size < TRANSACTION_BYTES and (piece := feed.next()) is not None:
            reach("egress.before_send")
            stream.send(b"".join(self._messages(piece)))
            pieces.append(piece)
            size += len(piece.data)
        return pieces

    def _messages(self, piece: Piece) -> Iterator[bytes]:
        """Yield a frame of the connector protocol for each message; its id is its offset in the sink's output."""
        at, begin = 0, piece.before.total_bytes - self.position.base
        for length in piece.lengths:
            yield protocol.message(OUTPUT, begin + at, 0, b"", piece.data[at : at + length])
            at += length

    def _commit(self, stream: SinkConnection, pieces: list[Piece]) -> None:
        """Commit the sent pieces: the sink prepares them, this process records the position, the sink commits them.

        Raises:
            Refused: The sink did not prepare the pieces.
        """
        begin, end = self.position, pieces[-1].after
        if any(piece.lengths for piece in pieces):
            name = f"{self.position.sender}:{end.messages}"
            ranges = ((OUTPUT, begin.total_bytes - self.position.base, end.total_bytes - self.position.base),)
            stream.send(transaction.framed(Order(transaction.PHASE_1, (name,), ranges)))
            if not stream.order(transaction.REPLY).is_commit:
                stream.send(transaction.framed(Order(transaction.PHASE_2, (name,))))
                reason = f"it did not prepare {end.messages - begin.messages} messages"
                raise Refused(reason)
            reach("egress.prepared")
            self._take(pieces, end)
            reach("egress.decided")
            stream.send(transaction.framed(Order(transaction.PHASE_2, (name,), is_commit=True)))
        else:
            self._take(pieces, end)
