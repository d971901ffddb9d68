"""A source connector with acknowledgements: after a failure of either side it sends unacknowledged messages again."""

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from wallaroo.experimental import protocol
from wallaroo.experimental.protocol import ProtocolError, ReceivedFrame
from wallaroo.experimental.tcp import connected

RECEIVE_BYTES = 65536
POLL_SECONDS = 0.05
CONNECT_SECONDS = 10.0
RETRY_SECONDS = 0.2


@dataclass(slots=True)
class Stream:
    """A stream of messages that a connector sends, with the position up to which the application has processed them.

    Attributes:
        id: Number of the stream, below 2**64. It must be the same after each start of the connector.
        name: Name of the stream.
        point_of_reference: Position up to which all messages have been processed, as far as the connector knows.
        is_open: Whether the application accepts messages of the stream now.

    Example:
        >>> Stream(1, "bell")
        Stream(id=1, name='bell', point_of_reference=0, is_open=False)

    Source: Wallaroo, unreleased.
    """

    id: int
    name: str
    point_of_reference: int = 0
    is_open: bool = False


class AtLeastOnceSourceConnector(threading.Thread):
    """Speaks the connector protocol with an application; subclasses provide the messages to send.

    The connector connects, announces its streams, and sends as many messages as it has credits. If the connection
    breaks, or the application requests it, the connector connects again, and the application sends the point where each
    stream must continue. An error of a subclass ends the connector. `start` runs the connector in a thread, `join`
    waits until the thread ends, and `failure` is the last error.

    Args:
        version: Version of the protocol, "0.0.1".
        cookie: The cookie of the source's config.
        program_name: Name of this program.
        instance_name: Distinguishes programs with the same name.
        host: Host name or address at which the application listens.
        port: Port as text or number.
        delay: Seconds to wait after each message.

    Attributes:
        credits: How many messages the connector may send now.
        failure: The last error; None after a successful connection.

    Example:
        >>> import socket, struct
        >>> class Bell(AtLeastOnceSourceConnector):
        ...     stream, is_due = Stream(1, "bell"), False
        ...
        ...     def stream_opened(self, stream):  # also after a failure; what was processed is not sent again
        ...         self.is_due = stream.point_of_reference == 0
        ...
        ...     def send_next(self):
        ...         was_due, self.is_due = self.is_due, False
        ...         if was_due:
        ...             self.write(self.stream, 1, b"ring")
        ...         return was_due
        ...
        ...     def is_finished(self):
        ...         return self.stream.point_of_reference == 1
        >>> with socket.create_server(("127.0.0.1", 0)) as listener:
        ...     listener.settimeout(10)
        ...     bell = Bell("0.0.1", "word", "tower", "1", *listener.getsockname())
        ...     bell.add_stream(bell.stream)
        ...     bell.start()
        ...     application, _ = listener.accept()
        ...     application.settimeout(10)
        >>> with application, application.makefile("rb") as received:  # what the application says and gets
        ...     application.sendall(protocol.ok(10) + protocol.notify_ack(1, 0, is_accepted=True))
        ...     received.read(90)[-4:]  # HELLO, NOTIFY and MESSAGE
        ...     application.sendall(protocol.framed(protocol.ACK, struct.pack(">IIQQ", 1, 1, 1, 1)))
        ...     bell.wait_until_finished(10)
        b'ring'

    Source: Wallaroo, unreleased.
    """

    def __init__(
        self,
        version: str,
        cookie: str,
        program_name: str,
        instance_name: str,
        host: str,
        port: str | int,
        delay: float = 0,
    ) -> None:
        super().__init__(name=f"connector {instance_name}", daemon=True)
        self._greeting = protocol.hello(version, cookie, program_name, instance_name)
        self._address, self._delay = (host, int(port)), delay
        self._streams: dict[int, Stream] = {}
        self._socket: socket.socket | None = None
        self._received = bytearray()
        self._stopped = threading.Event()
        self._is_greeted = self._is_broken = False
        self.credits = 0
        self.failure: Exception | None = None

    def connect(self) -> None:
        """Connect to the application.

        Raises:
            OSError: The application cannot be reached.
        """
        self._socket = connected(*self._address, CONNECT_SECONDS)
        self._received.clear()
        self.credits, self._is_greeted = 0, False
        self._socket.sendall(self._greeting)

    def stop(self) -> None:
        """End the connector soon, without waiting for acknowledgements."""
        self._stopped.set()

    def add_stream(self, stream: Stream) -> None:
        """Announce a stream to the application. `stream_opened` is called when the application accepts messages."""
        self._streams[stream.id] = stream
        self.stream_added(stream)
        if self._is_greeted:
            self._send(protocol.notify(stream.id, stream.name, stream.point_of_reference))

    def remove_stream(self, stream: Stream) -> None:
        """Remove a stream, and report its end to the application."""
        if self._streams.pop(stream.id, None) is not None and stream.is_open:
            self._send(protocol.end_of_stream(stream.id))
            stream.is_open = False
            self.stream_closed(stream)

    def write(self, stream: Stream, message_id: int, payload: bytes, key: bytes = b"", event_time_ns: int = 0) -> None:
        """Send a message, which uses one credit; `credits` must be above 0."""
        self._send(protocol.message(stream.id, message_id, event_time_ns, key, payload))
        self.credits -= 1
        if self._delay:
            self._stopped.wait(self._delay)

    def run(self) -> None:
        """Send messages until `is_finished` or `stop`. Connect again when the connection breaks.

        Raises:
            Exception: An error of the subclass, e.g. an `OSError` of `send_next` about a file.
        """
        try:
            while not self._stopped.is_set() and not self.is_finished():
                self._step_or_reconnect()
        except ProtocolError as err:
            self.failure = err
        except Exception as err:
            self.failure = err
            raise
        finally:
            self._close()

    def _step_or_reconnect(self) -> None:
        try:
            self._step()
        except OSError as err:
            if not self._is_broken:
                raise
            self.failure = err
            self._lost()

    def _step(self) -> None:
        if self._socket is None:
            with self._connection():
                self.connect()
            self.failure, self._is_broken = None, False
        can_send = self.credits > 0 and self.send_next()
        assert self._socket is not None
        if select.select([self._socket], [], [], 0 if can_send else POLL_SECONDS)[0]:
            self._receive(self._socket)

    @contextmanager
    def _connection(self) -> Iterator[None]:
        """If an error in this context breaks the connection, note this, so that the connector connects again."""
        try:
            yield
        except OSError:
            self._is_broken = True
            raise

    def _receive(self, connection: socket.socket) -> None:
        with self._connection():
            data = connection.recv(RECEIVE_BYTES)
            if not data:
                msg = "the application closed the connection"
                raise ConnectionError(msg)
        self._received += data
        for frame in protocol.cut(self._received):
            self._take(frame)

    def _take(self, frame: ReceivedFrame) -> None:
        if frame.tag == protocol.ERROR:
            self.handle_error(frame.error)
        elif frame.tag == protocol.RESTART:
            with self._connection():
                self.handle_restart()
        elif frame.tag == protocol.OK:
            self.credits, self._is_greeted = frame.credits, True
            for stream in self._streams.values():
                self._send(protocol.notify(stream.id, stream.name, stream.point_of_reference))
        elif frame.tag == protocol.NOTIFY_ACK:
            self._opened(frame)
        else:
            self.credits += frame.credits
            for number, point in frame.positions:
                if (acked := self._streams.get(number)) is not None:
                    acked.point_of_reference = point
                    self.stream_acked(acked)

    def _opened(self, frame: ReceivedFrame) -> None:
        ((number, point),) = frame.positions
        stream = self._streams.get(number)
        if stream is None:
            return
        if not frame.is_accepted:
            msg = f'the application refused stream {number} "{stream.name}"; another connector may send it'
            raise ProtocolError(msg)
        stream.is_open, stream.point_of_reference = True, point
        self.stream_opened(stream)

    def _send(self, frame: bytes) -> None:
        with self._connection():
            if self._socket is None:
                msg = "there is no connection"
                raise ConnectionError(msg)
            self._socket.sendall(frame)

    def _lost(self) -> None:
        self._close()
        for stream in self._streams.values():
            if stream.is_open:
                stream.is_open = False
                self.stream_closed(stream)
        self._stopped.wait(RETRY_SECONDS)

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def wait_until_finished(self, seconds: float) -> None:
        """Wait for the end of the connector.

        Raises:
            TimeoutError: The connector did not end in time.
        """
        self.join(seconds)
        if self.is_alive():
            msg = f"the connector did not finish within {seconds} s; last failure: {self.failure}"
            raise TimeoutError(msg)

    def is_finished(self) -> bool:
        """Return whether the connector has nothing more to send, so that its thread ends. The default is False."""
        return False

    def send_next(self) -> bool:
        """Write the next message and return True. Return False if there is none. Called if `credits` is above 0."""
        return False

    def stream_added(self, stream: Stream) -> None:
        """Called by `add_stream` first, with a new stream of the connector. Does nothing by default."""

    def stream_opened(self, stream: Stream) -> None:
        """Called when the application accepts messages of a stream: those after `stream.point_of_reference`."""

    def stream_closed(self, stream: Stream) -> None:
        """Called when the application accepts no more messages of a stream, until the stream is opened again."""

    def stream_acked(self, stream: Stream) -> None:
        """Called when all messages of a stream up to `stream.point_of_reference` have been processed."""

    def handle_error(self, error: str) -> None:
        """Called when the application refuses this connector. By default this ends the connector.

        Raises:
            ProtocolError: By default.
        """
        raise ProtocolError(error)

    def handle_restart(self) -> None:
        """Called when the application was restarted. By default the connector connects again.

        Raises:
            ConnectionError: By default; it makes `run` connect again.
        """
        msg = "the application was restarted"
        raise ConnectionError(msg)
