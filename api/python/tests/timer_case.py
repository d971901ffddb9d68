"""State steps with timers and a time to live, alone in their stage: what the tests of them share."""

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from call_case import attempt, closed_call, open_call
from window_case import tick

import wallaroo
from wallaroo.component.application import Application
from wallaroo.message.frame import VISIT_PORT, encode_frame, read_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.bucket import BucketResult
from wallaroo.worker.bucket.cell import UNREAD, TimedCell
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import PICKLED

STATE, KEYED, SINK = 1, 60, 90
KNOWN: dict[tuple[int, int], Application] = {}
Case = dict[str, Any]
Event = dict[str, Any]


def perform(ops: Sequence[dict[str, Any]], timers: wallaroo.Timers) -> None:
    for op in ops:
        if "delete" in op:
            timers.delete(op["delete"])
        elif "after" in op:
            timers.set(op["set"], after=timedelta(milliseconds=op["after"]))
        else:
            timers.set(op["set"], at=op["at"])


class Plain:
    """A step of the vectors without timers."""

    number: int

    def name(self) -> str:
        return f"step {self.number}"

    def compute(self, data: Any, state: list[int]) -> Any:
        return self.answer(data[0], state, "", data[2])

    def answer(self, value: int, state: list[int], timer: str, now: int) -> Any:
        state.append(value)
        if value == -1:
            msg = "minus one"
            raise ValueError(msg)
        return json.dumps([self.number, timer, now, state]), False


class Timed(Plain):
    """One with timers."""

    behaviours: dict[str, Any]

    def compute(self, data: Any, state: list[int], timers: wallaroo.Timers) -> Any:  # type: ignore[override]
        perform(data[1], timers)
        assert timers.now_ms == data[2]
        return super().compute(data, state)

    def timer(self, name: str, key: Any, state: list[int], time: int, timers: wallaroo.Timers) -> Any:
        behaviour = self.behaviours[name]
        state += behaviour.get("appends", ())
        perform(behaviour.get("ops", ()), timers)
        if behaviour.get("fails"):
            msg = "it fails"
            raise ValueError(msg)
        given = json.dumps([self.number, name, time, state]) if behaviour.get("gives") else None
        return wallaroo.Deleted(given) if behaviour.get("deletes") else (given, False)


class Next(Plain):
    """What comes after them."""

    number = 99


@wallaroo.partition
def first(data: Any) -> str:
    return str(data)


@wallaroo.encoder
def plain(data: Any) -> str:
    return str(data)


def application(kit: Any, count: int, others: int = 0) -> Application:
    """Return an application of steps that share a state, and one more; declared once, which takes most of the time."""
    if (count, others) not in KNOWN:

        def declare(builder: wallaroo.ApplicationBuilder) -> None:
            for _ in range(others):
                builder.to_state_partition(Next, list, "o", first)
            for _ in range(count):
                builder.to_state_partition(Next, list, "s", first)
            builder.to_state_partition(Next, list, "t", first)

        KNOWN[count, others] = kit.build(declare, encoder=plain)
    return copy.deepcopy(KNOWN[count, others])


def make(kit: Any, case: Case, others: int = 0) -> Stage:
    """Return a stage of the case's steps, whose messages go to a sink, and with key and time to another step.

    `others` is the number of steps before them in the program, so that the plan gives them other ports.
    """
    app = application(kit, len(case["steps"]), others)
    steps = app.pipelines[0].steps[others:]
    for number, behaviours in enumerate(case["steps"]):
        run = (Timed if behaviours else Plain)()
        run.number, steps[number].run, steps[number].timers = number, run.compute, tuple(behaviours)
        steps[number].visits, steps[number].visit = ("look",), lambda *_: (None, False)
        if isinstance(run, Timed):
            run.behaviours, steps[number].fire, steps[number].takes_timers = behaviours, run.timer, True
    stage = pb.Stage(id="s", bucket_count=4, frame_bytes=1 << 20)
    paths = [step.path for step in steps[:-1]]
    for number, path in enumerate(paths):
        port = STATE + number + 7 * others  # another plan
        node = pb.Node(path=path, kind=pb.NODE_KIND_STATE_COMPUTATION, port=port, state="s", state_port=STATE)
        if case["steps"][number] or case["ttl_ms"]:
            node.ttl_ms, node.event_time = case["ttl_ms"], case["time"] != "ingest"
            node.watermarks = case["time"] == "watermarks"
            node.timers.extend(case["steps"][number])
        node.visits.append("look")
        stage.nodes.append(node)
    stage.nodes.add(
        path=steps[-1].path, kind=pb.NODE_KIND_KEY, inputs=paths, port=KEYED, keys=True, timestamps=True, state="t"
    )
    stage.nodes.add(path="0/sinks/0", kind=pb.NODE_KIND_SINK, inputs=paths, port=SINK)
    return Stage(app, stage)


