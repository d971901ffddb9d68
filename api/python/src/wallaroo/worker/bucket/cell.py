"""The state of one key, with timers and a time to live if its step has them."""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Any

from wallaroo.message.frame import FrameError
from wallaroo.message.timer import LAST_MS
from wallaroo.worker.value.value import StateReadError, ValueCodec

# Encoding of the log entries of timed states: encoding of the state, time, silent, number of timers. Then come the
# timers: length of "PORT, line break, NAME", this text, and the due time. Then comes the state. The port is that of the
# step, in five digits, so that these texts sort as steps and names. A step keeps its port when its path changes.
TIMED = 34
NEVER, FAR = -(1 << 63), 1 << 62  # no time; later than all times
ASLEEP = NEVER + 1  # the time of a key without a part that the time to live ends, until its next message
MOST_TIMERS = 10_000  # how many timers run when a key wakes, because each may set a timer that is due at once
_HEAD, _LENGTH, _DUE = struct.Struct(">BqqH"), struct.Struct(">H"), struct.Struct(">q")


class NotAsked:
    """Marks a state that no message has needed since it was read from the log."""


UNREAD: Any = NotAsked()


class Cell:
    """The state of one key.

    Attributes:
        live: The state, or `UNREAD` if no message has needed it since it came from the log.
        data: The serialized state while it is unread.
        size: Size of the serialized state when it was last written or read; below 0 if it was never written.
    """

    __slots__ = ("data", "live", "size")

    def __init__(self, live: Any, data: bytes = b"", size: int = -1) -> None:
        self.live, self.data, self.size = live, data, size


class TimedCell(Cell):
    """The state of one key of a timed step.

    Attributes:
        time: Latest time of its messages; NEVER if it had no message since the step is timed; or ASLEEP.
        silent: With event times, the time of the first tick after its last message; NEVER if there was no tick.
        timers: Due time of each timer, by port of its step, line break and name; None without timers.
        queued: Time under which the key is in the heap of its table; None if the key is not in the heap.
    """

    __slots__ = ("queued", "silent", "time", "timers")

    def __init__(self, live: Any, data: bytes = b"", size: int = -1) -> None:
        super().__init__(live, data, size)
        self.time = self.silent = NEVER
        self.timers: dict[bytes, int] | None = None
        self.queued: int | None = None

    def head(self, encoding: int) -> bytes:
        """Return the bytes that precede the state in a log entry."""
        timers = self.timers or {}
        parts = [_HEAD.pack(encoding, self.time, self.silent, len(timers))]
        for name, due in timers.items():
            parts += (_LENGTH.pack(len(name)), name, _DUE.pack(due))
        return b"".join(parts)


def read_timed(data: bytes) -> tuple[TimedCell, int, bytes]:
    """Return an unread state, its encoding and its bytes from the bytes of a log entry.

    Raises:
        FrameError: The bytes are damaged.
    """
    cell, timers = TimedCell(UNREAD), {}
    try:
        encoding, cell.time, cell.silent, count = _HEAD.unpack_from(data)
        at = _HEAD.size
        for _ in range(count):
            end = at + _LENGTH.size + _LENGTH.unpack_from(data, at)[0]
            timers[data[at + _LENGTH.size : end]] = _DUE.unpack_from(data, end)[0]
            at = end + _DUE.size
    except struct.error as err:
        msg = f"an entry of a state log has no timing; {err}"
        raise FrameError(msg) from err
    cell.timers = timers or None
    return cell, encoding, data[at:]


