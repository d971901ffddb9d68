"""Time of state steps, plainly: looks at all timers of all keys at each tick. Written from SPECIFICATION.md, section 8."""

import random
import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from vector.make_windows import FIRST_TIME, LAST_TIME, Event, events

Behaviour = dict[str, Any]  # of a timer's callback
Due = tuple[int, int, bytes]  # time; 1: the state ends, 0: a timer; name
FAILS = -1
YEAR_MS = 31_536_000_000
END = 1 << 60  # a tick of the end of the data
MOST = 10_000  # timers that run as a key wakes


class Failure(Exception):
    """User code failed; the argument is the code."""


@dataclass
class Key:
    """What there is of one key: the values that came, and its times."""

    values: list[int] = field(default_factory=list)
    time: int | None = None
    silent: int | None = None
    timers: dict[str, int] = field(default_factory=dict)  # by name: when it is due


class Reference:
    """The steps that share one state.

    Args:
        steps: For each one its timers, whose names differ: what the callback of each does.
        time: `ingest`, `event`, or `watermarks`: that of the data, and so are the times of ticks.
        ttl_ms: Of the state; 0: none.
        before: Values of keys whose state has no times, since the steps had none.
    """

    def __init__(
        self, steps: list[dict[str, Behaviour]], time: str, ttl_ms: int = 0, before: dict[str, list[int]] | None = None
    ) -> None:
        self.steps, self.is_event, self.ttl_ms = steps, time != "ingest", ttl_ms
        self.has_watermarks = time == "watermarks"
        self.keys = {key: Key(list(values)) for key, values in (before or {}).items()}
        self.outputs: list[dict[str, Any]] = []
        self.dead_letters: list[dict[str, Any]] = []
        self.expired = self.fired = 0
        self.visited: list[int] = []  # keys of each visit

    def run(self, events: Iterable[Event]) -> None:
        for event in sorted(events, key=lambda e: (e["sequence"], "tick" not in e, "visit" in e, e.get("tick", 0))):
            if "tick" in event:
                self.tick(event["sequence"], event["tick"])
                self.visited += [len(self.keys)] if "visit" in event else []
            else:
                self.message(event)

    def message(self, event: Event) -> None:
        sequence, key, time, step = event["sequence"], event["key"], event["time"], event.get("step", 0)
        if not FIRST_TIME <= time <= LAST_TIME:
            self._letter(sequence, key, time, step, "C523")
            return
        self._wake(key, time, sequence, time)
        state = deepcopy(self.keys.get(key, Key()))
        try:
            self._apply(state, step, event.get("ops", ()), time)
            if event["value"] == FAILS:
                raise Failure("C501")
        except Failure as failure:
            self._letter(sequence, key, time, step, str(failure))
            return
        state.values.append(event["value"])
        state.time = time if state.time is None else max(state.time, time)
        state.silent = None
        self.keys[key] = state
        self._give(sequence, key, time, step, "", time)

    def tick(self, sequence: int, now: int) -> None:
        for key in sorted(self.keys, key=str.encode):
            state = self.keys[key]
            state.time = now if state.time is None else state.time
            if not self.is_event or self.has_watermarks:
                self._wake(key, now, sequence, now)
                continue
            state.silent = now if state.silent is None else min(state.silent, now)
            self._wake(key, state.time + now - state.silent, sequence, now)

    def _wake(self, key: str, until: int, sequence: int, cause: int) -> None:
        """Do what is due at or before a time, in the order of times, with what is set meanwhile.

        `cause` is the time of the message or tick. At the end of the data each timer runs once.
        """
        is_end, last, ran = self.has_watermarks and until > LAST_TIME, (-END, 0, b""), set[bytes]()
        for _ in range(MOST):
            due = [each for each in self._due(key, until) if (each[-1] not in ran if is_end else each > last)]
            if not due:
                break
            last = due[0]
            ran.add(last[-1])
            self._run_due(key, last, sequence, cause)
        if is_end and key in self.keys:
            self.keys[key].timers.clear()

    def _due(self, key: str, until: int) -> list[Due]:
        if key not in self.keys:
            return []
        state = self.keys[key]
        due = [(time, 0, name.encode()) for name, time in state.timers.items() if time <= until]
        if self.ttl_ms and state.time is not None and state.time + self.ttl_ms <= until:
            due.append((state.time + self.ttl_ms, 1, b""))
        return sorted(due)

    def _run_due(self, key: str, due: Due, sequence: int, cause: int) -> None:
        time, is_expiry, data = due
        if is_expiry:
            del self.keys[key]
            self.expired += 1
        else:
            self._fire(key, data.decode(), time, sequence, cause)

    def _fire(self, key: str, name: str, due: int, sequence: int, cause: int) -> None:
        (step,) = (number for number, timers in enumerate(self.steps) if name in timers)
        behaviour = self.steps[step][name]
        del self.keys[key].timers[name]
        self.fired += 1
        state = deepcopy(self.keys[key])
        try:
            self._apply(state, step, behaviour.get("ops", ()), due)
            if behaviour.get("fails"):
                raise Failure("C501")
        except Failure as failure:
            self._letter(sequence, key, due if self.is_event else cause, step, str(failure), name)
            return
        state.values += behaviour.get("appends", ())
        self.keys[key] = state
        if behaviour.get("gives"):
            self._give(sequence, key, due if self.is_event else cause, step, name, due)
        if behaviour.get("deletes"):
            del self.keys[key]

    def _apply(self, state: Key, step: int, ops: Iterable[dict[str, Any]], now: int) -> None:
        for op in ops:
            name = op["set"] if "set" in op else op["delete"]
            if name not in self.steps[step]:
                raise Failure("C529")
            if "delete" in op:
                state.timers.pop(name, None)
                continue
            due = now + op["after"] if "after" in op else op["at"]
            if op.get("after", 0) < 0 or not FIRST_TIME <= due <= LAST_TIME:
                raise Failure("C529")
            state.timers[name] = due

    def _give(self, sequence: int, key: str, time: int, step: int, timer: str, now: int) -> None:
        given = {"sequence": sequence, "key": key, "time": time, "step": step}
        self.outputs.append(given | {"timer": timer, "now": now, "values": list(self.keys[key].values)})

    def _letter(self, sequence: int, key: str, time: int, step: int, code: str, timer: str = "") -> None:
        found = {"sequence": sequence, "key": key, "time": time, "step": step, "code": code, "timer": timer}
        self.dead_letters.append(found)

    def left(self) -> list[dict[str, Any]]:
        """Return the keys with state, in the order of their bytes: their values, and their timers."""
        return [
            {
                "key": key,
                "values": state.values,
                "timers": [[name, due] for name, due in sorted(state.timers.items())],
            }
            for key, state in sorted(self.keys.items(), key=lambda item: item[0].encode())
        ]