def framed(stage: Stage, events: Sequence[Event]) -> bytes:
    """Return a frame of messages of one step, or of a tick."""
    (begin, *_) = events
    if "tick" in begin:
        if "visit" not in begin:
            return tick(begin["sequence"], begin["tick"])
        visit = pb.Visit(id=begin["sequence"], name="look").SerializeToString()
        return encode_frame([visit], port=VISIT_PORT, sequence=begin["sequence"], timestamp_ms=begin["tick"])
    names = list(dict.fromkeys(event["key"] for event in events))
    earliest, least = min(event["time"] for event in events), min(event["sequence"] for event in events)
    values = [stage.codec.dump((event["value"], event.get("ops", ()), event["time"])) for event in events]
    return encode_frame(
        values, port=STATE + begin.get("step", 0), sequence=least, encoding=PICKLED, timestamp_ms=earliest,
        keys=[name.encode() for name in names], key_indexes=[names.index(event["key"]) for event in events],
        sequences=[event["sequence"] - least for event in events],
        timestamps=[event["time"] - earliest for event in events],
    )  # fmt: skip


def cut(stage: Stage, events: Sequence[Event], chance: random.Random) -> list[bytes]:
    """Cut events of one call into frames, in some order."""
    parts: list[list[Event]] = []
    for event in events:
        last = parts[-1][-1] if parts else {"tick": 0}
        is_new = "tick" in event or "tick" in last or event.get("step", 0) != last.get("step", 0)
        if is_new or chance.random() < 0.3:
            parts.append([])
        parts[-1].append(event)
    if chance.random() < 0.5:
        chance.shuffle(parts)
    return [framed(stage, part) for part in parts]


def before(stage: Stage, case: Case) -> list[bytes]:
    """Return the log of the states that there are before the case."""
    keys = [key.encode() for key in case["before"]]
    values = [stage.codec.dump(values) for values in case["before"].values()]
    places = range(len(keys))
    return [encode_frame(values, port=STATE, encoding=PICKLED, keys=keys, key_indexes=places)] if keys else []


@dataclass
class Told:
    """What all calls of a history gave."""

    texts: list[tuple[int, Any]] = field(default_factory=list)
    sent: list[tuple[int, str, int, Any]] = field(default_factory=list)
    letters: list[tuple[int, str, int, int, str, str]] = field(default_factory=list)
    more: Counter[str] = field(default_factory=Counter)
    visited: list[int] = field(default_factory=list)

    def add(self, kit: Any, result: BucketResult) -> None:
        self.texts += [(sequence, json.loads(text)) for sequence, text in kit.sunk(result.outputs)]
        for output in result.outputs:
            if output.port == KEYED:
                frame = read_frame(output.frame)
                keys, times = [frame.keys[at].decode() for at in frame.key_indexes], frame.times()
                for at, value in enumerate(frame.values()):
                    self.sent.append((frame.sequence_of(at), keys[at], times[at], json.loads(value)))
        for each in kit.letters(result.outputs):
            is_timer = each.encoding == 0 and each.code != "C523" and not each.input.startswith(b"\x80")
            timer = each.input.decode() if is_timer else ""
            step = int(each.path.rpartition("/")[2])
            self.letters.append((each.sequence, each.key.decode(), each.timestamp_ms, step, each.code, timer))
        self.visited += [each.keys for each in result.done.visits]
        for count in result.done.counts:
            self.more.update(count.more)


