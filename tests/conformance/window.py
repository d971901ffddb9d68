"""Windows: each case of `topology-schema/vectors/windows.json`, in one call and in a call for each event."""

import struct
from typing import Any

from conformance.application import VECTOR_WINDOWS, WINDOW_CASES, part, stage
from conformance.check import Context, check
from conformance.poison import in_flight_file
from conformance.session import Answer, BucketStore, StateStream
from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb

PORT, STATE_PORT, SENT, TICK = 50, 51, 41, 65534


def window_stage(number: int, case: str) -> pb.Stage:
    """Return a stage of one window."""
    path = f"0/steps/{2 * number + 1}"
    is_session = VECTOR_WINDOWS[number]["kind"] == "session"
    place = {"port": PORT, "state": f"values {number}", "state_port": STATE_PORT}
    window = part(path, "WINDOW", codec="int64", sessions=is_session, **place)
    return stage(case, window, part(path, "SEND", path, port=SENT, codec="string", keys=True, timestamps=True))


def frame_of(event: dict[str, Any]) -> bytes:
    """Return the frame of a message or a tick."""
    if "tick" in event:
        return encode_frame([], port=TICK, sequence=event["sequence"], timestamp_ms=event["tick"])
    value = struct.pack(">q", event["value"])
    return encode_frame(
        [value], port=PORT, sequence=event["sequence"], timestamp_ms=event["time"], keys=[event["key"].encode()],
        key_indexes=[0],
    )  # fmt: skip


def given(answers: list[Answer]) -> list[tuple[int, str, int, str]]:
    """Return sequence, key, time and text of what windows gave."""
    return [
        (each.sequence, (each.key or b"").decode(), each.time, each.text())
        for answer in answers for each in answer.messages if each.port == SENT
    ]  # fmt: skip


def failed(answers: list[Answer]) -> list[tuple[int, str, str, int]]:
    """Return sequence, key, code and time of the dead letters."""
    letters = [letter for answer in answers for letter in answer.letters]
    return [(each.sequence, each.key.decode(), each.code, each.timestamp_ms) for each in letters]


def run(context: Context, description: pb.Stage, calls: list[list[dict[str, Any]]]) -> list[Answer]:
    """Make calls one after the other; each but the first reads the state from its log."""
    store, answers = BucketStore(0), []
    for number, events in enumerate(calls):
        store.nonce ^= 1 if store.counter else 0  # a version that the worker does not hold
        with StateStream(context.streams, description, 0) as stream:
            stream.ask(store, [b"".join(map(frame_of, events))], snapshot=number % 4 == 3)
            answers.append(stream.answer(store))
        store.commit(answers[-1])
    return answers


def window_check(case: dict[str, Any]) -> None:
    """Add the check of one case; that of sessions begins with their name."""

    @check(case["name"] if case["window"]["kind"] == "session" else f"window: {case['name']}")
    def matches(context: Context) -> None:
        description = window_stage(VECTOR_WINDOWS.index(case["window"]), case["name"])
        ways = [[case["events"]]] + ([] if case["is_one_call"] else [[[event] for event in case["events"]]])
        for calls in ways:
            answers = run(context, description, calls)
            expected = [
                (each["sequence"], each["key"], each["time"], " ".join((each["key"], *map(str, each["values"]))))
                for each in case["outputs"]
            ]
            assert given(answers) == expected
            letters = [
                tuple(each[name] for name in ("sequence", "key", "code", "time")) for each in case["dead_letters"]
            ]
            assert failed(answers) == letters
            assert answers[-1].done.keys == len(case["keys"])
            assert (
                sum(each.more["dropped_late"] for answer in answers for each in answer.done.counts) == case["dropped"]
            )


for _case in WINDOW_CASES:
    window_check(_case)


@check("window: a skipped message gives its key no state, a skipped tick makes nothing due")
def skipped(context: Context) -> None:
    number = next(at for at, each in enumerate(VECTOR_WINDOWS) if each["kind"] == "count" and each["count"] == 3)
    events = [
        {"sequence": 0, "key": "a", "time": 5, "value": 1}, {"sequence": 1, "key": "b", "time": 6, "value": 2},
        {"sequence": 2, "tick": 7}, {"sequence": 2, "tick": 7 + VECTOR_WINDOWS[number]["flush_ms"]},
    ]  # fmt: skip
    skips = [pb.Skip(ordinal=at, code="C508", reason="it fell") for at in (1, 3)]
    with StateStream(context.streams, window_stage(number, "skipped"), 0) as stream:
        stream.send(bucket=pb.Bucket(frames=b"".join(map(frame_of, events)), skips=skips, alone=True))
        answer = stream.answer(BucketStore(0))
    assert given([answer]) == []
    assert failed([answer]) == [(1, "b", "C508", 6), (2, "", "C508", 7 + VECTOR_WINDOWS[number]["flush_ms"])]
    assert [letter.has_key for letter in answer.letters] == [True, False]
    assert answer.done.keys == 1


@check("session: a shorter gap or delay holds for the sessions that are open, too")
def shorter(context: Context) -> None:
    sessions = [
        (each["gap_ms"] + each["delay_ms"], at) for at, each in enumerate(VECTOR_WINDOWS) if each["kind"] == "session"
    ]
    for time in ("ingest", "event"):
        (short, new), *_, (long, old) = sorted(each for each in sessions if VECTOR_WINDOWS[each[1]]["time"] == time)
        assert short < long
        store, answers = BucketStore(0), []
        events = [{"sequence": 0, "key": "a", "time": 5, "value": 1}, {"sequence": 1, "tick": 5}]
        calls = ((old, events), (new, [{"sequence": 2, "tick": 4 + short}, {"sequence": 3, "tick": 5 + short}]))
        for number, history in calls:
            store.nonce ^= 1 if store.counter else 0
            with StateStream(context.streams, window_stage(number, "shorter"), 0) as stream:
                stream.ask(store, [b"".join(map(frame_of, history))])
                answers.append(stream.answer(store))
            store.commit(answers[-1])
        assert [(sequence, text) for sequence, _, _, text in given(answers)] == [(3, "a 1")], time


@check("window: the in-flight file grows with each key of a tick, so that many keys are no call that hangs")
def progress(context: Context) -> None:
    number = next(at for at, each in enumerate(VECTOR_WINDOWS) if each["kind"] == "count" and each["count"] == 3)
    events: list[dict[str, Any]] = [{"sequence": at, "key": f"k{at}", "time": 5, "value": at} for at in range(20)]
    events += [{"sequence": 20, "tick": time} for time in (7, 7 + VECTOR_WINDOWS[number]["flush_ms"])]
    with in_flight_file() as path:
        with StateStream(context.streams, window_stage(number, "progress"), 0, in_flight=str(path)) as stream:
            stream.ask(BucketStore(0), [b"".join(map(frame_of, events))])
            assert len(given([stream.answer(BucketStore(0))])) == 20
        assert int.from_bytes(path.read_bytes()[24:32], "little") >= 20
