"""Range and count windows: the effect of a message or a tick on the state of its key, and the results.

SPECIFICATION.md, section 8, defines the rules. Sliding windows share panes: times that lie in the same windows have one
accumulator. A message costs only one call of `update` if it falls into the same pane as the message before.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from math import gcd
from typing import Any, NamedTuple

from wallaroo.check.in_place import check_returned, guarded
from wallaroo.component.aggregation import WindowBounds
from wallaroo.component.signature import takes
from wallaroo.worker.value.result import present

EARLIEST = -(1 << 63)


class Failed(NamedTuple):
    """Stands for the result of a window whose `combine` or `output` failed. Code: C517."""

    accumulator: Any
    error: BaseException


class Stuck(NamedTuple):
    """Stands for a result (C524): a key begins again, because a message far in the future made all later ones late."""

    latest: int


class Dropped:
    """Stands for a result: a message was late, and was dropped."""


DROPPED = Dropped()


Given = list[tuple[Any, int]]  # each entry: a message, `Failed`, `Stuck` or `Dropped`; and its time
NOTHING: Given = []  # shared, so never changed


class WindowState:
    """The state of one key in a window step: the accumulators of its open windows, and its times.

    Attributes:
        key: The key as user code gets it.
        low: Begin of the times for which a message only updates `pane`; `high` is their end. In a count window every
            message only updates `pane` while `high` is 1.
        pane: The accumulator that the last message updated.
        first: Time of the first message.
        latest: Latest time of a message; for a count window the time of its last message.
        oldest: Number of the oldest open window; for a count window its number of messages; for sessions the latest
            time at which a session was ended.
        has_begun: Whether a window with messages was emitted.
        is_late: Whether only late messages have come since the last message in time.
        silent: Time of the first tick after the last message in time. If ticks move time, it is the time of the first
            late message after the last message in time. None if there was no such tick or message.
        panes: Accumulators by number of the pane; for sessions by their first and last time.
        is_over: Whether a message has ended the state.
        queued: Time under which the calendar has the key; None if the calendar does not have it.
    """

    __slots__ = (
        "first", "has_begun", "high", "is_late", "is_over", "key", "latest", "low", "oldest", "pane", "panes", "queued",
        "silent",
    )  # fmt: skip

    def __init__(self, key: Any) -> None:
        self.key = key
        self.queued: int | None = None
        self.is_over = False
        self.reset()

    def reset(self) -> None:
        """Reset all fields to the state of a key without messages."""
        self.low = self.high = 0
        self.first: int = 0
        self.latest: int = 0
        self.oldest: int = 0
        self.pane: Any = None
        self.has_begun = self.is_late = False
        self.silent: int | None = None
        self.panes: dict[Any, Any] = {}

    def slow(self) -> None:
        """Make the next message take the slow path, which checks all windows."""
        self.low = self.high = 0

    def fields(self) -> tuple[int, int, int, bool, int | None, bool]:
        """Return the fields that are saved in addition to the accumulators."""
        return self.first, self.latest, self.oldest, self.has_begun, self.silent, self.is_late

    @classmethod
    def of(cls, key: Any, fields: tuple[Any, ...], panes: dict[Any, Any]) -> "WindowState":
        """Return a saved state, from its accumulators, and from the other fields in the form of `fields`."""
        state = cls(key)
        state.first, state.latest, state.oldest, state.has_begun, state.silent, state.is_late = fields
        state.panes = panes
        return state


class Window(ABC):
    """The windows of one step, for all keys. The state of each key is a `WindowState`.

    Args:
        patience_ms: How long a key may be silent before all its windows are emitted.
    """

    is_event = False  # whether messages have event times
    waits = False  # whether ticks report silence instead of advancing time

    def __init__(self, aggregation: Any, patience_ms: int) -> None:
        self.patience = patience_ms  # how long a key may be silent
        self.initial: Callable[[], Any] = aggregation.initial_accumulator
        self.update = self._guarded(aggregation)
        self.combine: Callable[[Any, Any], Any] = aggregation.combine
        self.output: Callable[..., Any] = aggregation.output
        self.tells_bounds = takes(aggregation.output, "bounds")

    @staticmethod
    def _guarded(aggregation: Any) -> Callable[[Any, Any], Any]:
        try:
            return guarded(aggregation.update, 1, aggregation.initial_accumulator())
        except Exception:
            update: Callable[[Any, Any], Any] = aggregation.update
            return update  # each message will report the error of `initial_accumulator`

    @abstractmethod
    def enter(self, state: WindowState, is_new: bool, message: Any, time: int) -> Given:
        """Add a message to the state of its key. An exception of `update` is passed on, and spoils the state."""

    def due(self, state: WindowState) -> int:
        """Return the time of the first tick that emits a window; EARLIEST if no tick came since the last message."""
        return EARLIEST if state.silent is None else state.silent + self.patience

    @abstractmethod
    def tick(self, state: WindowState, time: int) -> tuple[Given, bool]:
        """Return the results of a key at a tick of this time, and whether the tick ends the state of the key."""

    def add(self, message: Any, accumulator: Any) -> None:
        """Let `update` add a message to an accumulator.

        Raises:
            NotInPlaceError: `update` returned a new accumulator.
        """
        returned = self.update(message, accumulator)
        if returned is not None:
            check_returned(returned, accumulator)

    def result(self, state: WindowState, accumulator: Any, time: int, emitted: Given, bounds: tuple[int, int]) -> None:
        """Call the user's `output` for a window that ends, and add its result or its failure to `emitted`."""
        try:
            if self.tells_bounds:
                value = present(self.output(state.key, accumulator, bounds=WindowBounds(*bounds)))
            else:
                value = present(self.output(state.key, accumulator))
        except BaseException as err:
            emitted.append((Failed(accumulator, err), time))
            return
        if value is not None:
            emitted.append((value, time))


