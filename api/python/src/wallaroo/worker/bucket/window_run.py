"""Processes the messages and ticks of window steps in one bucket call, in the order of their sequences."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from wallaroo.check.in_place import check_returned
from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.diagnostic.location import one_line, user_traceback
from wallaroo.message.frame import FrameHeader
from wallaroo.message.key import readable
from wallaroo.worker.bucket.calendar import Calendar
from wallaroo.worker.bucket.cell import Cell
from wallaroo.worker.bucket.failed_message import bury
from wallaroo.worker.bucket.message_order import Messages, of_windows
from wallaroo.worker.bucket.visit import Tick, VisitTurn, with_visits
from wallaroo.worker.stage.flight import MESSAGE, OUTSIDE, PROGRESS
from wallaroo.worker.stage.keyed import WindowEntry
from wallaroo.worker.value.value import NotSerializableError, StateReadError, StateTooLargeError
from wallaroo.worker.window.window import (
    DROPPED,
    CountWindow,
    Failed,
    Given,
    Stuck,
    WindowState,
)


class WindowTurn:
    """Runs the window steps of a bucket call: first collects all messages and ticks, then processes them in order.

    Args:
        visits: The visits of the same call.
    """

    def __init__(self, visits: VisitTurn) -> None:
        self._stage, self._state = stage, state = visits.stage, visits.state
        self._runs: dict[int, list[Messages]] = {port: [] for port in stage.windows}
        self._ticks: list[Tick] = []
        self.failing = ""  # name of the step that ran last
        self._calendars: dict[int, Calendar] = {}
        for port, entry in stage.windows.items():
            table = entry.node.state_port
            calendar = self._calendars[port] = state.calendar(table)
            changed, deleted = visits.changed.setdefault(table, {}), visits.deleted.setdefault(table, set())
            calendar.begin(entry.window, changed, deleted)

    def tick(self, header: FrameHeader) -> Tick:
        """Collect a tick for all window steps, and return it."""
        self._ticks.append(Tick(header.sequence, header.timestamp_ms, self._stage.take(1)[0]))
        return self._ticks[-1]

    def take(self, part: Messages) -> None:
        """Collect the messages of a frame for their window step."""
        self._runs[part.entry.node.port].append(part)

    def attempt(self) -> bool:
        """Process everything without copies of states. Return False if user code failed; then states are spoilt."""
        try:
            for entry, calendar, item in self._items():
                if isinstance(item, Tick):
                    self._tick(entry, calendar, item)
                elif isinstance(entry.window, CountWindow):
                    self._fast_count(entry, calendar, item, entry.window.count - 1)
                else:
                    self._fast(entry, calendar, item)
        except StateReadError:
            raise
        except BaseException:
            return False  # `careful` will find the message, and report the error
        return True

    def careful(self) -> None:
        """Process messages one by one, so that the state can be restored if user code fails on a message."""
        for entry, calendar, item in self._items():
            if isinstance(item, Tick):
                self._tick(entry, calendar, item)
                continue
            for at, index in enumerate(item.indexes):
                self._one(entry, calendar, item.keys[index], item.pick([at]))

    def _items(self) -> Iterator[tuple[WindowEntry, Calendar, Any]]:
        runs, ticks = self._runs, self._ticks
        self._runs, self._ticks = {port: [] for port in runs}, []  # empty, for the next part of the call
        for port, entry in self._stage.windows.items():
            self.failing = entry.step.name
            for item in with_visits(of_windows(runs[port]), ticks):
                self._stage.box.time = item.timestamp_ms if isinstance(item, Tick) else None
                yield entry, self._calendars[port], item
                self._stage.flight[MESSAGE] = 0

    def _fast(self, entry: WindowEntry, calendar: Calendar, run: Messages) -> None:
        update, flight, keys = entry.window.update, self._stage.flight, run.keys
        states = self._states(calendar, run)
        for flight[MESSAGE], message, index, sequence, time in run.rows():  # noqa: B020 - a store for the supervisor
            state = states[index]
            if state is not None and state.low <= time < state.high:
                if (returned := update(message, state.pane)) is not None:
                    check_returned(returned, state.pane)
                if time > state.latest:
                    state.latest = time
                continue
            states[index], emitted = self._enter(entry, calendar, keys[index], state, message, time)
            if emitted:
                self._give(entry, keys[index], emitted, sequence)

    def _fast_count(self, entry: WindowEntry, calendar: Calendar, run: Messages, last: int) -> None:
        update, flight, keys = entry.window.update, self._stage.flight, run.keys
        states = self._states(calendar, run)
        for flight[MESSAGE], message, index, sequence, time in run.rows():  # noqa: B020 - a store for the supervisor
            state = states[index]
            if state is not None and state.high and state.oldest < last and time >= state.latest:
                if (returned := update(message, state.pane)) is not None:
                    check_returned(returned, state.pane)
                state.oldest += 1
                state.latest = time
                continue
            states[index], emitted = self._enter(entry, calendar, keys[index], state, message, time)
            if emitted:
                self._give(entry, keys[index], emitted, sequence)

    @staticmethod
    def _states(calendar: Calendar, run: Messages) -> list[WindowState | None]:
        """Return the state of each key, or None, and mark the states of keys with messages as changed."""
        used = {run.keys[index] for index in set(run.indexes)}
        calendar.changed.update((key, calendar[key]) for key in run.keys if key in used and key in calendar)
        return [calendar.find(key) for key in run.keys]

    @staticmethod
    def _enter(
        entry: WindowEntry, calendar: Calendar, key: bytes, state: WindowState | None, message: Any, time: int
    ) -> tuple[WindowState | None, Given]:
        """Add a message to a key's state. Return the new state (None if it has ended) and results of windows."""
        window = entry.window
        is_new = state is None
        state = WindowState(readable(key)) if state is None else state
        emitted = window.enter(state, is_new, message, time)
        if state.is_over:
            if not is_new:
                calendar.drop(key)
            return None, emitted
        if is_new:
            calendar.changed[key] = calendar.add(key, state)
        if is_new or not window.waits or state.silent is None:
            calendar.enroll(key, state)
        return state, emitted

    def _one(self, entry: WindowEntry, calendar: Calendar, key: bytes, run: Messages) -> None:
        """Process one message. After a failure restore the state of its key."""
        self._stage.flight[MESSAGE] = OUTSIDE
        state = calendar.find(key)
        saved = None if state is None else self._state.write(calendar, calendar[key])
        self._stage.flight[MESSAGE] = run.ordinals[0]
        try:
            after, emitted = self._enter(entry, calendar, key, state, run.messages[0], run.times[0])
            if after is not None:
                calendar.changed[key] = calendar[key]
                self._check(calendar, calendar[key])
        except BaseException as err:
            self._put_back(calendar, key, saved)
            bury(self._stage, run, key, (run.messages[0], 0, run.sequences[0], err))
            return
        self._give(entry, key, emitted, run.sequences[0])

    def _check(self, calendar: Calendar, cell: Cell) -> None:
        try:
            self._state.write(calendar, cell)
        except StateTooLargeError:
            raise
        except NotSerializableError as err:
            wrong = NotSerializableError(next(iter(cell.live.panes.values()), cell.live), err.__cause__ or err)
            wrong.kept = "an accumulator"
            raise wrong from err

    @staticmethod
    def _put_back(calendar: Calendar, key: bytes, saved: bytes | None) -> None:
        if saved is None:
            calendar.remove(key)
            calendar.changed.pop(key, None)
        else:
            state = calendar[key].live = calendar.load(key, saved)
            state.queued = None
            calendar.enroll(key, state)

    def _tick(self, entry: WindowEntry, calendar: Calendar, tick: Tick) -> None:
        skip = self._stage.skips.get(tick.ordinal - 1)
        if skip is not None:
            self._stage.box.skip(skip, entry.node.path, entry.step.name, None, tick.sequence)
            return
        self._stage.flight[MESSAGE] = tick.ordinal
        for key, emitted in calendar.tick(tick.timestamp_ms):
            self._stage.flight[PROGRESS] += 1
            self._give(entry, key, emitted, tick.sequence)

    def _give(self, entry: WindowEntry, key: bytes, emitted: Given, sequence: int) -> None:
        """Pass on the results of windows. Failed windows become dead letters."""
        box, path, name = self._stage.box, entry.node.path, entry.step.name
        before = box.time
        for item, box.time in emitted:
            if item is DROPPED:
                self._stage.more[entry.number]["dropped_late"] += 1
            elif isinstance(item, Failed):
                finding = Diagnostic.of("C517", step=name, key=shown(readable(key)), error=one_line(item.error))
                box.put(finding, path, name, item.accumulator, sequence, key=key, trace=user_traceback(item.error))
            elif isinstance(item, Stuck):
                finding = Diagnostic.of("C524", step=name, key=shown(readable(key)), time=moment(item.latest))
                box.put(finding, path, name, None, sequence, key=key)
            else:
                entry.give([(item, box.time)], sequence, key)
        box.time = before


def moment(time_ms: int) -> str:
    """Return a time in readable form.

    Example:
        >>> moment(-1)
        '1969-12-31T23:59:59.999Z'
    """
    return (datetime(1970, 1, 1) + timedelta(milliseconds=time_ms)).isoformat(timespec="milliseconds") + "Z"
