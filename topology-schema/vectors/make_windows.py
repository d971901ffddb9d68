"""Windows, plainly: keeps every message, and looks at all of them for each window. Written from SPECIFICATION.md, section 8."""

from collections.abc import Callable, Iterable
from math import gcd
from typing import Any, NamedTuple

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

    def panes(self, time: int) -> int:
        return (time - self.t0) // self.pane


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
            self._range(sequence, key, time, value)

    def _is_dropped(self, key: str, time: int) -> bool:
        """Say whether a message would be late and dropped, so that `update` is never called."""
        state = self.keys.get(key)
        if state is None or self.window.get("late") != "drop":
            return False
        return bool(state.is_late(time)) and not self._is_stuck(state, time)

    def _is_stuck(self, state: RangeKey, time: int) -> bool:
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

    def _range(self, sequence: int, key: str, time: int, value: int) -> None:
        state = self.keys.get(key)
        if state is not None and time >= state.last_time:
            self._end(sequence, key, time)
            state = None
        elif state is not None and self._is_stuck(state, time):
            self._end(sequence, key, time)
            self.given.append(Given(sequence, key, time, (), "C524"))
            state = None
        if state is None:
            state = self.keys[key] = RangeKey(self.window, time)
        self._advance(sequence, key, time, time)
        if state.is_late(time):
            state.late_since = time if state.late_since is None else state.late_since
        else:
            state.silent_since = state.late_since = None
            state.messages.append((time, value))
            state.latest = max(state.latest, time)
            return
        if self.window["late"] == "fire_per_message":
            self._give(sequence, key, time, (value,), (time, time))
        elif self.window["late"] == "place_in_oldest_window":
            state.messages.append((state.begin(state.oldest), value))
        else:
            self.dropped += 1

    def tick(self, sequence: int, now: int) -> None:
        for key in sorted(self.keys, key=str.encode):
            state = self.keys[key]
            if self.window["kind"] == "range" and self.is_moved_by_ticks:
                if now >= state.last_time:
                    self._end(sequence, key, now)
                else:
                    self._advance(sequence, key, now, now)
                continue
            if state.silent_since is None or now < state.silent_since:
                state.silent_since = now
            if self.window["kind"] == "count":
                if now - state.silent_since >= self.window["flush_ms"]:
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


def ranges(size: int, slide: int = 0, delay: int = 0, late: str = "drop", time: str = "ingest") -> dict[str, Any]:
    return {
        "kind": "range", "range_ms": size, "slide_ms": slide or size, "delay_ms": delay, "late": late, "time": time,
    }  # fmt: skip


def counts(count: int, flush: int = 5000) -> dict[str, Any]:
    return {"kind": "count", "count": count, "flush_ms": flush}


