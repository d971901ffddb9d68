"""A sink connector that stores each message exactly once, by two-phase commit with the application."""

import contextlib
import select
import socket
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from threading import Event

from wallaroo.experimental import protocol, transaction
from wallaroo.experimental.protocol import PROTOCOL_VERSION, ProtocolError, ReceivedFrame
from wallaroo.experimental.script import SinkConnector, UnexpectedSocketError
from wallaroo.experimental.transaction import Order

RECEIVE_BYTES = 1 << 20
LOOK_SECONDS = 0.2
CREDITS = 1000  # the protocol wants a number here; applications ignore it


class TransactionalTarget(ABC):
    """The store of a `TransactionalSinkConnector`: a database, files, or another store that can prepare and commit.

    `sender` identifies the output of one sink of an application. Each sender has separate offsets. The effects of
    `prepare` and `commit` must be durable before the methods return. Transactions are prepared one at a time.

    Example:
        >>> class Rows(TransactionalTarget):  # a real one writes to disk before it returns
        ...     def __init__(self):
        ...         self.rows, self.ends, self.waiting = [], {}, {}
        ...
        ...     def committed(self, sender):
        ...         return self.ends.get(sender, 0)
        ...
        ...     def prepared(self, sender):
        ...         return {name: end for name, (end, _) in self.waiting.get(sender, {}).items()}
        ...
        ...     def prepare(self, sender, name, end, messages):
        ...         self.waiting.setdefault(sender, {})[name] = end, messages
        ...         return True
        ...
        ...     def commit(self, sender, name):
        ...         self.ends[sender], messages = self.waiting[sender].pop(name)
        ...         self.rows += messages
        ...
        ...     def abort(self, sender, name):
        ...         del self.waiting[sender][name]
        >>> target = Rows()
        >>> target.prepare("tower 1", "t1", 4, [b"ring"]), target.rows, target.prepared("tower 1")
        (True, [], {'t1': 4})
        >>> target.commit("tower 1", "t1")
        >>> target.rows, target.prepared("tower 1"), target.committed("tower 1")
        ([b'ring'], {}, 4)
    """

    @abstractmethod
    def committed(self, sender: str) -> int:
        """Return the offset after the last committed message, or 0 if no message is committed."""

    @abstractmethod
    def prepared(self, sender: str) -> Mapping[str, int]:
        """Return the end offset of each prepared transaction that is neither committed nor aborted, by transaction."""

    @abstractmethod
    def prepare(self, sender: str, name: str, end: int, messages: Sequence[bytes]) -> bool:
        """Store messages durably, so that a later `commit` cannot fail. Readers must not see them before the commit.

        Args:
            sender: The sender of the messages.
            name: Name of the transaction.
            end: Offset after the last message.
            messages: Results of the sink's encoder.

        Returns:
            Whether the transaction can be committed. If not, the application sends the messages again.
        """

    @abstractmethod
    def commit(self, sender: str, name: str) -> None:
        """Make the messages of a prepared transaction visible, and set the committed offset to its end offset."""

    @abstractmethod
    def abort(self, sender: str, name: str) -> None:
        """Remove a prepared transaction with its messages."""


class TransactionalSinkConnector(SinkConnector):
    """Stores the output of an application in a `TransactionalTarget`, each message exactly once.

    The application's sink is a `SinkConnectorConfig` with a cookie. Parameters, attributes and errors are as for
    `SinkConnector`.

    Example:
        >>> import pathlib, tempfile
        >>> directory = tempfile.TemporaryDirectory()
        >>> program = pathlib.Path(directory.name, "gates.py")
        >>> _ = program.write_text('''
        ... import wallaroo
        ... from wallaroo.experimental import SinkConnectorConfig, octet_message_decoder, octet_message_encoder
        ...
        ... def application_setup(args):
        ...     encode, decode = octet_message_encoder(str.encode), octet_message_decoder(bytes.decode)
        ...     source = wallaroo.TCPSourceConfig("127.0.0.1", 7010, wallaroo.Decoder(bytes.decode, 4, ">I"))
        ...     ab = wallaroo.ApplicationBuilder("gates").new_pipeline("gates", source)
        ...     return ab.to_sink(SinkConnectorConfig("out", encode, decode, 7200, cookie="word")).build()
        ... ''')
        >>> args = ["--application-module", str(program), "--connector", "out", "--out-file", "gates.db"]
        >>> out = TransactionalSinkConnector(args, required_params=["file"])
        >>> out.config.cookie, out.params.file
        ('word', 'gates.db')
        >>> address = out.listen(port=0)  # then `out.serve(target)`, with a `TransactionalTarget`
        >>> out.close()
        >>> directory.cleanup()

    Source: Wallaroo, unreleased: the sinks of its connector protocol.
    """

    def serve(self, target: TransactionalTarget, stop: Event | None = None) -> None:
        """Receive output until `stop` is set. Call `listen` first. Applications may connect any number of times.

        Raises:
            UnexpectedSocketError: The listening socket fails, or `listen` was not called.
            Exception: An error of the target. The application connects again to the next process.
        """
        listener = self._open()
        while stop is None or not stop.is_set():
            try:
                if not select.select([listener], [], [], LOOK_SECONDS)[0]:
                    continue
                connection, _ = listener.accept()
            except OSError as err:
                raise UnexpectedSocketError(str(err)) from err
            with connection:
                _Session(connection, self.config.cookie, target).run(stop or Event())


