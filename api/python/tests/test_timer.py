"""Time of state steps in a worker: the vectors, and drawn histories against the plain reference."""

import json
import random
from typing import Any

import pytest
from call_case import attempt
from timer_case import Case, Told, check, entries, framed, left, make, read
from window_case import VECTORS

from vector.make_timers import drawn
from wallaroo.message.frame import FrameError
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.cell import UNREAD, TimedCell, read_timed
from wallaroo.worker.bucket.state import BucketState

CASES = json.loads((VECTORS / "timers.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_vector(kit: Any, case: Case) -> None:
    for seed in range(2 if "10000 timers" in case["name"] else 6):
        sizes = (1000,) if case["is_one_call"] else (1,) if seed == 1 else (1, 2, 5, 1000)
        check(kit, case, random.Random(seed), sizes=sizes)


@pytest.mark.parametrize("histories", [150, pytest.param(5000, marks=pytest.mark.long)])
def test_drawn_histories_are_those_of_the_reference(kit: Any, histories: int) -> None:
    for seed in range(1000, 1000 + histories):
        case = drawn(seed)
        check(kit, case, random.Random(seed), sizes=(1000,) if case["is_one_call"] else (1, 2, 5, 1000))


@pytest.mark.parametrize("others", range(3))
def test_timers_go_on_when_their_step_has_another_port(kit: Any, others: int) -> None:
    """A changed program has other steps before the timed ones: timers are found by their names."""
    case = {
        "steps": [{"x": {"gives": True}}, {"y": {"gives": True}, "z": {"gives": True}}],
        "time": "ingest",
        "ttl_ms": 0,
    }
    old, new, told = make(kit, case), make(kit, case, others), Told()
    sets = [
        {"sequence": at, "key": "ab"[at % 2], "time": 0, "value": at, "step": step, "ops": [{"set": name, "after": 5}]}
        for at, (step, name) in enumerate([(0, "x"), (0, "x"), (1, "z"), (1, "y")])
    ]
    first = attempt(old, pb.Bucket(), [framed(old, [event]) for event in sets], BucketState(old.codec))
    assert first is not None
    state = read(new, entries(first))
    second = attempt(new, pb.Bucket(), [framed(new, [{"sequence": 9, "tick": 5}])], state)
    assert second is not None
    told.add(kit, second)
    a, b = [0, 2], [1, 3]
    assert told.texts == [(9, [0, "x", 5, a]), (9, [1, "z", 5, a]), (9, [0, "x", 5, b]), (9, [1, "y", 5, b])]
    assert [key["timers"] for key in left(new, state)] == [[], []]


def test_a_timer_of_a_removed_function_runs_that_of_the_only_other_step(kit: Any) -> None:
    gives = {"gives": True}
    case = {"steps": [{"x": gives, "y": gives}, {"x": gives}, {}], "time": "ingest", "ttl_ms": 0}
    old, told = make(kit, case), Told()
    sets = [
        {"sequence": at, "key": key, "time": 0, "value": at, "step": step, "ops": [{"set": name, "after": 5 + at}]}
        for at, (key, step, name) in enumerate([("a", 0, "x"), ("a", 0, "y"), ("b", 0, "x"), ("b", 1, "x")])
    ]
    first = attempt(old, pb.Bucket(), [framed(old, [event]) for event in sets], BucketState(old.codec))
    assert first is not None
    new = make(kit, {**case, "steps": [{}, {"x": gives}, {}]})
    state = read(new, entries(first))
    second = attempt(new, pb.Bucket(), [framed(new, [{"sequence": 9, "tick": 20}])], state)
    assert second is not None
    told.add(kit, second)
    assert told.texts == [(9, [1, "x", 5, [0, 1]]), (9, [1, "x", 8, [2, 3]])]
    assert [key["timers"] for key in left(new, state)] == [[], []]


def test_a_damaged_time_in_a_log_is_refused() -> None:
    cell = TimedCell(UNREAD)
    cell.timers = {"ü": 5, "y": 7}
    data = cell.head(1)
    assert read_timed(data)[0].timers == cell.timers
    for wrong in (*(data[:size] for size in range(len(data))), data.replace("ü".encode(), b"\xc3y")):
        with pytest.raises(FrameError, match="has no timing"):
            read_timed(wrong)
