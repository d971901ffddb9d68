"""Visits in a bucket call: each runs user code for every key of a state, at the visit's place among the messages."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from wallaroo.message.frame import Frame, FrameError
from wallaroo.message.key import readable
from wallaroo.message.timer import Deleted
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.cell import UNREAD, Cell, CellTable
from wallaroo.worker.bucket.message_order import Messages, Same
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.flight import PROGRESS
from wallaroo.worker.stage.keyed import StateEntry
from wallaroo.worker.stage.stage import Stage


class Tick(NamedTuple):
    """A tick, by which time passes without messages. `ordinal` is its number in the call, counted from 1."""

    sequence: int
    timestamp_ms: int
    ordinal: int

    @property
    def place(self) -> tuple[int, ...]:
        """Sorting key of ticks and visits. A tick comes before visits of the same sequence."""
        return self.sequence, 0, self.timestamp_ms, self.ordinal


Visitor = Callable[[bytes, bytes, Any], Any]  # gets key, message and state; returns the result


@dataclass(frozen=True, slots=True)
class Visit:
    """A visit: all visitors with its name run for every key. `ordinal` is its number in the call, counted from 1."""

    sequence: int
    id: int
    ordinal: int
    timestamp_ms: int
    name: str
    metadata: bytes

    @classmethod
    def of(cls, frame: Frame, ordinal: int) -> "Visit":
        """Read the visit that a frame of port 65533 contains.

        Raises:
            FrameError: The frame does not contain exactly one visit.
        """
        values = frame.values()
        if len(values) != 1 or frame.absent:
            msg = f"a frame of visits has {len(values)} values; expected 1"
            raise FrameError(msg)
        try:
            visit = pb.Visit.FromString(bytes(values[0]))
        except Exception as err:
            msg = "the value of a frame of visits is no Visit"
            raise FrameError(msg) from err
        return cls(frame.header.sequence, visit.id, ordinal, frame.header.timestamp_ms, visit.name, visit.metadata)

    @property
    def place(self) -> tuple[int, ...]:
        """Sorting key of visits and ticks: the order in which they run."""
        return self.sequence, 1, self.id, self.ordinal


Cause = Tick | Visit  # makes user code run for keys, at its place among the messages


def with_visits(parts: Iterable[Messages], visits: Iterable[Visit | Tick]) -> Iterator[Messages | Visit | Tick]:
    """Merge sorted messages with ticks and visits by sequence. Ticks and visits precede messages of equal sequence."""
    waiting = sorted(visits, key=lambda each: each.place, reverse=True)
    for part in parts:
        rest = part
        while waiting and rest.sequences and waiting[-1].sequence <= rest.sequences[-1]:
            at = bisect_left(rest.sequences, waiting[-1].sequence)
            if at:
                yield rest.pick(range(at))
            yield waiting.pop()
            rest = rest.pick(range(at, len(rest.sequences))) if at else rest
        if rest.sequences:
            yield rest
    while waiting:
        yield waiting.pop()


@dataclass(slots=True)
class VisitTurn:
    """The visits of one try of a bucket call. Keeps the states that visitors and timers change or delete.

    Attributes:
        stage: The stage; no other call may use it at the same time.
        state: State of the bucket.
        changed: States to be saved, by the port of their table.
        waiting: Visits of the call, and its ticks if the stage has timed states.
        counts: Numbers of visited keys and failures, by visit and step.
        deleted: Keys whose states must be removed from the log, by the port of their table.
    """

    stage: Stage
    state: BucketState
    changed: dict[int, dict[bytes, Cell]]
    waiting: list[Visit | Tick] = field(default_factory=list)
    counts: list[pb.Visited] = field(default_factory=list)
    deleted: dict[int, set[bytes]] = field(default_factory=dict)

    def take(self, frame: Frame) -> None:
        """Add the visit that a frame of port 65533 contains."""
        self.waiting.append(Visit.of(frame, self.stage.take(1)[0]))

    def entries(self, visit: Visit) -> Iterator[StateEntry]:
        """Yield the steps with a visitor for a visit. If the visit is skipped, make a dead letter for each step."""
        skip = self.stage.skips.get(visit.ordinal - 1)
        for entry in self.stage.states.values():
            if visit.name not in entry.node.visits:
                continue
            if skip is not None:
                self.stage.visited[entry.number] += 1
                path, name = entry.node.path, entry.step.name
                self.stage.box.skip(skip, path, name, visit.metadata, visit.sequence, is_payload=True)
            else:
                yield entry

    def part(self, visit: Visit, entry: StateEntry) -> Messages:
        """Return a message with the visit's metadata for each key of a step's state. Count the keys as visited."""
        keys = self._keys(entry)
        self.counts.append(pb.Visited(id=visit.id, path=entry.node.path, keys=len(keys)))
        return self.messages(entry, keys, visit.metadata, visit, visit.timestamp_ms)

    def messages(self, entry: StateEntry, keys: list[bytes], data: bytes, cause: Cause, time: int) -> Messages:
        """Return a message for each key, with the sequence of a visit or tick, to run user code for the keys."""
        count = len(keys)
        self.stage.visited[entry.number] += count
        return Messages(
            replace(entry, closed_keys=None), self.state.table(entry.node.state_port), keys, Same(data, count),
            range(count), Same(cause.sequence, count), Same(cause.ordinal, count), Same(time, count), is_visit=True,
        )  # fmt: skip

    def _keys(self, entry: StateEntry) -> list[bytes]:
        """Return the keys with a state that is or will be in the log, in the order of their bytes."""
        port = entry.node.state_port
        changed, absent = self.changed.get(port, {}), {*self._absent(entry)}
        table = self.state.table(port)
        return sorted(key for key, cell in table.items() if (cell.size >= 0 or key in changed) and key not in absent)

    def _absent(self, entry: StateEntry) -> list[bytes]:
        """Return the keys whose new state counts as deleted, e.g. a state of Goka without values in any table."""
        is_absent, changed = entry.state.is_absent, self.changed.get(entry.node.state_port, {})
        if is_absent is None:
            return []
        return [key for key, cell in changed.items() if cell.live is not UNREAD and is_absent(cell.live)]

    @staticmethod
    def visitor(visit: Visit, entry: StateEntry) -> Visitor:
        """Return a function of key, metadata and state that runs a step's visitor."""
        run, name = entry.step.visit, visit.name
        assert run is not None
        return lambda key, metadata, state: run(name, metadata, readable(key), state)

    @contextmanager
    def replaced(self, part: Messages, visitor: Visitor) -> Iterator[set[bytes]]:
        """Run `visitor` in place of the step's function while the context is open. Yield the keys that it deletes."""
        entry, flight, keys = part.entry, self.stage.flight, iter(part.keys)
        deleted: set[bytes] = set()

        def run(message: bytes, state: Any) -> Any:
            key = next(keys)
            flight[PROGRESS] += 1
            result = visitor(key, message, state)
            if entry.is_timed:
                self.changed.setdefault(entry.node.state_port, {})[key] = part.table[key]
            if result.__class__ is not Deleted:
                return result
            deleted.add(key)
            return result.result if entry.step.is_always_persisted else (result.result, True)

        with self.stage.replaced(entry.number, run):
            yield deleted

    def delete(self, table: CellTable, port: int, keys: Iterable[bytes]) -> None:
        """Delete the states of keys in memory, and note the keys, so that the log of states also loses them."""
        for key in keys:
            table.remove(key)
            self.changed.get(port, {}).pop(key, None)
            self.deleted.setdefault(port, set()).add(key)

    def delete_absent(self) -> None:
        """Delete new states that count as deleted, e.g. states of Goka without values in any table."""
        for entry in self.stage.states.values():
            port = entry.node.state_port
            self.delete(self.state.table(port), port, self._absent(entry))

    def gone(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield each table's port, and the keys whose states must be removed from the log."""
        for port, keys in sorted(self.deleted.items()):
            if left := sorted(keys - self.changed.get(port, {}).keys()):
                yield port, left