@dataclass(slots=True)
class Timing:
    """The times at which timers and the ends of states are due, for all keys of one timed state.

    Attributes:
        ttl_ms: How long a state is kept after the last message of its key; 0 keeps it forever.
        is_event: Whether times are event times.
        waits: Whether ticks only measure how long a key has been silent. If not, ticks move time.
        fresh: Keys that the next tick has to check: it sets their time, or the start of their silence.
        heap: Times of ticks at which a key may be due. Outdated entries are ignored when they are taken out.
        last_tick: Time of the last tick, as far as it matters to a key.
    """

    ttl_ms: int
    is_event: bool
    waits: bool
    fresh: dict[bytes, None] = field(default_factory=dict)
    heap: list[tuple[int, bytes]] = field(default_factory=list)
    last_tick: int = NEVER

    def begin(self, table: "CellTable", declared: Sequence[bytes]) -> None:
        """Build the heap from all states of the log, without reading the states.

        Args:
            declared: Id of each timer that steps of the state declare.
        """
        table.timing = self
        for key, cell in table.items():
            if not isinstance(cell, TimedCell):
                cell = table[key] = TimedCell(cell.live, cell.data, cell.size)  # noqa: PLW2901
            if cell.timers:
                _adopt(cell.timers, declared)
            self.last_tick = max(self.last_tick, cell.silent)
            if cell.time == NEVER:
                self.fresh[key] = None
            elif (tick := self._tick_of(key, cell)) != FAR:
                cell.queued = tick
                self.heap.append((tick, key))
        heapify(self.heap)

    def due(self, cell: TimedCell) -> int:
        """Return when the next timer or the end of a key's state is due, in the time of the key's messages."""
        next_due = min(cell.timers.values()) if cell.timers else FAR
        return min(next_due, cell.time + self.ttl_ms) if self.ttl_ms and cell.time > ASLEEP else next_due

    def woken(self, cell: TimedCell, until: int) -> Iterator[tuple[int, bytes]]:
        """Yield due time and name of each timer that must run now, in order. An empty name is the end of the state.

        This includes timers that the running ones set. At the end of the data, which is later than all times, each
        timer is due once.
        """
        is_end, ran = self.is_event and not self.waits and until > LAST_MS, set[bytes]()
        entries = self._listed(cell, until)
        for _ in range(MOST_TIMERS):
            if not entries:
                break
            last = min(entries)
            ran.add(last[-1])
            yield last[0], last[-1]
            entries = [each for each in self._listed(cell, until) if (each[-1] not in ran if is_end else each > last)]
        if is_end:
            cell.timers = None

    def _listed(self, cell: TimedCell, until: int) -> list[tuple[int, int, bytes]]:
        entries = [(due, 0, name) for name, due in (cell.timers or {}).items() if due <= until]
        if self.ttl_ms and ASLEEP < cell.time <= until - self.ttl_ms:
            entries.append((cell.time + self.ttl_ms, 1, b""))
        return entries

    def _tick_of(self, key: bytes, cell: TimedCell) -> int:
        """Return the time of the tick at which a key is due; FAR if nothing is due, or the key is not yet silent."""
        due = self.due(cell)
        if not self.waits or due == FAR:
            return due
        if cell.silent == NEVER:
            self.fresh[key] = None
            return FAR
        return due - cell.time + cell.silent

    def enroll(self, key: bytes, cell: TimedCell) -> None:
        """Enter a key in the heap, so that a tick finds it when it is due."""
        tick = self._tick_of(key, cell)
        if tick != FAR and (cell.queued is None or tick < cell.queued):
            cell.queued = tick
            heappush(self.heap, (tick, key))

    def tick(self, table: "CellTable", time: int, changed: dict[bytes, Cell]) -> list[bytes]:
        """Apply a tick to the keys, and return the keys that are due, in the order of their bytes.

        Args:
            table: The states by key.
            time: Time of the tick.
            changed: States that must be saved; the tick adds to them.
        """
        if self.waits and time < self.last_tick:  # the clock was set back: the silence of keys begins now
            later = [(key, cell) for key, cell in table.items() if isinstance(cell, TimedCell) and cell.silent > time]
            for key, cell in later:
                self._fall_silent(key, cell, time, changed)
        self.last_tick, fresh, self.fresh = time, self.fresh, {}
        for key in fresh:
            self._first_tick(key, table.get(key), time, changed)
        keys = []
        while self.heap and self.heap[0][0] <= time:
            queued, key = heappop(self.heap)
            waiting = table.get(key)
            if not isinstance(waiting, TimedCell) or waiting.queued != queued:
                continue
            waiting.queued = None
            if self._tick_of(key, waiting) <= time:
                keys.append(key)
            else:
                self.enroll(key, waiting)
        return sorted(keys)

    def _first_tick(self, key: bytes, cell: Cell | None, time: int, changed: dict[bytes, Cell]) -> None:
        """Apply to a key the first tick after its message, or after a change that made the step timed."""
        if not isinstance(cell, TimedCell):
            return
        if cell.time == NEVER:
            cell.time, changed[key] = time, cell
        if self.waits and cell.silent == NEVER and self.due(cell) != FAR:
            self._fall_silent(key, cell, time, changed)
        self.enroll(key, cell)

    def _fall_silent(self, key: bytes, cell: TimedCell, time: int, changed: dict[bytes, Cell]) -> None:
        cell.silent, changed[key] = time, cell
        self.enroll(key, cell)

    def until(self, cell: TimedCell, time: int) -> int:
        """Return the present time of a key at a tick."""
        return cell.time + time - cell.silent if self.waits else time


class CellTable(dict[bytes, Cell]):
    """The states of all keys for one state name.

    Attributes:
        timing: Due times of the keys; None if the states are not timed.
        written: Bytes of all states as they were last written or read.
        unread: Bytes of the unread states.
    """

    __slots__ = ("codec", "timing", "unread", "written")

    def __init__(self, codec: ValueCodec) -> None:
        super().__init__()
        self.codec = codec
        self.timing: Timing | None = None
        self.written = self.unread = 0

    @property
    def encoding(self) -> int:
        """Encoding of the states in the log."""
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
        """Deserialize an unread state."""
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


def timer_id(port: int, name: str) -> bytes:
    """Return the id of a timer of the step with a port, under which its due time is kept."""
    return f"{port:05}\n{name}".encode()


def _adopt(timers: dict[bytes, int], declared: Sequence[bytes]) -> None:
    """Give timers of a step that had another port to the only step that declares their name.

    States that were handed over between DataFrames come from another plan, whose ports may differ.
    """
    for old in [each for each in timers if each not in declared]:
        same = [each for each in declared if each.partition(b"\n")[2] == old.partition(b"\n")[2]]
        if len(same) == 1 and same[0] not in timers:
            timers[same[0]] = timers.pop(old)