WORD = re.compile(r"(?:(\d):)?([^\d-])(-?\d+)=(-?\d+)(.*)")
OP = re.compile(r"([+@])(\w)(-?\d+)|-(\w)")


def message(word: str) -> Event:
    """Read `a10=1+x5@y30-z`: key, time, value, and what the message does to timers.

    `+x5` sets x 5 later, `@y30` sets y to 30, `-z` deletes z. `1:` before it names the step, else 0.
    """
    match = WORD.fullmatch(word)
    assert match is not None, word
    step, key, time, value, rest = match.groups()
    event: Event = {"key": key, "time": int(time), "value": int(value)}
    return event | ({"step": int(step)} if step else {}) | ({"ops": ops(rest)} if rest else {})


def ops(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for sign, name, time, gone in OP.findall(text):
        found.append({"delete": gone} if gone else {"set": name, "after" if sign == "+" else "at": int(time)})
    return found


def callback(
    text: str = "", *appends: int, gives: bool = True, deletes: bool = False, fails: bool = False
) -> Behaviour:
    """Describe a callback: what it does to timers, values that it adds; whether it emits, deletes the state, or fails."""
    found: Behaviour = {"ops": ops(text)} if text else {}
    found |= {"appends": list(appends)} if appends else {}
    return found | {name: True for name, is_so in (("gives", gives), ("deletes", deletes), ("fails", fails)) if is_so}


X = [{"x": callback()}]
XY = [{"x": callback(), "y": callback()}]
TTL = [{}]

TIMERS: tuple[tuple[str, list[dict[str, Behaviour]], str, int, str], ...] = (
    ("a timer fires once, at a tick", X, "ingest", 0, "a10=1+x5 |14 |15 |16 |100"),
    ("a timer fires at a tick that comes late, with the time at which it was due", X, "ingest", 0, "a10=1+x5 |1000"),
    ("a timer fires before the message that wakes its key", X, "ingest", 0, "a10=1+x5 a15=2 a16=3"),
    ("a message of another key wakes no key", X, "ingest", 0, "a10=1+x5 b20=2 |20"),
    ("a timer at a time", X, "ingest", 0, "a10=1@x12 a11=2 a12=3"),
    ("a time that is over: the next message or tick", X, "ingest", 0, "a10=1@x-5 a11=2 b10=1@x3 |4"),
    ("after no time: not before the next message or tick", X, "ingest", 0, "a10=1+x0 a10=2 b10=1+x0 |9 |10"),
    ("a timer is replaced", X, "ingest", 0, "a10=1+x5 a12=2+x10 |15 |21 |22 |30"),
    ("a timer is deleted", X, "ingest", 0, "a10=1+x5 a12=2-x |15 |30 a31=3-x"),
    ("set and deleted by one message, deleted and set", X, "ingest", 0, "a10=1+x5-x b10=1-x+x5 |15"),
    ("several timers in order of their times", XY, "ingest", 0, "a10=1+x9+y5 |30 b30=1+x5+y9 |60"),
    ("several timers of one time in order of their names", [{"y": callback(), "x": callback(), "z": callback()}], "ingest", 0, "a10=1+z5+y5+x5 |30"),
    ("several keys in order of their bytes, not of their timers", X, "ingest", 0, "b10=1+x1 é10=1+x0 a10=1+x5 |30"),
    ("a callback sets its timer again", [{"x": callback("+x10")}], "ingest", 0, "a0=1+x10 |9 |10 |19 |20 |55 |56 a60=2"),
    ("a callback sets another timer, which is due at the same tick or message as well", [{"x": callback("+y1"), "y": callback()}], "ingest", 0, "a0=1+x10 |50 |50 a51=2+x1 a60=3 a60=4"),
    ("a callback sets timers to its own time, and before it: they wait", [{"x": callback("+x0+y0"), "y": callback("@x5")}], "ingest", 0, "a0=1+x10 |35 |36 |37 a40=2"),
    ("a callback sets a timer that precedes one that is due as well, which deletes the state", [{"x": callback("+y2"), "y": callback(), "z": callback(deletes=True)}], "ingest", 0, "a0=1+x2+z9 a30=2 |40 b50=1+x2+z9 |60"),
    ("ttl and timers: a timer that is set meanwhile precedes the end", [{"x": callback("+x6", 9)}], "ingest", 20, "a0=1+x6 a100=2 |101 b200=1+x6 |300"),
    ("a key wakes for 10000 timers at once, others wait", [{"x": callback("+x1", gives=False)}], "ingest", 20_000, "a0=1+x1 |10002 |10004"),
    ("a callback deletes a timer that is due as well", [{"x": callback("-y"), "y": callback()}], "ingest", 0, "a0=1+x5+y6 |50 |60"),
    ("a callback replaces a timer that is due as well", [{"x": callback("+y2"), "y": callback()}], "ingest", 0, "a0=1+x5+y6 |50 |60"),
    ("a callback sets a timer that is due to the time that it has", [{"x": callback("@y6"), "y": callback()}], "ingest", 0, "a0=1+x5+y6 |50 |60"),
    ("a callback changes the state", [{"x": callback("", 7, 8, gives=False)}], "ingest", 0, "a0=1+x5 |10 a11=2"),
    ("a callback emits nothing and changes nothing", [{"x": callback(gives=False)}], "ingest", 0, "a0=1+x5 |10 a11=2"),
    ("a callback deletes the state: other timers are gone", [{"x": callback(deletes=True), "y": callback()}], "ingest", 0, "a0=1+x5+y6 b0=1+x5+y60 |10 |70 a71=2"),
    ("a callback deletes the state and sets a timer: it is gone", [{"x": callback("+y1", deletes=True), "y": callback()}], "ingest", 0, "a0=1+x5 |10 |70 a71=2"),
    ("a callback fails: the timer is gone, all else as before, others go on", [{"x": callback("+y1+x9", fails=True), "y": callback()}], "ingest", 0, "a0=1+x5+y6 b0=1+x5 |10 |70 a71=2"),
    ("a message fails: its timers are not set, those that it made due have fired", XY, "ingest", 0, "a0=1+x5 a10=-1+y1-x+x9 |30 b30=-1+x1 |60 b61=1"),
    ("a message fails: the time of its key is as before", TTL, "ingest", 20, "a0=1 a15=-1 |19 |20 a21=1"),
    ("names that the step did not declare", X, "ingest", 0, "a0=1+q5 a1=2+x5-q a2=3+x5 |9"),
    ("a time before the message, and impossible times", X, "ingest", 0, "a0=1+x-1 a1=2@x253402300800000 a2=3@x-62135596800001 a3=4@x253402300799999 b4=5@x-62135596800000 |5"),
    ("a timer a year ahead", X, "ingest", 0, f"a0=1+x{YEAR_MS} |1000 |{YEAR_MS - 1} |{YEAR_MS}"),
    ("impossible times of messages wake nobody", X, "ingest", 0, "a0=1+x5 a-62135596800001=1 a253402300800000=2 a9223372036854775807=3 a-9223372036854775808=4 |9"),
    ("ticks that go back", X, "ingest", 0, "a100=1+x5 |104 |50 |105"),
    ("a tick precedes the message of its sequence", X, "ingest", 0, "a0=1+x5 |6 a5=2+x5 |12 a6=3"),
    ("sequences tell the order, not frames", X, "ingest", 0, "@0 a0=1+x5 @3 a12=2+x1 @5 a21=3 @1 a5=4+x2 @2 a9=5 @4 |15 @3 |11"),
    ("ticks of one sequence run by their times", X, "ingest", 0, "a0=1+x5 @1 |20 @1 |4 @1 |5 a21=2"),
    ("ttl: a key without message for so long has no state", TTL, "ingest", 20, "a0=1 a5=2 |24 |25 a26=3"),
    ("ttl: gone before the message that comes too late", TTL, "ingest", 20, "a0=1 a20=2 a39=3 a59=4"),
    ("ttl: a message of an earlier time does not prolong it", TTL, "ingest", 20, "a10=1 a5=2 |29 |30"),
    ("ttl: another key's messages do not prolong it", TTL, "ingest", 20, "a0=1 b10=2 |20 |30"),
    ("ttl: of one millisecond", TTL, "ingest", 1, "a0=1 a0=2 a1=3 |1 |2"),
    ("ttl: a clock that is set back", TTL, "ingest", 20, "a1000=1 a10=2 |40 |1019 |1020 a0=3 |20"),
    ("ttl and timers: a timer precedes the end at the same time", X, "ingest", 20, "a0=1+x20 |20 |30 a31=2"),
    ("ttl and timers: the end takes timers away", X, "ingest", 20, "a0=1+x21 |20 |30 b30=1+x25 |60 c60=1+x100 c80=2 |200"),
    ("ttl and timers: in order of their times, at one tick", XY, "ingest", 20, "a0=1+x19+y21 |100"),
    ("ttl and timers: callbacks do not prolong it", [{"x": callback("+x5", 9)}], "ingest", 20, "a0=1+x5 |5 |10 |15 |19 |20 |25"),
    ("ttl: from before there was one", TTL, "ingest", 20, "a5=2 |100 |119 |120 |124 |125"),
    ("event: a tick moves no time", X, "event", 0, "a0=1+x50 |1000 a10=2 |1001 a49=3 |1002 a50=4"),
    ("event: a key that got no message goes on with the ticks", X, "event", 0, "a0=1+x50 |1000 |1049 |1050 |1100"),
    ("event: silence counts from the first tick after the message", X, "event", 0, "|990 a0=1+x50 |1000 |1049 a3=2 |1060 |1106 |1107"),
    ("event: what a callback emits has the time at which it was due", XY, "event", 0, "a0=1+x50+y60 |1000 |2000 b0=1+x50+y60 b70=2"),
    ("event: an earlier message wakes at its own time", X, "event", 0, "a100=1@x50 a40=2 a60=3 |9 a20=4@x90 |19"),
    ("event: an earlier message ends the silence, too", X, "event", 0, "a100=1+x50 |1000 a90=2 |1040 |1089 |1090"),
    ("event: a failed message does not end the silence", X, "event", 0, "a0=1+x50 |1000 a10=-1 |1049 |1050"),
    ("event: another key's messages are not one's own", X, "event", 0, "a0=1+x50 |1000 b90=2 |1040 |1050"),
    ("event: ticks that go back count from the earlier one", X, "event", 0, "a0=1+x50 |1000 |500 |549 |550"),
    ("event: a callback sets its timer again by the time at which it was due", [{"x": callback("+x10", 9)}], "event", 0, "a0=1+x10 |1000 |1010 |1011 |1019 |1020 |1055 |1056"),
    ("event: timers of timers between two messages far apart", [{"x": callback("+y10"), "y": callback("+x7-z"), "z": callback()}], "event", 0, "a0=1+x10+z29 a60=2 a61=3 |10 |30"),
    ("event: a callback sets a timer that precedes one that is due as well, which deletes the state", [{"x": callback("+y2"), "y": callback(), "z": callback(deletes=True)}], "event", 0, "a0=1+x2+z9 a30=2 b0=1+x2+z9 |40 |60"),
    ("event: a timer that is set meanwhile precedes the end of the state", [{"x": callback("+x6", 9)}], "event", 20, "a0=1+x6 a100=2 b0=1+x6 |1000 |1100"),
    ("event: timers of timers, a late message runs those of its own time", [{"x": callback("+x10", 9)}], "event", 0, "a0=1+x10 a5=2 a100=3-x a40=4+x10 a75=5 |10"),
    ("event: a message of the year 5000", X, "event", 0, "a1000=1+x50 a95617584000000=2 a1003=3+x5 |10 |20"),
    ("event: ttl", TTL, "event", 20, "a0=1 |1000 |1019 |1020 b0=1 a0=2 b19=3 b39=4"),
    ("event: ttl, an earlier message", TTL, "event", 20, "a100=1 a50=2 |1000 a60=3 |1010 |1029 |1030"),
    ("event: ttl and timers", XY, "event", 20, "a0=1+x19+y20 b0=1+x21 c5=1+x5 |1000 |1100 c50=2"),
    ("event: ttl, from before there was one", TTL, "event", 20, "a5=2 |100 |119 |120 |124 |125"),
    ("watermarks: a tick moves time", X, "watermarks", 0, "a0=1+x50 |49 b40=1+x50 |50 a60=2 |89 |90"),
    ("watermarks: a timer fires before the message that wakes its key", X, "watermarks", 0, "a10=1+x5 a15=2 b20=3 a16=4 |20"),
    ("watermarks: a message before them sets a timer that is over", X, "watermarks", 0, "a0=1 |100 a10=2+x5 |100 |101"),
    ("watermarks: a callback sets its timer again, and all that is due fires", [{"x": callback("+x10")}], "watermarks", 0, "a0=1+x10 |35 a61=2 |70"),
    ("watermarks: a callback sets timers to its own time, and before it", [{"x": callback("+x0+y0"), "y": callback("@x5")}], "watermarks", 0, "a0=1+x10 |35 |36 |37"),
    ("watermarks: a callback deletes and replaces timers that are due as well", [{"x": callback("-y+z9"), "y": callback(), "z": callback()}], "watermarks", 0, "a0=1+x5+y6+z7 |10 |14"),
    ("watermarks: a timer that is set meanwhile precedes the end of the state", [{"x": callback("+x6", 9)}], "watermarks", 20, "a0=1+x6 |100 a100=2"),
    ("watermarks: a callback fails, and one deletes the state", [{"x": callback("+y1", fails=True), "y": callback("+x9", deletes=True)}], "watermarks", 0, "a0=1+x5+y6 b0=1+x5 |100"),
    ("watermarks: a key wakes for 10000 timers at once", [{"x": callback("+x1", gives=False)}], "watermarks", 20_000, "a0=1+x1 |10002"),
    ("watermarks: ttl", TTL, "watermarks", 20, "a0=1 a10=2 b5=1 |24 |25 a26=3 |45 |46"),
    ("watermarks: ttl, from before there was one", TTL, "watermarks", 20, "a5=2 |100 |119 |120"),
    ("watermarks: at the end of the data each timer fires once", [{"x": callback("+x10")}, {"y": callback("+z10"), "z": callback("+y10@x5")}], "watermarks", 0, f"a0=1+x10 1:a1=1+y30 b5=1 |15 |{END} |{END + YEAR_MS}"),
    ("watermarks: at the end of the data states end, too", [{"x": callback("+x7")}], "watermarks", 20, f"a0=1+x7 b5=1 |9 |{END} a30=2+x5 |{END}"),
    ("two steps: each sets its own timers", [{"x": callback("", 7)}, {"y": callback("", 8), "z": callback()}], "ingest", 0, "a0=1+x5 1:a1=2+y9+z9 a2=3-x |10 a11=4+y1 1:a12=5+y1 |20"),
    ("two steps: timers of one time in order of the names", [{"y": callback()}, {"x": callback()}], "ingest", 0, "1:a0=1+x5 a0=2+y5 |10"),
    ("two steps: the latest message of either counts", [{}, {}], "ingest", 20, "a0=1 1:a15=2 |20 |34 |35"),
    ("two steps: the end takes timers of both", [{"x": callback()}, {"y": callback()}], "ingest", 20, "a0=1+x30 1:a1=1+y30 |50 |60"),
    ("two steps: a callback of one deletes the state, and timers of both", [{"x": callback(deletes=True)}, {"y": callback()}], "event", 0, "a0=1+x3 1:a1=1+y30 a4=2 |10 |60"),
    ("two steps, one without timers: its messages wake the key", [{"x": callback()}, {}], "ingest", 0, "a0=1+x5 1:a6=2 |10"),
)  # fmt: skip
BEFORE = {"a": [3], "b": [4, 5]}


def drawn(seed: int) -> dict[str, Any]:
    """Draw a case: steps, and messages of a few keys among ticks."""
    chance = random.Random(seed)
    ttl_ms = chance.choice((0, 0, 1, 10, 25, 60))
    clock = chance.choice((0, -17, 1000, 0, FIRST_TIME, 95_617_584_000_000, LAST_TIME - 100))
    names = [*"xyz\u00fc"]
    steps = [_drawn_timers(chance, names, clock) for _ in range(chance.choice((1, 1, 1, 2, 3)))]
    if not ttl_ms and not any(steps):
        steps[0] = {"x": callback("+x7", 5)}
    case = {"steps": steps, "time": chance.choice(("ingest", "event", "watermarks")), "ttl_ms": ttl_ms}
    before = {key: [100] for key in "abz" if chance.random() < 0.15}
    history = _drawn_events(chance, steps, clock)
    if case["time"] == "watermarks" and chance.random() < 0.5:
        history.append({"sequence": len(history), "tick": END})
    last_ticks = {event["sequence"]: event for event in history if "tick" in event and case["time"] != "watermarks"}
    for event in last_ticks.values():
        event |= {"visit": True} if random.Random(f"{seed} {event['sequence']}").random() < 0.3 else {}
    return _case(f"drawn {seed}", case, history, before)


def _drawn_timers(chance: random.Random, left: list[str], clock: int) -> dict[str, Behaviour]:
    """Draw the timers of a step, whose names are taken from those that are left."""
    names = [left.pop(0) for _ in range(min(chance.choice((0, 1, 2, 2, 3)), len(left)))]
    found = {}
    for name in names:
        behaviour = callback("", *chance.choice(((), (7,), (8, 9))), gives=chance.random() < 0.8)
        behaviour |= {word: True for word in ("deletes", "fails") if chance.random() < 0.12}
        found[name] = behaviour | ({"ops": _drawn_ops(chance, names, clock)} if chance.random() < 0.5 else {})
    return found


def _drawn_ops(chance: random.Random, names: Iterable[str], now: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for _ in range(chance.choice((1, 1, 2))):
        name = chance.choice([*names] * 8 + ["q"])
        op = chance.choice(("after", "after", "after", "at", "delete"))
        if op == "delete":
            found.append({"delete": name})
        elif op == "at":
            found.append({"set": name, "at": now + chance.choice((-20, 0, 3, 12, 40, YEAR_MS))})
        else:
            found.append({"set": name, "after": chance.choice((0, 1, 1, 2, 5, 10, 20, 50, 50, YEAR_MS, -1))})
    return found


def _drawn_events(chance: random.Random, steps: list[dict[str, Behaviour]], clock: int) -> list[Event]:
    found: list[Event] = []
    for sequence in range(chance.randint(1, 25)):
        clock += chance.choice((0, 0, 1, 2, 3, 5, 10, 30, chance.randint(-30, 30), 200 if chance.random() < 0.2 else 0))
        for _ in range(chance.choice((0, 0, 0, 1, 2))):
            found.append({"sequence": sequence, "tick": clock})
            clock += chance.choice((0, 1, 15))
        step = chance.randrange(len(steps))
        time = clock + chance.choice((0, 0, 0, 1, -3, chance.randint(-40, 5), -200))
        value = FAILS if chance.random() < 0.1 else sequence
        event = {"sequence": sequence, "key": chance.choice("aaab\u00e9"), "time": time, "value": value, "step": step}
        has_ops = steps[step] and chance.random() < 0.6
        found.append(event | ({"ops": _drawn_ops(chance, steps[step], time)} if has_ops else {}))
    return found


def timer_vectors() -> dict[str, Any]:
    """Return the named cases, then some of those that `drawn` gives."""
    return {"cases": [*map(_named, TIMERS), *map(drawn, range(32, 56))]}


def wrong_timers() -> list[dict[str, Any]]:
    case = _named(("a timer fires one tick too late", X, "ingest", 0, "a10=1+x5 |15 a16=2 |20"))
    return [case | {"outputs": [output | {"sequence": output["sequence"] + 1} for output in case["outputs"]]}]


def _named(given: tuple[str, list[dict[str, Behaviour]], str, int, str]) -> dict[str, Any]:
    name, steps, time, ttl_ms, text = given
    before = BEFORE if "from before" in name else {}
    return _case(name, {"steps": steps, "time": time, "ttl_ms": ttl_ms}, events(text, message), before)


def _case(name: str, what: dict[str, Any], history: list[Event], before: dict[str, list[int]]) -> dict[str, Any]:
    reference = Reference(what["steps"], what["time"], what["ttl_ms"], before)
    reference.run(history)
    order = [event["sequence"] for event in history]
    ticks = [(event["sequence"], event["tick"]) for event in history if "tick" in event]
    return {
        "name": name,
        **what,
        "before": before,
        "events": history,
        "is_one_call": order != sorted(order) or ticks != sorted(ticks),
        "outputs": reference.outputs,
        "dead_letters": reference.dead_letters,
        "expired": reference.expired,
        "timers_fired": reference.fired,
        "visited": reference.visited,
        "keys": reference.left(),
    }