class TimedWindow(Window):
    """Windows that time ends, not a count: the base class of range windows and sessions."""

    def __init__(self, aggregation: Any, window: Mapping[str, Any], delay_ms: int, patience_ms: int) -> None:
        super().__init__(aggregation, patience_ms)
        self.delay = delay_ms
        self.late: str = window["late"]
        self.is_event = self.waits = window["time"] == "event"

    @abstractmethod
    def _begin(self, state: WindowState, time: int) -> None:
        """Set the fields of a state for a first message with this time."""

    @abstractmethod
    def _end(self, state: WindowState) -> int:
        """Return the end of the oldest open window."""

    @abstractmethod
    def _is_late(self, state: WindowState, time: int) -> bool:
        """Return whether a message is late: no open window contains its time."""

    @abstractmethod
    def _add(self, state: WindowState, message: Any, time: int) -> None:
        """Add a message that is not late."""

    @abstractmethod
    def _add_to_oldest(self, state: WindowState, message: Any) -> None:
        """Add a late message to the oldest open window."""

    @abstractmethod
    def _advance(self, state: WindowState, until: int, time: int, emitted: Given) -> None:
        """Emit the windows that are due at the time `until`."""

    def enter(self, state: WindowState, is_new: bool, message: Any, time: int) -> Given:
        """First emit the windows that are over at the time of a message. Then add the message to its windows."""
        emitted: Given = []
        if is_new:
            self._begin(state, time)
        elif time >= state.latest + self.patience:
            self._begin_anew(state, time, emitted)
        elif time >= self._end(state) + self.delay:
            self._advance(state, time, time, emitted)
        elif self._is_stuck(state, time):
            latest = state.latest
            self._begin_anew(state, time, emitted)
            emitted.append((Stuck(latest), time))
        if self._is_late(state, time):
            self._late(state, message, time, emitted)
        else:
            state.silent, state.is_late = None, False
            self._add(state, message, time)
        return emitted

    def _is_stuck(self, state: WindowState, time: int) -> bool:
        """Return whether only late messages of a key have come for the time `patience`; False with event time."""
        if self.is_event or state.silent is None or not self._is_late(state, time):
            return False
        return time >= state.silent + self.patience

    def _begin_anew(self, state: WindowState, time: int, emitted: Given) -> None:
        self._advance(state, state.latest + self.patience, time, emitted)
        state.reset()
        self._begin(state, time)

    def due(self, state: WindowState) -> int:
        """Return the time at which a key is due: for its next window, or for the end of its state."""
        if self.waits:
            return super().due(state)
        return min(self._end(state) + self.delay, state.latest + self.patience)

    def tick(self, state: WindowState, time: int) -> tuple[Given, bool]:
        """Emit the windows that this tick ends. If no message came for the time `patience`, emit all windows."""
        emitted: Given = []
        last = state.latest + self.patience
        is_over = self.waits or time >= last
        self._advance(state, last if is_over else time, time, emitted)
        if self.waits and state.is_late and state.latest > time:
            emitted.append((Stuck(state.latest), time))
        return emitted, is_over

    def _late(self, state: WindowState, message: Any, time: int, emitted: Given) -> None:
        state.slow()
        state.is_late = True
        if not self.is_event and state.silent is None:
            state.silent = time
        if self.late == "place_in_oldest_window":
            self._add_to_oldest(state, message)
        elif self.late == "fire_per_message":
            accumulator = self.initial()
            self.add(message, accumulator)
            self.result(state, accumulator, time, emitted, (time, time))
        else:
            emitted.append((DROPPED, time))


