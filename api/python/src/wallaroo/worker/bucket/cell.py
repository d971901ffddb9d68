"""Cells: each holds the state of one key, as an object or as bytes, and its timers and times if there are any."""

import struct
from typing import Any

from wallaroo.message.frame import FrameError
from wallaroo.worker.value.value import StateReadError, ValueCodec

# Encoding of the log entries of timed states: encoding of the state, time, silent, number of timers. Then come the
# timers: length of the name, the name, and the due time. Then comes the state.
TIMED = 34
NEVER = -(1 << 63)  # no time
ASLEEP = NEVER + 1  # the time of a key without a part that the time to live ends, until its next message
_HEAD, _LENGTH, _DUE = struct.Struct(">BqqH"), struct.Struct(">H"), struct.Struct(">q")


class NotRead:
    """Takes the place of a state that has come as bytes from the log, and that no message has needed yet."""


UNREAD: Any = NotRead()


class Cell:
    """Holds the state of one key, as an object, or as the bytes of the state log until a message needs it.

    Attributes:
        live: The state, or `UNREAD` if no message has needed it since it came from the log.
        data: The serialized state while it is unread.
        size: Size of the serialized state when it was last written or read; below 0 if it was never written.
    """

    __slots__ = ("data", "live", "size")

    def __init__(self, live: Any, data: bytes = b"", size: int = -1) -> None:
        self.live, self.data, self.size = live, data, size


class TimedCell(Cell):
    """Holds the state of one key of a step that has timers or a time to live.

    Attributes:
        time: Latest time of its messages; NEVER if it had no message since the step is timed; or ASLEEP.
        silent: With event times, the time of the first tick after its last message; NEVER if there was no tick.
        timers: Due time of each timer, by name; None without timers.
        queued: Time under which the key is in the heap of its table; None if the key is not in the heap.
    """

    __slots__ = ("queued", "silent", "time", "timers")

    def __init__(self, live: Any, data: bytes = b"", size: int = -1) -> None:
        super().__init__(live, data, size)
        self.time = self.silent = NEVER
        self.timers: dict[str, int] | None = None
        self.queued: int | None = None

    def head(self, encoding: int) -> bytes:
        """Return the bytes that precede the state in a log entry."""
        timers = self.timers or {}
        parts = [_HEAD.pack(encoding, self.time, self.silent, len(timers))]
        for name, due in timers.items():
            parts += (_LENGTH.pack(len(data := name.encode())), data, _DUE.pack(due))
        return b"".join(parts)


def read_timed(data: bytes) -> tuple[TimedCell, int, bytes]:
    """Split a log entry of a timed state: return a cell with timers and times, and the state's encoding and bytes.

    Raises:
        FrameError: The bytes are damaged.
    """
    cell, timers = TimedCell(UNREAD), {}
    try:
        encoding, cell.time, cell.silent, count = _HEAD.unpack_from(data)
        at = _HEAD.size
        for _ in range(count):
            end = at + _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
            timers[str(data[at + _LENGTH.size : end], "utf-8")] = _DUE.unpack_from(data, end)[0]
            at = end + _DUE.size
    except (struct.error, UnicodeDecodeError) as err:
        msg = f"an entry of a state log has no timing; {err}"
        raise FrameError(msg) from err
    cell.timers = timers or None
    return cell, encoding, data[at:]


class CellTable(dict[bytes, Cell]):
    """The states of one state name in a bucket: the cells of all keys.

    Attributes:
        timing: The `Timing` of the keys; None if the states are not timed.
        written: Bytes of all states as they were last written or read.
        unread: Bytes of the unread states.
    """

    __slots__ = ("codec", "timing", "unread", "written")

    def __init__(self, codec: ValueCodec) -> None:
        super().__init__()
        self.codec = codec
        self.timing: object | None = None
        self.written = self.unread = 0

    @property
    def encoding(self) -> int:
        """The encoding of the states in the state log."""
        return self.codec.encoding

    def encode(self, live: Any) -> bytes:
        """Return a state as bytes."""
        return self.codec.dump_state(live)

    def encode_all(self, lives: list[Any]) -> list[bytes]:
        """Return states as bytes."""
        return self.codec.dump_states(lives)

    def _decode(self, key: bytes, data: bytes) -> Any:
        return self.codec.load(data)

    def load(self, key: bytes, data: bytes) -> Any:
        """Return a state from its bytes.

        Raises:
            StateReadError: The bytes cannot be read.
        """
        try:
            return self._decode(key, data)
        except BaseException as err:
            raise StateReadError(key, err) from err

    def wake(self, key: bytes, cell: Cell) -> None:
        """Deserialize the state of a cell that so far has only the bytes from the log."""
        cell.live = self.load(key, cell.data)
        self.unread -= len(cell.data)
        cell.data = b""

    def remove(self, key: bytes) -> None:
        """Remove the state of a key, if it has one."""
        cell = self.pop(key, None)
        if cell is not None:
            self.written -= max(0, cell.size)
            self.unread -= len(cell.data)

    def add(self, key: bytes, live: Any) -> Cell:
        """Add a new state for a key."""
        cell = self[key] = (Cell if self.timing is None else TimedCell)(live)
        return cell
