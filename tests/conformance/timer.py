"""Time of state steps: each case of `topology-schema/vectors/timers.json`, in one call and in several."""

import json
from collections.abc import Iterator
from typing import Any

from conformance.application import VECTORS, part, stage
from conformance.check import Context, check
from conformance.damage import failure_of
from conformance.keys import FIRST
from conformance.poison import in_flight_file
from conformance.session import Answer, BucketStore, StateStream
from conformance.visit import visit
from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb

PORT, SENT, STATE_PORT, TICK = 60, 45, 80, 65534
CASES: list[dict[str, Any]] = json.loads((VECTORS / "timers.json").read_text(encoding="utf-8"))["cases"]
PATHS = [f"0/steps/{2 * FIRST + 9 + number}" for number in range(4)]
X: dict[str, Any] = {"steps": [{"x": {"gives": True}}], "time": "ingest", "ttl_ms": 0}


def timed_stage(case: dict[str, Any], **more: Any) -> pb.Stage:
    """Return a stage of the steps of a case, which share one state."""
    nodes = []
    for number, timers in enumerate(case["steps"]):
        rules = {"ttl_ms": case["ttl_ms"], "timers": sorted(timers), "event_time": case["time"] != "ingest"}
        rules["watermarks"] = case["time"] == "watermarks"
        entry = part(
            PATHS[number], "STATE_COMPUTATION", port=PORT + number, state="timed", state_port=STATE_PORT,
            codec="string", counters=["expired", "timers_fired"], **rules, **more,
        )  # fmt: skip
        send = part(
            PATHS[number], "SEND", PATHS[number], port=SENT + number, codec="string", keys=True, timestamps=True
        )
        nodes += [entry, send]
    return stage("timed", *nodes)


def frame_of(event: dict[str, Any], case: dict[str, Any]) -> bytes:
    """Return the frame of a message, visit or tick."""
    if "visit" in event:
        return visit("forget", "", event["sequence"], time=event["tick"])
    if "tick" in event:
        return encode_frame([], port=TICK, sequence=event["sequence"], timestamp_ms=event["tick"])
    message = {"value": event["value"], "ops": event.get("ops", []), "steps": case["steps"]}
    text = f"{event['key']}:{json.dumps(message, ensure_ascii=False)}"
    return encode_frame(
        [text.encode()], port=PORT + event.get("step", 0), sequence=event["sequence"], timestamp_ms=event["time"],
        keys=[event["key"].encode()], key_indexes=[0],
    )  # fmt: skip


def given(answers: list[Answer], step: int) -> list[tuple[int, int, str]]:
    """Return sequence, time and text of what a step gave."""
    mine = (each for answer in answers for each in answer.messages if each.port == SENT + step)
    return [(each.sequence, each.time, each.text()) for each in mine]


def expected(case: dict[str, Any], step: int) -> list[tuple[int, int, str]]:
    """Return what a step gives by the case."""
    mine = (each for each in case["outputs"] if each["step"] == step)
    return [(each["sequence"], each["time"], _text(each)) for each in mine]


def _text(output: dict[str, Any]) -> str:
    values = ",".join(map(str, output["values"]))
    return f"{output['key']} {output['step']} {output['timer']} {output['now']} [{values}]"


def failed(answers: list[Answer]) -> list[tuple[int, str, str, str, str, int]]:
    """Return sequence, key, code, path, timer and time of the dead letters, sorted."""
    letters = [letter for answer in answers for letter in answer.letters]
    names = ["" if each.encoding or b"{" in each.input else each.input.decode() for each in letters]
    return sorted(
        (each.sequence, each.key.decode(), each.code, each.path, name, each.timestamp_ms)
        for each, name in zip(letters, names, strict=True)
    )


