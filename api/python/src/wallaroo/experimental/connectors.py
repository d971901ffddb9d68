"""A connector that sends the messages of several sources, each at least once. Sources are files, or your classes."""

import hashlib
import time
from abc import ABC, abstractmethod
from collections import deque
from typing import Any

from wallaroo.experimental.at_least_once import AtLeastOnceSourceConnector, Stream


class BaseIter(ABC):
    """An iterator of messages; subclasses define only `__next__`.

    Source: Wallaroo, unreleased.
    """

    def __iter__(self) -> "BaseIter":
        return self

    @abstractmethod
    def __next__(self) -> Any:
        """Return the next message.

        Raises:
            StopIteration: There are no more messages.
        """


class BaseSource(BaseIter):
    """A source of messages for a connector. It can be read again from any earlier position (point of reference).

    `__next__` returns pairs of payload and point of reference. Points of reference grow from message to message, and
    `reset` continues after one of them. A key (bytes) and a time in nanoseconds may follow in the tuple. A payload of
    None means that no message is available now.

    Attributes:
        name: Name of the stream, unique in the application; str, or bytes in UTF-8.
        key: Key of messages that `__next__` returns without a key.

    Example:
        >>> class Letters(BaseSource):
        ...     name, at = "letters", 0
        ...
        ...     def __next__(self):
        ...         if self.at == 3:
        ...             raise StopIteration
        ...         self.at += 1
        ...         return b"abc"[self.at - 1 : self.at], self.at
        ...
        ...     def reset(self, pos=0):
        ...         self.at = pos
        ...
        ...     def point_of_ref(self):
        ...         return self.at
        >>> letters = Letters()
        >>> next(letters), next(letters)
        ((b'a', 1), (b'b', 2))
        >>> letters.reset(1)  # the application has processed the first message only
        >>> next(letters), letters.point_of_ref()
        ((b'b', 2), 2)

    Source: Wallaroo, unreleased.
    """

    name: str | bytes
    key: bytes = b""

    @abstractmethod
    def reset(self, pos: int = 0) -> None:
        """Continue with the first message after a point of reference."""

    @abstractmethod
    def point_of_ref(self) -> int:
        """Return the point of reference of the last returned message, or 0 before the first one."""

    def wallaroo_acked(self, point_of_ref: int) -> None:
        """Called when all messages up to a point of reference have been processed. Does nothing by default."""


class FramedFileReader(BaseSource):
    r"""A source of messages in a file. Before each message is its length, 4 bytes, big-endian.

    Points of reference are offsets in bytes. An incomplete message at the end of the file is ignored.

    Args:
        filename: Name of the file, and of the stream.

    Raises:
        OSError: The file cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"\0\0\0\4ding\0\0\0\4dong")
        ...     file.flush()
        ...     reader = FramedFileReader(file.name)
        >>> list(reader)
        [(b'ding', 8), (b'dong', 16)]
        >>> reader.reset(8)
        >>> next(reader)
        (b'dong', 16)
        >>> reader.close()

    Source: Wallaroo, unreleased.
    """

    def __init__(self, filename: str) -> None:
        self.name = filename
        self._file = open(filename, "rb")  # noqa: SIM115  it is read as long as the source lives
        self._position = 0

    def __next__(self) -> tuple[Any, int]:
        header = self._file.read(4)
        size = int.from_bytes(header, "big")
        payload = self._file.read(size) if len(header) == 4 else b""
        if len(header) < 4 or len(payload) < size:
            raise StopIteration
        self._position += 4 + size
        return payload, self._position

    def reset(self, pos: int = 0) -> None:
        """Continue at an offset."""
        self._file.seek(pos)
        self._position = pos

    def point_of_ref(self) -> int:
        """Return the offset after the last message."""
        return self._position

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ThrottledFileReader(FramedFileReader):
    r"""A `FramedFileReader` with limits for the rate and for unacknowledged messages.

    Args:
        filename: Name of the file, and of the stream.
        rate: Largest number of messages per second; 0 means no limit.
        most_unacknowledged: Largest number of messages without an acknowledgement; 0 means no limit.

    Raises:
        OSError: The file cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b"\0\0\0\4ding\0\0\0\4dong")
        ...     file.flush()
        ...     reader = ThrottledFileReader(file.name, most_unacknowledged=1)
        >>> next(reader), next(reader)  # None: nothing now
        ((b'ding', 8), (None, 8))
        >>> reader.wallaroo_acked(8)
        >>> next(reader)
        (b'dong', 16)
        >>> reader.close()

    Source: Wallaroo, unreleased.
    """

    def __init__(self, filename: str, rate: float = 0, most_unacknowledged: int = 0) -> None:
        super().__init__(filename)
        self._interval, self._most = 1 / rate if rate else 0.0, most_unacknowledged
        self._next_at = 0.0
        self._unacknowledged: deque[int] = deque()

    def __next__(self) -> tuple[Any, int]:
        now = time.monotonic()
        if now < self._next_at or (self._most and len(self._unacknowledged) >= self._most):
            return None, self._position
        payload, point = super().__next__()
        self._next_at = max(self._next_at, now - self._interval) + self._interval
        self._unacknowledged.append(point)
        return payload, point

    def reset(self, pos: int = 0) -> None:
        """Continue at an offset. Messages after it are returned again."""
        super().reset(pos)
        self._unacknowledged.clear()

    def wallaroo_acked(self, point_of_ref: int) -> None:
        """Note that messages up to an offset are acknowledged, so that `__next__` may return further messages."""
        while self._unacknowledged and self._unacknowledged[0] <= point_of_ref:
            self._unacknowledged.popleft()


