"""What was sent over a connection, and how much of it the peer's TCP has acknowledged."""

from collections import deque
from collections.abc import Iterator

from wallaroo.fault import reach
from wallaroo_runtime.egress.config import SinkConfig
from wallaroo_runtime.egress.connection import Connection
from wallaroo_runtime.egress.feed import Piece
from wallaroo_runtime.storage.outbox.position import Delivered


class Stream:
    """Sends pieces in order, and remembers those that the peer's TCP has not acknowledged.

    Args:
        config: Where to connect to.
        wake: A descriptor that becomes readable when waiting must end.

    Raises:
        OSError: There is no connection.
    """

    def __init__(self, config: SinkConfig, wake: int) -> None:
        self._connection = Connection(config, wake)
        self._rest = memoryview(b"")
        self._queued = self._sent = self._acknowledged = 0
        self._pieces: deque[tuple[int, Piece]] = deque()

    @property
    def peer_is_open(self) -> bool:
        """Whether the peer has not closed its side."""
        return self._connection.peer_is_open

    @property
    def is_idle(self) -> bool:
        """Whether everything is acknowledged."""
        return not self._pieces

    @property
    def is_sending(self) -> bool:
        """Whether the last piece is not handed over wholly."""
        return bool(self._rest)

    def put(self, piece: Piece) -> None:
        """Take the next piece; only when not `is_sending`."""
        self._pieces.append((self._queued, piece))
        self._queued += len(piece.data)
        self._rest = memoryview(piece.data)
        self.send()

    def send(self) -> None:
        """Hand over as much as the system takes now.

        Raises:
            OSError: The connection broke.
        """
        while self._rest:
            reach("egress.before_send")
            count = self._connection.send(self._rest)
            if not count:
                return
            reach("egress.after_send")
            self._sent += count
            self._rest = self._rest[count:]

    def acknowledged(self) -> Iterator[Piece]:
        """Yield the pieces that have been acknowledged wholly since the last call."""
        # What the system still holds is unsent or not acknowledged.
        self._acknowledged = self._sent - self._connection.outstanding()
        while self._pieces:
            start, piece = self._pieces[0]
            if start + len(piece.data) > self._acknowledged:
                return
            self._pieces.popleft()
            yield piece

    def partly(self) -> Delivered | None:
        """Return the position of what is acknowledged of the first piece that is not so wholly; None without one."""
        if not self._pieces:
            return None
        start, piece = self._pieces[0]
        return piece.position(max(0, self._acknowledged - start))

    def wait(self, timeout_s: float) -> None:
        """Wait until it can send on, the peer does something, or `wake` is readable.

        Raises:
            OSError: The connection broke.
        """
        self._connection.wait(timeout_s, is_sending=self.is_sending)

    def finish(self) -> None:
        """Tell the peer that nothing more comes."""
        self._connection.finish()

    @property
    def is_finished(self) -> bool:
        """Whether the peer has acknowledged the end, too."""
        return self._connection.outstanding() == 0

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