def in_calls(case: dict[str, Any], size: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the events of a case for calls of so many events; all in one if their order asks for it."""
    events = case["events"]
    size = len(events) if case["is_one_call"] else size
    yield from (events[at : at + size] for at in range(0, len(events), size))


def run(
    context: Context, description: pb.Stage, store: BucketStore, frames: list[bytes], *, is_kept: bool = False
) -> Answer:
    """Make a call; the worker reads the state from its log unless it has kept it."""
    store.nonce ^= 1 if store.counter and not is_kept else 0  # a version that the worker does not hold
    with StateStream(context.streams, description, 0) as stream:
        stream.ask(store, [b"".join(frames)], snapshot=store.counter % 4 == 3)
        answer = stream.answer(store)
    store.commit(answer)
    return answer


def timer_check(case: dict[str, Any]) -> None:
    """Add the check of one case."""

    @check(f"timer: {case['name']}")
    def matches(context: Context) -> None:
        one_by_one = [] if case["name"].startswith("drawn") else [(1, False)]
        for size, is_kept in ((len(case["events"]), False), *one_by_one, (3, True)):
            store, answers = BucketStore(0), []
            if case["before"]:
                _begin(context, case, store)
            for events in in_calls(case, size):
                frames = [frame_of(event, case) for event in events]
                description = timed_stage(case)
                description.nodes[0].visits.append("forget")
                answers.append(run(context, description, store, frames, is_kept=is_kept and bool(answers)))
            for step in range(len(case["steps"])):
                assert given(answers, step) == expected(case, step), (size, step)
            assert failed(answers) == sorted(
                (each["sequence"], each["key"], each["code"], PATHS[each["step"]], each["timer"], each["time"])
                for each in case["dead_letters"]
            )
            assert answers[-1].done.keys == len(case["keys"])
            assert [each.keys for answer in answers for each in answer.done.visits] == case["visited"]
            for name in ("expired", "timers_fired"):
                assert sum(each.more[name] for answer in answers for each in answer.done.counts) == case[name], name


def _begin(context: Context, case: dict[str, Any], store: BucketStore) -> None:
    """Write the states of a case whose step had no times yet."""
    entry = part(PATHS[3], "STATE_COMPUTATION", port=PORT, state="timed", state_port=STATE_PORT, codec="string")
    values = [(key, value) for key, values in case["before"].items() for value in values]
    events = [{"sequence": 0, "key": key, "time": 5, "value": value} for key, value in values]
    run(context, stage("timed", entry), store, [frame_of(event, case) for event in events])


for _case in CASES:
    timer_check(_case)


def message(sequence: int, key: str, time: int, **more: Any) -> bytes:
    return frame_of({"sequence": sequence, "key": key, "time": time, "value": sequence, **more}, X)


def tick(sequence: int, time: int) -> bytes:
    return frame_of({"sequence": sequence, "tick": time}, X)


SET = [{"set": "x", "after": 5}]


@check("timer: a skipped message sets none and wakes no key, at a skipped tick none runs")
def skipped(context: Context) -> None:
    frames = [message(0, "a", 0, ops=SET), message(1, "b", 0, ops=SET), message(2, "a", 9), tick(3, 10), tick(3, 11)]
    skips = [pb.Skip(ordinal=at, code="C508", reason="it fell") for at in (1, 2, 3)]
    with StateStream(context.streams, timed_stage(X), 0) as stream:
        stream.send(bucket=pb.Bucket(frames=b"".join(frames), skips=skips, alone=True))
        answer = stream.answer(BucketStore(0))
    assert given([answer], 0) == [(0, 0, "a 0  0 [0]"), (3, 11, "a 0 x 5 [0]")]
    assert [each[:4] for each in failed([answer])] == [
        (1, "b", "C508", PATHS[0]), (2, "a", "C508", PATHS[0]), (3, "", "C508", PATHS[0]),
    ]  # fmt: skip
    assert [letter.has_key for letter in answer.letters if letter.sequence == 3] == [False]
    assert answer.done.keys == 1
    (entry,) = (count for count in answer.done.counts if count.messages_in)
    assert (entry.messages_in, entry.messages_out, entry.dead_letters) == (3, 2, 3)


@check("timer: the in-flight file grows with each timer, so that many timers are no call that hangs")
def progress(context: Context) -> None:
    case: dict[str, Any] = X | {"steps": [{"x": {"ops": SET}}]}
    with in_flight_file() as path:
        with StateStream(context.streams, timed_stage(case), 0, in_flight=str(path)) as stream:
            begin = frame_of({"sequence": 0, "key": "a", "time": 0, "value": 0, "ops": SET}, case)
            stream.ask(BucketStore(0), [begin + tick(1, 4000)])
            assert sum(count.more["timers_fired"] for count in stream.answer(BucketStore(0)).done.counts) == 800
        assert int.from_bytes(path.read_bytes()[24:32], "little") >= 800


@check("timer: a visitor that deletes a state takes its timers along; a tick precedes a visit of its sequence")
def visited(context: Context) -> None:
    store, description = BucketStore(0), timed_stage(X, visits=["forget"])
    run(context, description, store, [message(0, "a", 0, ops=SET), message(1, "b", 0, ops=SET)])
    answer = run(context, description, store, [visit("forget", "a", 2), tick(2, 4), tick(3, 5), message(3, "a", 6)])
    assert given([answer], 0) == [(2, 0, "a"), (3, 5, "b 0 x 5 [1]"), (3, 6, "a 0  6 [3]")]
    answer = run(context, description, store, [message(4, "a", 10, ops=SET), tick(5, 15), visit("forget", "a", 5)])
    assert [text for _, _, text in given([answer], 0)] == ["a 0  10 [3,4]", "a 0 x 15 [3,4]", "a"]


@check("timer: a visit is a tick for its states, so that one that is over is gone before it")
def visited_late(context: Context) -> None:
    for time, begin, gives in (("ingest", 20, 20), ("event", 120, 19)):
        case = X | {"ttl_ms": 20, "time": time}
        description, store = timed_stage(case, visits=["forget"]), BucketStore(0)
        events = [("a", 0, []), ("b", 10, []), ("c", 15, [{"set": "x", "after": 4}])]
        frames = [message(at, key, ms, ops=ops) for at, (key, ms, ops) in enumerate(events)]
        run(context, description, store, [*frames, tick(3, 100)] if time == "event" else frames)
        answer = run(context, description, store, [visit("forget", "a", 4, time=begin)])
        found = [each[:3] for each in given([answer], 0)], [(each.keys, each.failed) for each in answer.done.visits]
        wanted = [(4, gives, "c 0 x 19 [2]")]
        assert found == (wanted, [(2, 0)]) if time == "ingest" else (wanted, [(0, 0)]), (time, found)


@check("timer: a step whose path and port have changed runs the timers that its state has, by their names")
def moved(context: Context) -> None:
    gives = {"gives": True}
    case, told = X | {"steps": [{"x": gives}, {"y": gives}]}, X | {"steps": [{"x": gives, "y": gives}] * 2}
    store, before, after = BucketStore(0), timed_stage(case), timed_stage(case)
    for node, path in zip(after.nodes, (PATHS[1], PATHS[1], PATHS[0], PATHS[0]), strict=True):
        node.path, node.inputs[:] = path, [path] * len(node.inputs)
        node.port += 7 if node.state else 0
    begin = [
        {"sequence": at, "step": at, "key": "a", "time": at, "value": at, "ops": [{"set": name, "after": 5}]}
        for at, name in enumerate("xy")
    ]
    run(context, before, store, [frame_of(event, told) for event in begin])
    answer = run(context, after, store, [tick(3, 10)])
    assert [(each.port, each.text()) for each in answer.messages] == [
        (SENT, "a 1 x 5 [0,1]"),
        (SENT + 1, "a 0 y 6 [0,1]"),
    ]
    assert sum(each.more["timers_fired"] for each in answer.done.counts) == 2


@check("timer: names of a node that its step does not have are W403")
def unnamed(context: Context) -> None:
    description = timed_stage(X | {"steps": [{"x": {}, "q": {}}]})
    found = failure_of(lambda: run(context, description, BucketStore(0), [message(0, "a", 0)]))
    assert found.failure.code == "W403", found.failure
