"""Windows in the worker: the vectors, in one call and in a call for each event, and what they do not say."""

import json
from typing import Any

import pytest
from call_case import attempt, second_try
from window_case import (
    PORT,
    TUMBLING,
    VECTORS,
    Values,
    application,
    dropped,
    entries,
    frames,
    keys,
    letters,
    make,
    read,
    run,
    sums,
)

from wallaroo.message.frame import FrameError, encode_frame, read_frame
from wallaroo.message.serialization import Serializer
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.calendar import WINDOWED
from wallaroo.worker.stage.flight import OUTSIDE, InFlight
from wallaroo.worker.value.value import StateReadError


def expected(case: dict[str, Any]) -> tuple[list[tuple[int, bytes]], list[tuple[int, str, str, int]]]:
    outputs = [(each["sequence"], f"{each['key']!r} {each['values']}".encode()) for each in case["outputs"]]
    return outputs, [(each["sequence"], each["key"], each["code"], each["time"]) for each in case["dead_letters"]]


def check(kit: Any, case: dict[str, Any]) -> None:
    stage = make(kit, case["window"])
    outputs, dead = expected(case)
    result = run(stage, case["events"], [])
    assert kit.sunk(result.outputs) == outputs
    assert letters(kit, result) == dead
    assert keys(stage, entries(result)) == case["keys"]
    assert result.done.keys == len(case["keys"])
    assert dropped(result) == case["dropped"]
    if case["is_one_call"]:
        return
    log: list[bytes] = []
    given, failed, late = [], [], 0
    for number, event in enumerate(case["events"]):
        result = run(stage, [event], log, wants_snapshot=number % 4 == 3)
        log = entries(result) if result.done.snapshot else log + entries(result)
        given += kit.sunk(result.outputs)
        failed += letters(kit, result)
        late += dropped(result)
    assert given == outputs
    assert failed == dead
    assert late == case["dropped"]
    assert keys(stage, log) == case["keys"]


def vectors(name: str, part: str) -> list[Any]:
    cases = json.loads((VECTORS / name).read_text(encoding="utf-8"))[part]
    return [pytest.param(case, id=case["name"]) for case in cases]


@pytest.mark.parametrize("case", vectors("windows.json", "cases"))
def test_vectors(kit: Any, case: dict[str, Any]) -> None:
    check(kit, case)