class RangeWindow(TimedWindow):
    """The range windows of one step: each has the same length of time, and they may overlap."""

    def __init__(self, aggregation: Any, window: Mapping[str, Any]) -> None:
        self.range: int = window["range_ms"]
        self.slide: int = window["slide_ms"]
        delay = -(-window["delay_ms"] // self.slide) * self.slide
        super().__init__(aggregation, window, delay, 2 * (self.range + delay))
        self.length = gcd(self.range, self.slide)
        self.per_window, self.per_slide = self.range // self.length, self.slide // self.length

    def _begin(self, state: WindowState, time: int) -> None:
        state.first = state.latest = time
        state.oldest = -((self.range + self.delay) // self.slide)
        if (self.range + self.delay) % self.slide == 0:
            state.oldest += 1

    def _oldest(self, state: WindowState) -> int:
        """Return the start of the oldest open window."""
        return state.first + state.oldest * self.slide

    def _end(self, state: WindowState) -> int:
        return self._oldest(state) + self.range

    def _is_late(self, state: WindowState, time: int) -> bool:
        return time < self._oldest(state)

    def _add(self, state: WindowState, message: Any, time: int) -> None:
        number = (time - state.first) // self.length
        pane = self._pane(state, number, message)
        if time > state.latest:
            state.latest = time
        state.pane = pane
        state.low = state.first + number * self.length
        state.high = min(state.low + self.length, self._end(state) + self.delay, state.latest + self.patience)

    def _pane(self, state: WindowState, number: int, message: Any) -> Any:
        pane = state.panes[number] if number in state.panes else self.initial()
        self.add(message, pane)
        state.panes[number] = pane
        return pane

    def _add_to_oldest(self, state: WindowState, message: Any) -> None:
        self._pane(state, state.oldest * self.per_slide, message)

    def _advance(self, state: WindowState, until: int, time: int, emitted: Given) -> None:
        state.slow()
        while (end := self._end(state)) + self.delay <= until:
            begin = state.oldest * self.per_slide
            inside = self._numbers(state, begin, begin + self.per_window)
            state.has_begun = state.has_begun or bool(inside)
            if state.has_begun:
                self._give(state, inside, end - 1 if self.is_event else time, emitted, (end - self.range, end))
            for number in self._numbers(state, begin, begin + self.per_slide):
                del state.panes[number]
            state.oldest += 1

    @staticmethod
    def _numbers(state: WindowState, begin: int, end: int) -> list[int]:
        """Return the numbers of panes with an accumulator, from `begin` on and before `end`, in order."""
        panes = state.panes
        if len(panes) < end - begin:
            return sorted(number for number in panes if begin <= number < end)
        return [number for number in range(begin, end) if number in panes]

    def _give(self, state: WindowState, inside: list[int], time: int, emitted: Given, bounds: tuple[int, int]) -> None:
        accumulator: Any = None
        try:
            accumulator = self.initial()
            for number in inside:
                accumulator = present(self.combine(accumulator, state.panes[number]), "an accumulator")
        except BaseException as err:
            emitted.append((Failed(accumulator, err), time))
        else:
            self.result(state, accumulator, time, emitted, bounds)


class CountWindow(Window):
    """The count windows of one step: each has the same number of messages. `WindowState.oldest` counts messages."""

    waits = True

    def __init__(self, aggregation: Any, window: Mapping[str, Any]) -> None:
        super().__init__(aggregation, window["flush_ms"])
        self.count: int = window["count"]

    def due(self, state: WindowState) -> int:
        """Return the time of the first tick that emits the open window. If ticks move time, it is always known."""
        return super().due(state) if self.waits else state.latest + self.patience

    def enter(self, state: WindowState, is_new: bool, message: Any, time: int) -> Given:
        """Add a message. The last message of a window emits the window."""
        if is_new:
            state.panes[0], state.first = self.initial(), time
        self.add(message, state.panes[0])
        state.oldest += 1
        state.latest, state.silent = time, None
        state.pane, state.high = state.panes[0], 1
        if state.oldest < self.count:
            return NOTHING
        emitted: Given = []
        state.is_over = True
        self.result(state, state.panes[0], time, emitted, (state.first, time))
        return emitted

    def tick(self, state: WindowState, time: int) -> tuple[Given, bool]:
        """Emit the open window although it is not full, and end the state of the key."""
        emitted: Given = []
        self.result(state, state.panes[0], state.latest, emitted, (state.first, state.latest))
        return emitted, True
