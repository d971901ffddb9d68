"""Finds the keys of a timed state that are due: a timer must run, or the time to live is over."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from wallaroo.message.timer import LAST_MS
from wallaroo.worker.bucket.cell import ASLEEP, NEVER, Cell, CellTable, TimedCell

FAR = 1 << 62  # later than all times
MOST_TIMERS = 10_000  # how many timers run when a key wakes, because each may set a timer that is due at once


@dataclass(slots=True)
class Timing:
    """The due times of timers and ends of states, for all keys of one state with timers or a time to live.

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

    def begin(self, table: CellTable) -> None:
        """Attach this object to the table of keys. Find when each key is due, without deserializing its state."""
        table.timing = self
        for key, cell in table.items():
            if not isinstance(cell, TimedCell):
                cell = table[key] = TimedCell(cell.live, cell.data, cell.size)  # noqa: PLW2901
            self.last_tick = max(self.last_tick, cell.silent)
            if cell.time == NEVER:
                self.fresh[key] = None
            elif (tick := self._tick_of(key, cell)) != FAR:
                cell.queued = tick
                self.heap.append((tick, key))
        heapify(self.heap)

    def due(self, cell: TimedCell) -> int:
        """Return when the next timer, or the end of a key's state, is due. The result is a time of its messages."""
        next_due = min(cell.timers.values()) if cell.timers else FAR
        return min(next_due, cell.time + self.ttl_ms) if self.ttl_ms and cell.time > ASLEEP else next_due

    def woken(self, cell: TimedCell, until: int) -> Iterator[tuple[int, str]]:
        """Yield due time and name of each timer that a key must run now, in order. The state's end has an empty name.

        This includes timers that the running ones set. At the end of the data, which is later than all times, each
        timer is due once.
        """
        is_end, ran = self.is_event and not self.waits and until > LAST_MS, set[str]()
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

    def _listed(self, cell: TimedCell, until: int) -> list[tuple[int, int, str]]:
        entries = [(due, 0, name) for name, due in (cell.timers or {}).items() if due <= until]
        if self.ttl_ms and ASLEEP < cell.time <= until - self.ttl_ms:
            entries.append((cell.time + self.ttl_ms, 1, ""))
        return entries

    def _tick_of(self, key: bytes, cell: TimedCell) -> int:
        """Return the time of the tick at which a key is due, or FAR. If the next tick must decide, note the key."""
        due = self.due(cell)
        if not self.waits or due == FAR:
            return due
        if cell.silent == NEVER:
            self.fresh[key] = None
            return FAR
        return due - cell.time + cell.silent

    def enroll(self, key: bytes, cell: TimedCell) -> None:
        """Note when a key is due (in `heap`, or in `fresh` for the next tick), so that a tick then finds it."""
        tick = self._tick_of(key, cell)
        if tick != FAR and (cell.queued is None or tick < cell.queued):
            cell.queued = tick
            heappush(self.heap, (tick, key))

    def tick(self, table: CellTable, time: int, changed: dict[bytes, Cell]) -> list[bytes]:
        """Apply a tick to the keys, and return the keys that are due, in the order of their bytes.

        Args:
            table: The states by key.
            time: Time of the tick.
            changed: States that must be saved; the tick adds to them.
        """
        if self.waits and time < self.last_tick:  # the clock was set back: the silence of keys begins now
            for key, each in table.items():
                if isinstance(each, TimedCell) and each.silent > time:
                    each.silent, self.fresh[key] = NEVER, None
        self.last_tick, fresh, self.fresh = time, self.fresh, {}
        for key in fresh:  # the first tick after a message, or after a change that made the step timed
            cell = table.get(key)
            if not isinstance(cell, TimedCell):
                continue
            if cell.time == NEVER:
                cell.time, changed[key] = time, cell
            if self.waits and cell.silent == NEVER and self.due(cell) != FAR:
                cell.silent, changed[key] = time, cell
            self.enroll(key, cell)
        keys = []
        while self.heap and self.heap[0][0] <= time:
            queued, key = heappop(self.heap)
            cell = table.get(key)
            if not isinstance(cell, TimedCell) or cell.queued != queued:
                continue
            cell.queued = None
            if self._tick_of(key, cell) <= time:
                keys.append(key)
            else:
                self.enroll(key, cell)
        return sorted(keys)
