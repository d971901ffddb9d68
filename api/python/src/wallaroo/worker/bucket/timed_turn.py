"""Runs timed states (with timers or a time to live) in a bucket call: their messages, ticks and due timers."""

from collections.abc import Callable, Collection
from typing import Any

from wallaroo.message.key import readable
from wallaroo.message.timer import Timers
from wallaroo.worker.bucket.cell import ASLEEP, NEVER, CellTable, TimedCell
from wallaroo.worker.bucket.message_order import Messages
from wallaroo.worker.bucket.timing import Timing
from wallaroo.worker.bucket.visit import Cause, Tick, Visitor, VisitTurn
from wallaroo.worker.stage.keyed import StateEntry

MOST = 256  # limit for the messages of one loop: if a timer is due before one, the rest is copied


class DueError(Exception):
    """Ends a loop over messages: before the next message, a timer of its key or the end of its state is due."""


class TimedTurn:
    """Runs the steps of timed states (with timers or a time to live) in a bucket call.

    Methods that return False have failed without a dead letter: the call then runs again, message by message.

    Args:
        visits: The visits of the same call.
        run: Processes messages of a step, and returns whether none failed.
        run_in_place: Does the same with another function in place of the step's function.
        is_careful: Whether messages are processed one by one, and become dead letters if they fail.

    Attributes:
        tables: The first step with timers or a time to live of each timed state, by the port of its table.
    """

    def __init__(
        self,
        visits: VisitTurn,
        run: Callable[[Messages], bool],
        run_in_place: Callable[[Messages, Visitor], bool],
        *,
        is_careful: bool,
    ) -> None:
        self._visits, self._run, self._run_in_place = visits, run, run_in_place
        self._stage, self.is_careful = visits.stage, is_careful
        self._ticking = [each for each in self._stage.states.values() if each.node.ttl_ms or each.node.timers]
        self._owners = {(each.node.state_port, name): each for each in self._ticking for name in each.node.timers}
        self.tables = dict[int, StateEntry]()
        for entry in self._ticking:
            node, table = entry.node, visits.state.table(entry.node.state_port)
            self.tables.setdefault(node.state_port, entry)
            if table.timing is None:
                Timing(node.ttl_ms, node.event_time, node.event_time and not node.watermarks).begin(table)

    def run(self, part: Messages) -> bool:
        """Process messages of a step. Before each message, run the timers of its key that are due."""
        size = 1 if self.is_careful else MOST
        for start in range(0, len(part.messages), size):
            rest = part.pick(range(start, min(start + size, len(part.messages))))
            while rest.messages:
                if not self._wake_first(rest) or (count := self._run_until_due(rest)) < 0:
                    return False
                rest = rest.pick(range(count, len(rest.messages)))
        return True

    def _wake_first(self, part: Messages) -> bool:
        """Run the timers that are due before the first message."""
        key, now = part.keys[part.indexes[0]], part.times[0]
        cell, expiring = part.table.get(key), part.entry.state.expiring
        if not isinstance(cell, TimedCell) or _timing(part.table).due(cell) > now:
            return True
        if expiring is not None and not expiring.prolongs(part.messages[0]):
            return True
        cause = Tick(part.sequences[0], now, part.ordinals[0])  # at the place and time of the message
        return self._wake(part.entry.node.state_port, key, cell, now, cause)

    def _run_until_due(self, part: Messages) -> int:
        """Process messages up to one before which a timer must run. Return their number; -1 if a message failed.

        No timer may be due before the first message.
        """
        table, node, step, at = part.table, part.entry.node, part.entry.step, -1
        timing, compute, changed = _timing(table), step.run, self._changed(part.entry)
        is_due, timers, expiring, prolongs = False, Timers(0, node.timers), part.entry.state.expiring, True
        assert compute is not None

        def run(message: Any, state: Any) -> Any:
            nonlocal at, is_due, timers, prolongs
            at += 1
            key, now = part.keys[part.indexes[at]], part.times[at]
            cell = table[key]
            assert isinstance(cell, TimedCell)
            prolongs = expiring is None or expiring.prolongs(message)
            if at and prolongs and timing.due(cell) <= now:
                is_due = True
                raise DueError
            if expiring is not None and prolongs and not expiring.is_in(state):
                cell.time = ASLEEP
            if not step.takes_timers:
                result = compute(message, state)
            else:
                timers = Timers(now, node.timers)
                result = compute(message, state, timers)
            if not self.is_careful:
                keep(key, now)
            return result

        def keep(key: bytes, now: int) -> None:
            cell = changed[key] = table[key]
            assert isinstance(cell, TimedCell)
            if prolongs:
                cell.time, cell.silent = max(cell.time, now), NEVER
            if expiring is not None and not expiring.is_in(cell.live):
                cell.time = ASLEEP
            _set(cell, timers)
            timing.enroll(key, cell)

        with self._stage.replaced(part.entry.number, run):
            is_done = self._run(part)
        if is_due:
            return at
        if not self.is_careful:
            return len(part.messages) if is_done else -1
        if is_done and at == 0:
            keep(part.keys[part.indexes[0]], part.times[0])
        return len(part.messages)

    def run_tick(self, tick: Tick) -> bool:
        """Run all timers that are due at a tick. A tick on which a worker process ended before is skipped."""
        skip = self._stage.skips.get(tick.ordinal - 1)
        if skip is None:
            return self.tick(tick, self.tables)
        for entry in self._ticking:
            self._stage.visited[entry.number] += 1
            self._stage.box.skip(skip, entry.node.path, entry.step.name, None, tick.sequence)
        return True

    def tick(self, tick: Cause, ports: Collection[int]) -> bool:
        """Run the timers, and end the states, that are due at a tick or visit, for the states with these ports."""
        time = tick.timestamp_ms
        for port, entry in self.tables.items():
            if port not in ports:
                continue
            table = self._visits.state.table(port)
            timing = _timing(table)
            for key in timing.tick(table, time, self._changed(entry)):
                cell = table[key]
                assert isinstance(cell, TimedCell)
                if not self._wake(port, key, cell, time + (cell.time - cell.silent if timing.waits else 0), tick):
                    return False
        return True

    def _wake(self, port: int, key: bytes, cell: TimedCell, until: int, cause: Cause) -> bool:
        """Run the timers of a key that are due before the time `until`. End the key's state if that is due, too."""
        table = self._visits.state.table(port)
        timing = _timing(table)
        for due, name in timing.woken(cell, until):
            if not name:
                return self._expire(table, port, key, cell, due, cause)
            assert cell.timers is not None
            del cell.timers[name]
            self._changed(self.tables[port])[key] = cell
            entry = self._owners.get((port, name))
            if entry is None:
                continue  # the present program has no timer of this name
            timers = Timers(due, entry.node.timers)
            is_done = self._fire(table, key, entry, name, timers, cause)
            if not is_done and not self.is_careful:
                return False
            if table.get(key) is not cell:
                return True
            if is_done:
                _set(cell, timers)
        timing.enroll(key, cell)
        return True

    def _expire(self, table: CellTable, port: int, key: bytes, cell: TimedCell, due: int, cause: Cause) -> bool:
        """End the state of a key after its time to live. If only a part of it has a time to live, remove this part."""
        entry, is_done = self.tables[port], True
        expiring, visit = entry.state.expiring, entry.step.visit
        if expiring is None or visit is None:
            self._stage.more[entry.number]["expired"] += 1
            self._visits.delete(table, port, [key])
            return True
        if expiring.is_in(self._visits.state.cell(table, key, entry.state.build).live):
            is_done = self._call(table, key, entry, "", due, cause, lambda key, _, state: visit("", b"", key, state))
            self._stage.more[entry.number]["expired"] += is_done
        if table.get(key) is cell:
            cell.time, cell.silent, self._changed(entry)[key] = ASLEEP, NEVER, cell
        return is_done or self.is_careful

    def _fire(self, table: CellTable, key: bytes, entry: StateEntry, name: str, timers: Timers, cause: Cause) -> bool:
        """Run the user's function of a timer, and return whether it succeeded."""
        fire, due = entry.step.fire, timers.now_ms
        assert fire is not None
        self._stage.more[entry.number]["timers_fired"] += 1

        def run(key: bytes, _: bytes, state: Any) -> Any:
            return fire(name, readable(key), state, due, timers)

        return self._call(table, key, entry, name, due, cause, run)

    def _call(
        self, table: CellTable, key: bytes, entry: StateEntry, name: str, due: int, cause: Cause, run: Visitor
    ) -> bool:
        """Run user code for a key instead of its step's function. Return whether the code succeeded."""
        time = due if _timing(table).is_event else cause.timestamp_ms
        box, before = self._stage.box, self._stage.box.time
        box.time = time  # a dead letter has the time that a result would have
        is_done = self._run_in_place(self._visits.messages(entry, [key], name.encode(), cause, time), run)
        box.time = before
        return is_done

    def _changed(self, entry: StateEntry) -> dict[bytes, Any]:
        return self._visits.changed.setdefault(entry.node.state_port, {})


def _timing(table: CellTable) -> Timing:
    assert isinstance(table.timing, Timing)
    return table.timing


def _set(cell: TimedCell, timers: Timers) -> None:
    """Give a key the timers that a function has set and deleted, after the function has succeeded."""
    if timers.changes:
        wanted = {**(cell.timers or {}), **timers.changes}
        cell.timers = {name: due for name, due in wanted.items() if due is not None} or None