def events(text: str) -> list[Event]:
    """Read `a10=1` (key, time, value) and `|10` (a tick); a message's sequence is its position among messages.

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
        if word.startswith("|"):
            found.append({"sequence": at, "tick": int(word[1:])})
            continue
        place, value = word.split("=")
        found.append({"sequence": at, "key": place[0], "time": int(place[1:]), "value": int(value)})
        sequence = at + 1
    return found


WINDOWS: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("tumbling: given out at the message that ends it, before that is added", ranges(10), "a100=1 a105=2 a109=3 a110=4 a119=5 a120=6"),
    ("tumbling: one millisecond before the end is inside", ranges(10), "a0=1 a9=2 a10=3"),
    ("sliding: each message is in range / slide windows", ranges(9, 3), "a0=1 a1=2 a3=3 a5=4 a8=5 a9=6 a12=7 a20=8"),
    ("windows begin at the first message, not at zero", ranges(10), "a7=1 a16=2 a17=3"),
    ("a first message before 1970", ranges(10, 5), "a-23=1 a-20=2 a-18=3 a-3=4"),
    ("a slide that does not divide the range", ranges(10, 4), "a0=1 a1=2 a3=3 a6=4 a7=5 a10=6 a14=7 a15=8 a22=9 a29=10"),
    ("a range of one millisecond", ranges(1), "a5=1 a5=2 a6=3 a8=4"),
    ("a slide of one millisecond", ranges(3, 1), "a5=1 a6=2 a6=3 a9=4"),
    ("values of a later pane stand behind those of an earlier one", ranges(9, 3, 9), "a10=1 a14=2 a11=3 a18=4 a30=5 a48=6"),
    ("several keys", ranges(10, 5), "a0=1 b2=2 a4=3 c9=4 b12=5 a20=6 c14=7 b30=8"),
    ("equal times, equal keys", ranges(10), "a5=1 a5=1 a5=2 b5=1 a15=3 a15=4 b15=5"),
    ("a gap: windows without messages are given out", ranges(10), "a0=1 a25=2 a44=3 a63=4"),
    ("a gap of the longest silence minus one", ranges(10), "a0=1 a19=2 a40=3"),
    ("a gap of the longest silence: the key ends, and begins anew", ranges(10), "a0=1 a20=2 a29=3 a30=4"),
    ("a gap of years costs no more", ranges(10), "a0=1 a99999999999=2 a100000000009=3"),
    ("sliding: a gap ends the key", ranges(9, 3), "a1=1 a4=2 a22=3 a23=4 a40=5 a41=6"),
    ("delay: a window waits", ranges(10, 10, 10), "a0=1 a12=2 a19=3 a20=4 a31=5 a40=6"),
    ("delay is rounded up to a multiple of the slide", ranges(9, 3, 1), "a0=1 a3=2 a5=3 a6=4 a9=5 a12=6 a15=7"),
    ("delay: a late message finds its window", ranges(10, 10, 10), "a0=1 a15=2 a8=3 a19=4 a20=5"),
    ("delay: a message before the first one", ranges(10, 10, 20), "a100=1 a95=2 a85=3 a81=4 a140=5 a160=6"),
    ("delay: empty windows before the first message are not given out", ranges(10, 5, 10), "a100=1 a130=2 a160=3"),
    ("delay: an empty window between two that have messages", ranges(10, 10, 40), "a0=1 a35=2 a85=3 a150=4"),
    ("late: dropped", ranges(10), "a0=1 a12=2 a9=3 a5=4 a13=5 a22=6"),
    ("late: given out at once", ranges(10, 10, 0, "fire_per_message"), "a0=1 a12=2 a9=3 a10=4 a13=5 a22=6"),
    ("late: into the oldest window", ranges(10, 10, 0, "place_in_oldest_window"), "a0=1 a12=2 a9=3 a13=4 a22=5 a0=6 a30=7"),
    ("late: the oldest of sliding windows, its first pane", ranges(9, 3, 0, "place_in_oldest_window"), "a0=1 a10=2 a0=3 a11=4 a12=5 a15=6 a18=7 a21=8"),
    ("late is older than the oldest window, not than the latest message", ranges(9, 3), "a0=1 a10=2 a4=3 a3=4 a2=5 a12=6 a14=7"),
    ("late: the latest message stays the latest", ranges(10, 10, 10, "fire_per_message"), "a0=1 a45=2 a5=3 a84=4 a85=5"),
    ("ticks move time", ranges(10), "a0=1 |5 |9 |10 a10=2 |15 |20"),
    ("ticks: no output before the end, all that are due after it", ranges(9, 3), "a0=1 |2 |3 |6 |8 |9 |11 |12"),
    ("ticks: empty windows until the longest silence, then the key ends", ranges(10), "a0=1 |10 |19 |20 |30 |40 a45=2 |55"),
    ("ticks: sparse ones give the same", ranges(9, 3), "a0=1 |100 a101=2 |300"),
    ("ticks: a message resets the silence", ranges(10), "a0=1 |15 a16=2 |20 |30 |35 |36 |50"),
    ("ticks: all keys, by their bytes", ranges(10), "z0=1 b1=2 a2=3 |30 |60"),
    ("ticks: nothing for keys without state", ranges(10), "|10 |20 a25=1 |26 |35 |45 |46"),
    ("ticks with delay", ranges(10, 5, 7), "a0=1 |14 |15 |19 |20 |24 |25"),
    ("a tick stands before the message of its sequence", ranges(10), "a0=1 |12 a11=2 |21 a21=3"),
    ("two ticks between two messages", ranges(10), "a0=1 |11 |12 a13=2"),
    ("sequences tell the order, not frames", ranges(10), "@0 a0=1 @3 a12=2 @5 a21=3 @1 a5=4 @2 a9=5 @4 |15 @3 |11"),
    ("event time: a tick moves no time", ranges(10, 10, 0, "drop", "event"), "a0=1 |100 a5=2 |101 a10=3 |102 a15=4 a20=5"),
    ("event time: a key that got no message ends", ranges(10, 10, 0, "drop", "event"), "a0=1 |1000 |1019 |1020 |1040 a5=2 a15=3"),
    ("event time: silence counts from the first tick behind the message", ranges(10, 10, 0, "drop", "event"), "|990 a0=1 |1000 |1019 a3=2 |1025 |1044 |1045"),
    ("event time: at the end all windows come, in order", ranges(9, 3, 3, "drop", "event"), "a0=1 a5=2 a11=3 |50 |73 |74 |200"),
    ("event time: another key's messages are not one's own", ranges(10, 10, 0, "drop", "event"), "a0=1 b3=2 |100 b5=3 |119 |120 |125 |139 |140"),
    ("event time: a late message does not end the silence", ranges(10, 10, 0, "drop", "event"), "a0=1 a12=2 |100 a1=3 |119 a0=4 |120 a5=5"),
    ("event time: one in time does", ranges(10, 10, 0, "drop", "event"), "a0=1 a12=2 |100 a1=3 |110 a13=4 |115 |120 |134 |135"),
    ("event time: a message of the year 5000", ranges(10, 5, 0, "drop", "event"), "a1000=1 |1000 a95617584000000=2 a1003=3 |1010 a1013=4 |1020 a1024=5 |1030 a1036=6 a1048=7"),
    ("event time: a message of the year 5000, all others given out at once", ranges(10, 10, 0, "fire_per_message", "event"), "a95617584000000=1 a3=2 |10 a12=3 |30 a33=4 a44=5"),
    ("event time: a message of the year 5000, all others in one window", ranges(10, 10, 0, "place_in_oldest_window", "event"), "a95617584000000=1 a3=2 |10 a12=3 |30 a33=4 a44=5"),
    ("event time: the year 5000, and nobody is late", ranges(10, 10, 0, "drop", "event"), "a95617584000000=1 |10 |30 a31=2 a45=3"),
    ("event time: late ones before a silence are not told", ranges(10, 10, 0, "drop", "event"), "a0=1 a12=2 a1=3 |100 |120"),
    ("ticks that go back: silence counts from the earlier one", ranges(10, 10, 0, "drop", "event"), "a0=1 |1000 b0=2 |500 |519 |520 a3=3 |600 |619 |620"),
    ("count: ticks that go back", counts(3, 50), "a0=1 |1000 b0=9 |400 |449 |450 b0=8 |300 a0=2 |320 |350 |369 |370"),
    ("the clock is set back: late for the longest silence, then the key begins anew", ranges(10), "a5000=1 a100=2 a110=3 |115 a119=4 |119 a120=5 a125=6 |130 |131 |200"),
    ("the clock is set back: given out at once, then anew", ranges(10, 5, 0, "fire_per_message"), "a5000=1 a100=2 a110=3 a119=4 a120=5 a131=6"),
    ("the clock is set back: in the oldest window, then anew", ranges(10, 5, 0, "place_in_oldest_window"), "a5000=1 a100=2 a110=3 a120=5 a131=6"),
    ("the clock is set back a little: a message in time ends the count", ranges(10), "a50=1 a38=2 a39=3 a52=4 a38=5 a39=6 a58=7 a60=8"),
    ("update fails where the key would begin anew", ranges(10), "a5000=1 a100=2 a120=-1 a110=3 a121=4 a131=5"),
    ("impossible times", ranges(10), "a-62135596800001=1 a-62135596800000=2 a-62135596799990=3 a253402300799999=4 a253402300800000=5 b253402300800000=6"),
    ("impossible times: count", counts(2), "a253402300800000=1 a0=2 a-62135596800001=3 a9223372036854775807=4 a-9223372036854775808=5 a2=6"),
    ("count: every so many", counts(3), "a0=1 a0=2 b5=9 a1=3 a7=4 b6=8 a8=5 a9=6"),
    ("count of one", counts(1), "a0=1 b0=2 a1=3"),
    ("count: what there is, after a silence", counts(3, 50), "a0=1 a1=2 |100 |149 |150 |200 a9=3 |210 |259 |260"),
    ("count: a message ends the silence", counts(3, 50), "a0=1 |100 a1=2 |149 |150 |198 |199"),
    ("count: a full window is not given out again", counts(2, 50), "a0=1 a1=2 |100 |150 |300"),
    ("count: several keys are silent", counts(3, 50), "c0=1 a1=2 b2=3 |100 b3=4 |150 |200 |250"),
    ("update fails: the message is a dead letter", ranges(10), "a0=1 a3=-1 a10=2 a15=-1 a20=3"),
    ("update fails on the first message: no state", ranges(10), "a5=-1 a7=1 a16=2 a17=3"),
    ("update fails: what the message made due comes with the next", ranges(10), "a0=1 a11=-1 a12=2 a30=-1 |31 |40"),
    ("update is not called for a late message that is dropped", ranges(10), "a0=1 a12=2 a3=-1 a22=3"),
    ("update fails for a late message that is given out", ranges(10, 10, 0, "fire_per_message"), "a0=1 a12=2 a3=-1 a22=3"),
    ("output fails: the window counts as given out", ranges(10), "a0=1 a3=-2 a10=2 a20=3 |50"),
    ("output fails at a tick, other keys go on", ranges(10), "a0=-2 b1=1 |30 |60"),
    ("count: output fails", counts(2), "a0=-2 a1=1 a2=2 a3=3"),
    ("count: update fails", counts(2, 50), "a0=1 a1=-1 a2=2 b3=-1 |5 |90"),
)  # fmt: skip


def window_vectors() -> dict[str, Any]:
    return {"cases": [_case(*window) for window in WINDOWS]}


def wrong_windows() -> list[dict[str, Any]]:
    case = _case("a window ends one message too late", ranges(10), "a0=1 a10=2 a20=3")
    return [case | {"outputs": [output | {"sequence": output["sequence"] + 1} for output in case["outputs"]]}]


def _case(name: str, window: dict[str, Any], text: str) -> dict[str, Any]:
    reference = Reference(window)
    reference.run(events(text))
    order = [event["sequence"] for event in events(text)]
    return {
        "name": name,
        "window": window,
        "events": events(text),
        "is_one_call": order != sorted(order),
        "outputs": [_output(given) for given in reference.given if not given.code],
        "dead_letters": [
            {"sequence": given.sequence, "key": given.key, "code": given.code}
            for given in reference.given
            if given.code
        ],
        "dropped": reference.dropped,
        "keys": sorted(reference.keys),
    }


def _output(given: Given) -> dict[str, Any]:
    what = {"sequence": given.sequence, "key": given.key, "time": given.time, "values": list(given.values)}
    return what | {"bounds": list(given.bounds)}