@pytest.mark.parametrize("case", vectors("selftest.json", "windows"))
def test_a_wrong_vector_fails(kit: Any, case: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        check(kit, case)


def test_a_message_that_joins_sessions_fails_with_combine_and_they_stay_apart(kit: Any) -> None:
    class Apart(Values):
        def combine(self, left: list[int], right: list[int]) -> list[int]:
            msg = f"{left} and {right}"
            raise ValueError(msg)

    sessions = {"kind": "session", "gap_ms": 10, "delay_ms": 20, "late": "drop", "time": "ingest"}
    stage = make(kit, sessions, Apart())
    times = (0, 12, 6, 13, 60)
    events = [{"sequence": at, "key": "a", "time": time, "value": at} for at, time in enumerate(times)]
    result = run(stage, events, [])
    assert letters(kit, result) == [(2, "a", "C501", 6)]
    assert "[0] and [1]" in kit.letters(result.outputs)[0].error
    assert kit.sunk(result.outputs) == [(4, b"'a' [0]"), (4, b"'a' [1, 3]")]


def test_a_skipped_message_is_a_dead_letter_and_its_key_gets_no_state(kit: Any) -> None:
    stage = make(kit, TUMBLING)
    events = [*sums(1, 2, key="a"), *sums(3, key="b", start=2), {"sequence": 3, "tick": 12}]
    skips = [pb.Skip(ordinal=at, code="C508", reason="it fell") for at in (1, 2)]
    with stage.call(0, InFlight(""), skips):
        result = attempt(stage, pb.Bucket(index=0), frames(stage, events), read(stage, []))
    assert result is not None
    assert kit.sunk(result.outputs) == [(3, b"'a' [1]")]
    assert letters(kit, result) == [(1, "a", "C508", 1), (2, "b", "C508", 2)]
    assert keys(stage, entries(result)) == ["a"]


def test_the_end_of_a_key_is_an_entry_of_windows(kit: Any) -> None:
    stage = make(kit, TUMBLING)
    log = entries(run(stage, sums(1, 2), []))
    (end,) = map(read_frame, entries(run(stage, [{"sequence": 2, "tick": 1000}], log)))
    assert (end.header.encoding, end.keys, end.absent) == (WINDOWED, [b"a"], [0])
    assert keys(stage, [*log, *entries(run(stage, [{"sequence": 2, "tick": 1000}], log))]) == []


def test_a_skipped_tick_is_a_dead_letter_without_a_key_and_the_next_one_does_its_work(kit: Any) -> None:
    stage = make(kit, TUMBLING)
    events = [*sums(1), {"sequence": 1, "tick": 10}, {"sequence": 1, "tick": 11}]
    with stage.call(0, InFlight(""), [pb.Skip(ordinal=1, code="C509", reason="no answer within 1 s")]):
        result = attempt(stage, pb.Bucket(index=0), frames(stage, events), read(stage, []))
    assert result is not None
    assert kit.sunk(result.outputs) == [(1, b"'a' [1]")]
    (letter,) = kit.letters(result.outputs)
    assert (letter.code, letter.sequence, letter.has_key) == ("C509", 1, False)


def test_the_message_at_work_is_noted_for_ticks_too(kit: Any) -> None:
    seen: list[tuple[str, int]] = []

    class Noting(Values):
        def update(self, data: int, accumulator: list[int]) -> None:
            seen.append(("update", stage.flight[1]))
            super().update(data, accumulator)

        def output(self, key: Any, accumulator: list[int]) -> Any:
            seen.append(("output", stage.flight[1]))

    stage = make(kit, TUMBLING, Noting())
    events = [*sums(1), {"sequence": 1, "tick": 10}, *sums(2, start=12)]
    with stage.call(0, InFlight(""), []):
        assert attempt(stage, pb.Bucket(index=0), frames(stage, events), read(stage, [])) is not None
        assert stage.flight[1] == 0
    # The message of sequence 12 makes the second window due.
    assert seen == [("update", 1), ("output", 2), ("update", 3)]


def test_a_state_that_is_written_before_a_message_is_not_written_for_the_one_before(kit: Any) -> None:
    seen: list[tuple[str, int]] = []

    class Noted(list[int]):
        def __reduce__(self) -> Any:
            seen.append(("written", stage.flight[1]))
            return list, (list(self),)

    class Noting(Values):
        def initial_accumulator(self) -> list[int]:
            return Noted()

        def update(self, data: int, accumulator: list[int]) -> None:
            seen.append(("update", stage.flight[1]))
            super().update(data, accumulator)

    stage = make(kit, TUMBLING, Noting())
    with stage.call(0, InFlight(""), []):
        second_try(stage, pb.Bucket(index=0), frames(stage, sums(1, 2)), read(stage, []))
    assert seen[:4] == [("update", 1), ("written", 1), ("written", OUTSIDE), ("update", 2)]


def test_a_window_that_gives_nothing_is_told_with_its_accumulator(kit: Any) -> None:
    stage = make(kit, TUMBLING)
    result = run(stage, [*sums(1, -2), {"sequence": 2, "tick": 10}], [])
    (letter,) = kit.letters(result.outputs)
    assert (letter.code, letter.path, letter.step, letter.preview) == ("C517", "0/steps/0", "values", "[1, -2]")
    assert letter.error == "the window of key 'a' has no result; ValueError: minus two"
    assert "minus two" in letter.traceback
    assert stage.codec.loader(letter.encoding)(letter.input) == [1, -2]


def test_an_accumulator_that_cannot_be_written_is_a_dead_letter(kit: Any) -> None:
    class Odd(Values):
        def update(self, data: int, accumulator: list[Any]) -> None:
            accumulator.append((lambda: 0) if data == 7 else data)

    stage = make(kit, TUMBLING, Odd())
    result = run(stage, sums(1, 7, 2), [])
    after = run(stage, [{"sequence": 3, "tick": 10}], entries(result))
    assert kit.sunk(after.outputs) == [(3, b"'a' [1, 2]")]
    (letter,) = kit.letters(result.outputs)
    assert (letter.code, letter.sequence) == ("C504", 1)
    assert letter.error.startswith("list cannot be serialized; ")


def test_the_users_serialize_sees_every_accumulator(kit: Any) -> None:
    seen: list[Any] = []
    app = application(kit, TUMBLING)
    app.serializer = Serializer(lambda value: (seen.append(value), json.dumps(value).encode())[1], json.loads, True)
    stage = make(kit, TUMBLING, app=app)
    log = entries(run(stage, sums(1, 2), []))
    assert seen[-1] == [1, 2]
    assert kit.sunk(run(stage, [{"sequence": 2, "tick": 10}], log).outputs) == [(2, b"'a' [1, 2]")]


def test_an_accumulator_that_cannot_be_read_is_an_error_of_the_call(kit: Any) -> None:
    stage = make(kit, TUMBLING)
    log = entries(run(stage, sums(1), []))
    app = application(kit, TUMBLING)
    app.serializer = app.serializer._replace(load=lambda data: [][1])
    with pytest.raises(StateReadError):
        run(make(kit, TUMBLING, app=app), sums(1, start=1), log)


def test_keys_are_text_where_they_can_be(kit: Any) -> None:
    stage = make(kit, {"kind": "count", "count": 1, "flush_ms": 5})
    result = run(stage, [*sums(1, key="Grüße"), *sums(2, key=b"\xff", start=1)], [])
    assert kit.sunk(result.outputs) == [(0, "'Grüße' [1]".encode()), (1, b"b'\\xff' [2]")]


def test_ticks_and_silent_keys_leave_nothing_to_write(kit: Any) -> None:
    stage = make(kit, TUMBLING)
    log = entries(run(stage, [*sums(1), *sums(2, key="b", start=1)], []))
    assert not entries(run(stage, [{"sequence": 2, "tick": 9}], log))
    snapshot = run(stage, [{"sequence": 2, "tick": 9}], log, wants_snapshot=True)
    assert keys(stage, entries(snapshot)) == ["a", "b"]
    ended = run(stage, [{"sequence": 2, "tick": 99}], log)
    assert keys(stage, log + entries(ended)) == []
    assert not entries(run(stage, [{"sequence": 2, "tick": 999}], log + entries(ended)))


def test_counts(kit: Any) -> None:
    stage = make(kit, TUMBLING)
    result = run(stage, [*sums(1, 2, -1), {"sequence": 3, "tick": 10}], [])
    assert [(each.messages_in, each.messages_out, each.dead_letters) for each in result.done.counts] == [
        (3, 1, 1), (1, 1, 0)
    ]  # fmt: skip


@pytest.mark.parametrize("absent", [[], [0]])
def test_a_frame_that_is_not_for_windows(kit: Any, absent: list[int]) -> None:
    stage = make(kit, TUMBLING)
    frame = encode_frame([b""], port=PORT, keys=[b"a"] * len(absent), key_indexes=[0] * len(absent), absent=absent)
    with pytest.raises(FrameError, match="a frame of port 1 with |messages without a value"):
        attempt(stage, pb.Bucket(index=0), [frame], read(stage, []))