class MultiSourceConnector(AtLeastOnceSourceConnector):
    """Sends the messages of several sources in turn, until all sources have ended and all messages are acknowledged.

    Parameters are those of `AtLeastOnceSourceConnector`. Sources are added before `start`.

    Example:
        >>> import tempfile
        >>> connector = MultiSourceConnector("0.0.1", "word", "tower", "1", "127.0.0.1", 7100)
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     bells = FramedFileReader(file.name)
        >>> stream = connector.add_source(bells)  # then `connector.start()`
        >>> stream.name == bells.name, stream.id == connector.get_id(bells.name.encode())
        (True, True)
        >>> connector.is_finished(), connector.remove_source(bells), connector.is_finished()
        (False, None, True)
        >>> bells.close()

    Source: Wallaroo, unreleased.
    """

    def __init__(self, *args: Any, **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self._sources: dict[int, BaseSource] = {}
        self._turn: deque[int] = deque()
        self._ended: set[int] = set()

    def add_source(self, source: BaseSource) -> Stream:
        """Add a source, and return its stream. The stream's id is computed from the source's name.

        So after a restart of the connector each source continues at its last point, even if other sources have changed.

        Raises:
            ValueError: The connector has a source with this name already.
        """
        name = source.name.decode() if isinstance(source.name, bytes) else source.name
        stream = Stream(self.get_id(name.encode()), name, source.point_of_ref())
        if stream.id in self._sources:
            msg = f"there is a source {name!r} already"
            raise ValueError(msg)
        self._sources[stream.id] = source
        self._turn.append(stream.id)
        self.add_stream(stream)
        return stream

    @staticmethod
    def get_id(bs: bytes) -> int:
        """Return the id of a stream, which is computed from the stream's name."""
        return int.from_bytes(hashlib.sha256(bs).digest()[:8], "big")

    def remove_source(self, source: BaseSource) -> None:
        """Remove a source: end its stream, and send no more of its messages."""
        for number in [number for number, each in self._sources.items() if each is source]:
            del self._sources[number]
            self._turn.remove(number)
            self._ended.discard(number)
            self.remove_stream(self._streams[number])

    def is_finished(self) -> bool:
        """Return whether all sources have ended and all messages are acknowledged."""
        return not self._sources

    def send_next(self) -> bool:
        """Send a message of the next source that has a message. Return False if no source has a message."""
        for _ in range(len(self._turn)):
            self._turn.rotate(-1)
            number = self._turn[-1]
            if self._streams[number].is_open and number not in self._ended and self._send_of(number):
                return True
        return False

    def _send_of(self, number: int) -> bool:
        source = self._sources[number]
        try:
            payload, point, *more = next(source)
        except StopIteration:
            self._ended.add(number)
            self._finish(self._streams[number])
            return False
        if payload is None:
            return False
        self.write(self._streams[number], point, payload, *(more or (source.key,)))
        return True

    def stream_opened(self, stream: Stream) -> None:
        """Continue the stream's source after the point of reference that the application sent."""
        self._ended.discard(stream.id)
        self._sources[stream.id].reset(stream.point_of_reference)

    def stream_acked(self, stream: Stream) -> None:
        """Notify the stream's source. If the source has ended and all is acknowledged, end the stream."""
        self._sources[stream.id].wallaroo_acked(stream.point_of_reference)
        self._finish(stream)

    def _finish(self, stream: Stream) -> None:
        source = self._sources[stream.id]
        if stream.id in self._ended and stream.point_of_reference >= source.point_of_ref():
            self.remove_source(source)