def entries(result: BucketResult) -> list[bytes]:
    return [entry for change in result.changes for entry in change.entries]


def read(stage: Stage, log: Sequence[bytes]) -> BucketState:
    state = BucketState(stage.codec)
    state.read(log)
    return state


def left(stage: Stage, state: BucketState) -> list[dict[str, Any]]:
    found = []
    for key, cell in sorted(state.table(STATE).items()):
        if cell.size < 0:
            continue  # of a first message that failed: no log has it
        known = cell.timers if isinstance(cell, TimedCell) else None
        timers = [[name, due] for name, due in sorted((known or {}).items())]
        values = stage.codec.load(cell.data) if cell.live is UNREAD else cell.live
        found.append({"key": key.decode(), "values": values, "timers": timers})
    return found


def check(kit: Any, case: Case, chance: random.Random, *, sizes: Sequence[int]) -> None:
    """Run a history in calls of some sizes, cut, repeated and reloaded in drawn ways, and compare what comes out."""
    stage = make(kit, case)
    log, told = before(stage, case), Told()
    state, rest = read(stage, log), case["events"]
    while rest:
        size = chance.choice(sizes)
        part, rest = rest[:size], rest[size:]
        if chance.random() < 0.4:
            state = read(stage, log)  # the worker was restarted, or the bucket evicted
        result, state = call(stage, state, log, part, chance)
        log = entries(result) if result.done.snapshot else log + entries(result)
        told.add(kit, result)
        cells = state.table(STATE).values()
        assert state.table(STATE).written == sum(max(0, cell.size) for cell in cells)
        assert state.table(STATE).unread == sum(len(cell.data) for cell in cells)
        assert left(stage, read(stage, log)) == left(stage, state)
    outputs = case["outputs"]
    assert told.texts == [(each["sequence"], what(each)) for each in outputs]
    wanted = [(each["sequence"], each["key"], each["time"], what(each)) for each in outputs]
    assert sorted(told.sent, key=str) == sorted(wanted, key=str)
    names = "sequence", "key", "time", "step", "code", "timer"
    letters = [tuple(each[name] for name in names) for each in case["dead_letters"]]
    assert sorted(told.letters) == sorted(letters)
    assert (told.more["expired"], told.more["timers_fired"]) == (case["expired"], case["timers_fired"])
    visited = [keys for keys in case["visited"] for _ in case["steps"]]  # each step takes the visit
    assert (told.visited, left(stage, state)) == (visited, case["keys"])


def what(output: dict[str, Any]) -> list[Any]:
    return [output["step"], output["timer"], output["now"], output["values"]]


def call(
    stage: Stage, state: BucketState, log: list[bytes], events: Sequence[Event], chance: random.Random
) -> tuple[BucketResult, BucketState]:
    """Run a call in one of the ways in which one runs."""
    wishes = pb.Bucket(index=0, bucket=0, wants_snapshot=chance.random() < 0.2)
    committed: Callable[[], BucketState] = lambda: read(stage, log)  # noqa: E731
    way = chance.choice(("plain", "plain", "open", "careful", "checked"))
    if way == "open":
        at = chance.randint(0, len(events))
        wishes.careful = chance.random() < 0.2
        state = committed() if wishes.careful else state
        parts = [cut(stage, events[:at], chance), cut(stage, events[at:], chance)]
        return open_call(stage, wishes, state, committed, parts)
    frames = cut(stage, events, chance)
    if way == "plain":
        return closed_call(stage, wishes, frames, state, committed)
    wishes.careful = way == "careful"
    state = committed() if wishes.careful else state
    result = attempt(stage, wishes, frames, state, checks_persist=way == "checked" or chance.random() < 0.5)
    assert result is not None
    return result, state