class _Gone(Exception):
    """The connection has ended. It is no `OSError`, because targets raise these, e.g. for a full disk."""


class _Session:
    """One connection of an application to the sink: its frames, and the answers to them."""

    def __init__(self, connection: socket.socket, cookie: str, target: TransactionalTarget) -> None:
        self._socket, self._cookie, self._target = connection, cookie, target
        self._received = bytearray()
        self._sender = ""
        self._offset = 0
        self._messages: list[bytes] = []
        self._is_open = False

    def run(self, stop: Event) -> None:
        """Answer frames until the connection ends, or the application violates the protocol."""
        try:
            while not stop.is_set():
                if not select.select([self._socket], [], [], LOOK_SECONDS)[0]:
                    continue
                self._received += self._receive()
                for frame in protocol.cut(self._received):
                    self._take(frame)
        except ProtocolError as err:
            self._refuse(str(err))
        except _Gone:
            return  # the application connects again

    def _refuse(self, reason: str) -> None:
        with contextlib.suppress(_Gone):
            self._send(protocol.error(reason))

    def _receive(self) -> bytes:
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except OSError as err:
            raise _Gone from err
        if not data:
            raise _Gone
        return data

    def _send(self, frame: bytes) -> None:
        try:
            self._socket.sendall(frame)
        except OSError as err:
            raise _Gone from err

    def _take(self, frame: ReceivedFrame) -> None:
        if frame.tag == protocol.HELLO and not self._sender:
            self._greet(*frame.texts)
        elif frame.tag == protocol.ERROR:
            msg = f"the application says: {frame.error}"
            raise ProtocolError(msg)
        elif not self._sender:
            msg = "it did not begin with HELLO"
            raise ProtocolError(msg)
        elif frame.tag == protocol.NOTIFY:
            self._open(frame.positions[0][0])
        elif frame.tag == protocol.MESSAGE and frame.positions[0][0] == transaction.CONTROL:
            self._obey(transaction.read(frame.payload))
        elif frame.tag == protocol.MESSAGE and self._is_open:
            self._add(frame)
        elif frame.tag != protocol.EOS_MESSAGE:
            msg = f"a frame with tag {frame.tag}"
            raise ProtocolError(msg)

    def _greet(self, version: str, cookie: str, program: str, instance: str) -> None:
        if version != PROTOCOL_VERSION or cookie != self._cookie:
            what = "cookie" if version == PROTOCOL_VERSION else "version"
            msg = f"the {what} is not the sink's"
            raise ProtocolError(msg)
        self._sender = f"{program} {instance}"
        self._send(protocol.ok(CREDITS))

    def _open(self, stream: int) -> None:
        """Accept the output stream from the committed offset on. Refuse it until prepared transactions have ended."""
        accepts = stream == transaction.OUTPUT and not self._target.prepared(self._sender)
        self._is_open, self._offset = accepts, self._target.committed(self._sender)
        self._messages.clear()
        self._send(protocol.notify_ack(stream, self._offset, is_accepted=accepts))

    def _add(self, frame: ReceivedFrame) -> None:
        ((stream, offset),) = frame.positions
        if (stream, offset) != (transaction.OUTPUT, self._offset):
            msg = f"a message of stream {stream} at {offset}; expected stream {transaction.OUTPUT} at {self._offset}"
            raise ProtocolError(msg)
        self._messages.append(frame.payload)
        self._offset += len(frame.payload)

    def _obey(self, order: Order) -> None:
        prepared = self._target.prepared(self._sender)
        if order.tag == transaction.LIST_UNCOMMITTED:
            self._say(Order(transaction.REPLY_UNCOMMITTED, tuple(prepared), number=order.number))
        elif order.tag == transaction.PHASE_1:
            self._prepare(order)
        elif order.tag == transaction.PHASE_2:
            (name,) = order.ids
            if name in prepared:
                (self._target.commit if order.is_commit else self._target.abort)(self._sender, name)
            if not order.is_commit:
                self._is_open = False  # the application will announce the stream again
        else:
            msg = f"an order with tag {order.tag}"
            raise ProtocolError(msg)

    def _prepare(self, order: Order) -> None:
        (name,) = order.ids
        begin = self._offset - sum(map(len, self._messages))
        is_whole = order.ranges == ((transaction.OUTPUT, begin, self._offset),)
        is_ready = self._is_open and is_whole
        if is_ready:
            is_ready = self._target.prepare(self._sender, name, self._offset, self._messages)
        self._messages = []
        self._say(Order(transaction.REPLY, (name,), is_commit=is_ready))

    def _say(self, order: Order) -> None:
        self._send(transaction.framed(order))
