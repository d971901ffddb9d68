"""Windows, plainly: keeps every message, and looks at all of them for each window. Written from SPECIFICATION.md, section 8."""

from collections.abc import Callable, Iterable
from math import gcd
from typing import Any, NamedTuple

from vector.make_window_cases import SESSIONS, WINDOWS, ranges

Event = dict[str, Any]
FAILS_UPDATE, FAILS_OUTPUT = -1, -2
FIRST_TIME, LAST_TIME = -62_135_596_800_000, 253_402_300_799_999  # of the years 1 to 9999


class Given(NamedTuple):
    """What a window emitted, or a dead letter where `code` is set."""

    sequence: int
    key: str
    time: int
    values: tuple[int, ...]
    code: str = ""
    bounds: tuple[int, int] = (0, 0)


class RangeKey:
    """One key of a range window."""

    def __init__(self, window: dict[str, Any], first_time: int) -> None:
        self.window, self.t0 = window, first_time
        self.range, self.slide = window["range_ms"], window["slide_ms"]
        self.delay = -(-window["delay_ms"] // self.slide) * self.slide
        self.pane = gcd(self.range, self.slide)
        self.messages: list[tuple[int, int]] = []  # time, value
        self.latest = first_time
        self.has_begun = False
        self.silent_since: int | None = None
        self.late_since: int | None = None  # no message in time came since
        self.oldest = -((self.range + self.delay) // self.slide) - 2
        while self.end(self.oldest) <= first_time - self.delay:
            self.oldest += 1

    def begin(self, k: int) -> int:
        return self.t0 + k * self.slide

    def end(self, k: int) -> int:
        return self.begin(k) + self.range

    @property
    def last_time(self) -> int:
        """When the key ends, unless another message comes."""
        return self.latest + 2 * (self.range + self.delay)

    def due(self, now: int) -> Iterable[tuple[int, int, tuple[int, ...]]]:
        """Give begin, end and values of the windows that are due, in order."""
        if self.end(self.oldest) + self.delay > now:
            return
        while self.end(self.oldest) + self.delay <= now:
            begin, end = self.begin(self.oldest), self.end(self.oldest)
            inside = [(self.panes(time), value) for time, value in self.messages if begin <= time < end]
            inside.sort(key=lambda item: item[0])
            self.has_begun = self.has_begun or bool(inside)
            if self.has_begun:
                yield begin, end, tuple(value for _, value in inside)
            self.oldest += 1
        self.messages = [item for item in self.messages if item[0] >= self.begin(self.oldest)]

    def is_late(self, time: int) -> bool:
        return time < self.begin(self.oldest)

    def add(self, time: int, value: int) -> None:
        self.messages.append((time, value))

    def add_to_oldest(self, value: int) -> None:
        self.messages.append((self.begin(self.oldest), value))

    def panes(self, time: int) -> int:
        return (time - self.t0) // self.pane


class SessionKey:
    """One key of a session window; a session is first and last time, and the values."""

    def __init__(self, window: dict[str, Any], first_time: int) -> None:
        self.gap, self.delay = window["gap_ms"], window["delay_ms"]
        self.sessions: list[tuple[int, int, tuple[int, ...]]] = []
        self.latest = self.time = first_time
        self.silent_since: int | None = None
        self.late_since: int | None = None

    @property
    def last_time(self) -> int:
        return self.latest + self.gap + self.delay

    def due(self, now: int) -> Iterable[tuple[int, int, tuple[int, ...]]]:
        due = [each for each in self.sessions if each[1] + self.gap + self.delay <= now]
        self.sessions = [each for each in self.sessions if each not in due]
        for first, last, values in sorted(due):
            self.time = max(self.time, now)
            yield first, last + self.gap, values

    def of(self, time: int) -> list[tuple[int, int, tuple[int, ...]]]:
        """Return the open sessions that a time belongs to."""
        return sorted(each for each in self.sessions if each[0] - self.gap < time < each[1] + self.gap)

    def is_late(self, time: int) -> bool:
        return not self.of(time) and time + self.gap + self.delay <= self.time

    def add(self, time: int, value: int) -> None:
        joined = self.of(time)
        self.sessions = [each for each in self.sessions if each not in joined]
        times = [time, *(each[0] for each in joined), *(each[1] for each in joined)]
        self.sessions.append((min(times), max(times), (*(one for each in joined for one in each[2]), value)))
        self.time = max(self.time, time)

    def add_to_oldest(self, value: int) -> None:
        (first, last, values), *others = sorted(self.sessions)
        self.sessions = [(first, last, (*values, value)), *others]


class CountKey:
    """One key of a count window."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self.first = self.time = 0
        self.silent_since: int | None = None


class Reference:
    """One window step.

    Args:
        window: As in the topology.
        gives: Takes the values of a window; False: `output` gives none.
        has_watermarks: Whether ticks have times of the data, not of the clock.
    """

    def __init__(
        self,
        window: dict[str, Any],
        gives: Callable[[tuple[int, ...]], bool] = lambda values: True,
        *,
        has_watermarks: bool = False,
    ) -> None:
        self.window, self.gives = window, gives
        self.is_event = window.get("time") == "event"
        self.has_watermarks = has_watermarks
        self.is_moved_by_ticks = not self.is_event or has_watermarks
        self.keys: dict[str, Any] = {}
        self.given: list[Given] = []
        self.dropped = 0

    def run(self, events: Iterable[Event]) -> None:
        for event in sorted(events, key=lambda each: (each["sequence"], "tick" not in each)):
            if "tick" in event:
                self.tick(event["sequence"], event["tick"])
            else:
                self.message(event["sequence"], event["key"], event["time"], event["value"])

    def message(self, sequence: int, key: str, time: int, value: int) -> None:
        if not FIRST_TIME <= time <= LAST_TIME:
            self.given.append(Given(sequence, key, time, (), "C523"))
        elif value == FAILS_UPDATE and not self._is_dropped(key, time):
            self.given.append(Given(sequence, key, time, (), "C501"))
        elif self.window["kind"] == "count":
            self._count(sequence, key, time, value)
        else:
            self._timed(sequence, key, time, value)

    def _is_dropped(self, key: str, time: int) -> bool:
        """Say whether a message would be late and dropped, so that `update` is never called."""
        state = self.keys.get(key)
        if state is None or self.window.get("late") != "drop":
            return False
        return bool(state.is_late(time)) and not self._is_stuck(state, time)

    def _is_stuck(self, state: RangeKey | SessionKey, time: int) -> bool:
        """Say whether all messages have been late for as long as a key may be silent."""
        if self.is_event or state.late_since is None or not state.is_late(time):
            return False
        return time - state.late_since >= state.last_time - state.latest

    def _count(self, sequence: int, key: str, time: int, value: int) -> None:
        state = self.keys.setdefault(key, CountKey())
        state.first = state.first if state.values else time
        state.values.append(value)
        state.time, state.silent_since = time, None
        if len(state.values) == self.window["count"]:
            self._give(sequence, key, time, tuple(state.values), (state.first, time))
            del self.keys[key]

    def _timed(self, sequence: int, key: str, time: int, value: int) -> None:
        state = self.keys.get(key)
        if state is not None and time >= state.last_time:
            self._end(sequence, key, time)
            state = None
        elif state is not None and self._is_stuck(state, time):
            self._end(sequence, key, time)
            self.given.append(Given(sequence, key, time, (), "C524"))
            state = None
        if state is None:
            state = (RangeKey if self.window["kind"] == "range" else SessionKey)(self.window, time)
            self.keys[key] = state
        self._advance(sequence, key, time, time)
        if state.is_late(time):
            state.late_since = time if state.late_since is None else state.late_since
        else:
            state.silent_since = state.late_since = None
            state.add(time, value)
            state.latest = max(state.latest, time)
            return
        if self.window["late"] == "fire_per_message":
            self._give(sequence, key, time, (value,), (time, time))
        elif self.window["late"] == "place_in_oldest_window":
            state.add_to_oldest(value)
        else:
            self.dropped += 1

    def tick(self, sequence: int, now: int) -> None:
        for key in sorted(self.keys, key=str.encode):
            state = self.keys[key]
            if self.window["kind"] != "count" and self.is_moved_by_ticks:
                if now >= state.last_time:
                    self._end(sequence, key, now)
                else:
                    self._advance(sequence, key, now, now)
                continue
            if state.silent_since is None or now < state.silent_since:
                state.silent_since = now
            if self.window["kind"] == "count":
                if now - (state.time if self.has_watermarks else state.silent_since) >= self.window["flush_ms"]:
                    self._give(sequence, key, state.time, tuple(state.values), (state.first, state.time))
                    del self.keys[key]
            elif now - state.silent_since >= state.last_time - state.latest:
                self._end(sequence, key, now)
                if state.late_since is not None and state.latest > now:
                    self.given.append(Given(sequence, key, now, (), "C524"))

    def _end(self, sequence: int, key: str, now: int) -> None:
        self._advance(sequence, key, self.keys[key].last_time, now)
        del self.keys[key]

    def _advance(self, sequence: int, key: str, until: int, now: int) -> None:
        for begin, end, values in self.keys[key].due(until):
            self._give(sequence, key, end - 1 if self.is_event else now, values, (begin, end))

    def _give(self, sequence: int, key: str, time: int, values: tuple[int, ...], bounds: tuple[int, int]) -> None:
        if FAILS_OUTPUT in values:
            self.given.append(Given(sequence, key, time, values, "C517"))
        elif self.gives(values):
            self.given.append(Given(sequence, key, time, values, bounds=bounds))


def events(text: str, message: Callable[[str], Event]) -> list[Event]:
    """Read words that `message` reads, and `|10` (a tick); a message's sequence is its position among messages.

    `@3 ` before an event sets its sequence.
    """
    found: list[Event] = []
    sequence = 0
    forced = None
    for word in text.split():
        if word.startswith("@"):
            forced = int(word[1:])
            continue
        at = sequence if forced is None else forced
        forced = None
        is_tick = word.startswith("|")
        found.append({"sequence": at} | ({"tick": int(word[1:])} if is_tick else message(word)))
        sequence = sequence if is_tick else at + 1
    return found


def message(word: str) -> Event:
    """Read `a10=1`: key, time and value."""
    place, value = word.split("=")
    return {"key": place[0], "time": int(place[1:]), "value": int(value)}


def window_vectors() -> dict[str, Any]:
    return {"cases": [_case(*window) for window in (*WINDOWS, *SESSIONS)]}


def wrong_windows() -> list[dict[str, Any]]:
    case = _case("a window ends one message too late", ranges(10), "a0=1 a10=2 a20=3")
    return [case | {"outputs": [output | {"sequence": output["sequence"] + 1} for output in case["outputs"]]}]


def _case(name: str, window: dict[str, Any], text: str) -> dict[str, Any]:
    reference = Reference(window)
    reference.run(events(text, message))
    order = [event["sequence"] for event in events(text, message)]
    return {
        "name": name,
        "window": window,
        "events": events(text, message),
        "is_one_call": order != sorted(order),
        "outputs": [_output(given) for given in reference.given if not given.code],
        "dead_letters": [
            {"sequence": given.sequence, "key": given.key, "time": given.time, "code": given.code}
            for given in reference.given
            if given.code
        ],
        "dropped": reference.dropped,
        "keys": sorted(reference.keys),
    }


def _output(given: Given) -> dict[str, Any]:
    what = {"sequence": given.sequence, "key": given.key, "time": given.time, "values": list(given.values)}
    return what | {"bounds": list(given.bounds)}
