"""Where messages of dead letters enter a plan again, which cannot, and what becomes of those that can no longer."""

from typing import Any

import pytest
from test_plan_border import MESSAGE, PARTITION, shown, step, topology

from wallaroo.frame import DEAD_LETTER_PORT, REPLAY_PORT, encode_frame, read_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.lowering.replay import Replays, counted
from wallaroo_runtime.plan import Plan, Stage, compile_topology
from wallaroo_runtime.plan.replay import Route, event_window_after, part_of, route_of
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.capability import lacks_for_replay

RANGE = {"kind": "range", "range_ms": 1000, "slide_ms": 1000, "delay_ms": 0, "late": "drop"}


def window(number: int, *inputs: str, time: str = "ingest") -> dict[str, Any]:
    return step(number, *inputs, kind="window", key=MESSAGE) | {"window": {**RANGE, "time": time}}


def plan_of(topology: Topology) -> Plan:
    return compile_topology(topology, shuffle_partitions=2)


def letter(path: str, **more: Any) -> pb.DeadLetter:
    number = path.rpartition("/")[2]
    given = {"code": "C501", "path": path, "step": f"step{number}", "input": b"x", "encoding": 17, "preview": "'x'"}
    return pb.DeadLetter(**given | more)


CHAIN = topology(
    step(0, "0/sources/0"),
    step(1, "0/steps/0", kind="computation_multi"),
    step(2, "0/steps/1", kind="key_by"),
    step(3, "0/steps/2", kind="state_computation", key=MESSAGE),
    step(4, "0/steps/3"),
    window(5, "0/steps/4"),
)


def entered(found: Topology, wanted: pb.DeadLetter) -> Route:
    route = route_of(plan_of(found).stages, wanted)
    assert isinstance(route, Route), route
    return route


def test_a_message_enters_at_the_part_that_failed_and_goes_on_to_the_exits() -> None:
    route = entered(CHAIN, letter("0/steps/1"))
    assert shown(route.stage) == [
        "RECEIVE 0/steps/1/replay",
        "COMPUTATION_MULTI 0/steps/1",
        "KEY_BY 0/steps/2",
        "KEY 0/steps/3",
    ]
    assert [node.inputs for node in route.stage.nodes][:2] == [(), ("0/steps/1/replay",)]
    assert (route.node.port, route.node.timestamps, route.has_state) == (REPLAY_PORT, True, False)
    assert shown(entered(CHAIN, letter("0/sinks/0")).stage) == ["RECEIVE 0/sinks/0/replay", "SINK 0/sinks/0"]


def test_a_message_of_a_state_enters_with_its_key() -> None:
    route = entered(CHAIN, letter("0/steps/3", has_key=True))
    assert (route.has_state, route.node.path, route.stage.id) == (True, "0/steps/3", "s1")


def test_only_the_failing_reader_gets_the_message() -> None:
    two = topology(
        step(0, "0/sources/0"), step(1, "0/steps/0"), step(2, "0/steps/0"), step(3, "0/steps/1", "0/steps/2")
    )
    assert shown(entered(two, letter("0/steps/2")).stage)[1:] == [
        "COMPUTATION 0/steps/2",
        "COMPUTATION 0/steps/3",
        "SINK 0/sinks/0",
    ]


MIXED = topology(
    step(0, "0/sources/0"),
    step(1, "0/steps/0", on="go"),
    step(2, "0/steps/1", kind="state_computation", key=PARTITION),
    step(3, "0/steps/2"),
)
CARRIED = topology(
    step(0, "0/sources/0", kind="key_by"),
    step(1, "0/steps/0"),
    step(2, "0/steps/1", kind="state_computation", key=MESSAGE),
)


@pytest.mark.parametrize(
    ("found", "wanted", "reason"),
    [
        (CHAIN, letter("0/steps/1", encoding=0), "has no message"),
        (CHAIN, letter("0/steps/1", encoding=256), "has no message"),
        (CHAIN, letter("0/steps/1", input=b""), "too long to be kept"),
        (CHAIN, letter("0/sinks/0", code="C504"), "had made bytes of the message already"),
        (CHAIN, letter("0/steps/3", code="C525"), "had made bytes of the message already"),
        (CHAIN, letter("0/steps/9"), "no step or sink has its path"),
        (CHAIN, letter("0/steps/9", has_key=True), "no state step has its path"),
        (CHAIN, letter("0/steps/5", has_key=True), "it failed at a window"),
        (CHAIN, letter("0/steps/4"), "has the key that the message carries"),
        (CARRIED, letter("0/steps/1"), "has the key that the message carries"),
        (CARRIED, letter("0/steps/2"), "has the key that the message carries"),
        (MIXED, letter("0/steps/0"), "runs in another worker"),
        (MIXED, letter("0/steps/2", has_key=True), "another worker in codec json"),
    ],
)  # fmt: skip
def test_what_cannot_run_again(found: Topology, wanted: pb.DeadLetter, reason: str) -> None:
    route = route_of(plan_of(found).stages, wanted)
    assert isinstance(route, str) and reason in route, route


def test_a_key_that_several_workers_ask_for() -> None:
    both = topology(
        step(0, "0/sources/0", kind="key_by"),
        step(1, "0/sources/0", kind="key_by", on="go"),
        step(2, "0/steps/0", "0/steps/1", kind="state_computation", key=MESSAGE),
    )
    route = route_of(plan_of(both).stages, letter("0/steps/2"))
    assert isinstance(route, str) and "several workers" in route


def test_an_empty_message_is_one() -> None:
    assert entered(CHAIN, letter("0/steps/0", input=b"", preview="''"))


def test_windows_of_event_time_after_a_part() -> None:
    late = topology(
        step(0, "0/sources/0", kind="key_by"), step(1, "0/steps/0"), window(2, "0/steps/1", time="event"),
        step(3, "0/steps/2"),
    )  # fmt: skip
    parts = {part.path: part for part in late.parts()}
    assert [event_window_after(late, parts[f"0/steps/{number}"]) for number in (0, 3)] == ["step2", ""]
    assert not any(event_window_after(CHAIN, part) for part in CHAIN.parts())


def test_a_part_that_has_moved_is_found_by_its_name() -> None:
    def path(**given: str) -> str:
        part = part_of(CHAIN, pb.DeadLetter(**given))
        return part.path if part else ""

    assert path(path="0/steps/1", step="step1") == "0/steps/1"
    assert path(path="0/steps/9", step="step1") == path(path="0/steps/0", step="step1") == "0/steps/1"
    assert path(path="0/steps/1", step="another") == path(path="0/steps/1", step="in") == ""
    assert path(path="0/steps/3", step="0/steps/3") == "0/steps/3"  # as a worker names the step of another one


def run(letters: list[pb.DeadLetter], lacks: str = "", made: Any = None) -> list[pb.Output]:
    replays = Replays.of(plan_of(CHAIN), CHAIN)
    frame = encode_frame([each.SerializeToString() for each in letters], port=REPLAY_PORT, sequence=40, timestamp_ms=5)

    def call(stage: Stage, frames: list[bytes]) -> list[list[pb.Output]]:
        return [made(stage, frames)]

    return [output for outputs in replays.run([frame], call, lambda stage: lacks) for output in outputs]


def test_what_can_run_no_longer_is_a_dead_letter_again() -> None:
    gone = letter("0/steps/1", step="renamed", traceback="long", sequence=3, port=0)
    for lost, lacks, reason in (
        (gone, "", 'the program has no step or sink "renamed" at 0/steps/1'),
        (letter("0/steps/4"), "", "a state after its step has the key that the message carries"),
        (letter("0/steps/1"), lacks_for_replay(pb.Stage(), ()), 'its worker does not have "replay"'),
    ):
        (output,) = run([letter("0/steps/3", has_key=True), lost][1:], lacks)
        (again,) = map(pb.DeadLetter.FromString, read_frame(output.frame).values())
        assert (output.port, output.bucket, again.code) == (DEAD_LETTER_PORT, -1, "R776")
        assert again.error.startswith(f"the message of a dead letter did not run again; {reason}")
        assert (again.path, again.step, again.input, again.encoding) == (
            lost.path,
            lost.step,
            lost.input,
            lost.encoding,
        )
        assert (again.sequence, again.timestamp_ms, again.traceback) == (40, 5, "")


def test_letters_of_the_entry_are_those_of_the_part() -> None:
    first = [letter("0/steps/0", input=b"one"), letter("0/steps/0", input=b"two", port=3)]

    def made(stage: Stage, frames: list[bytes]) -> list[pb.Output]:
        assert [read_frame(frame).values() for frame in frames] == [[b"one"], [b"two"]]
        failed = [
            letter("0/steps/0/replay", step="0/steps/0/replay", sequence=41, input=b"?", encoding=0, code="C504"),
            letter("0/steps/1", sequence=40, input=b"later", port=REPLAY_PORT),
        ]
        values = [each.SerializeToString() for each in failed]
        return [pb.Output(port=DEAD_LETTER_PORT, bucket=-1, frame=encode_frame(values, port=DEAD_LETTER_PORT))]

    (output,) = run(first, made=made)
    one, two = map(pb.DeadLetter.FromString, read_frame(output.frame).values())
    assert (one.path, one.step, one.input, one.encoding, one.code, one.port) == (
        "0/steps/0",
        "step0",
        b"two",
        17,
        "C504",
        3,
    )
    assert (two.path, two.input, two.sequence, two.port) == ("0/steps/1", b"later", 40, 0)
    counts = [pb.StepCount(path="0/steps/0/replay", dead_letters=1), pb.StepCount(path="0/steps/0", messages_in=1)]
    assert [(each.path, each.messages_in, each.dead_letters) for each in counted(counts)] == [
        ("0/steps/0", 1, 1), ("0/steps/0", 1, 0),
    ]  # fmt: skip
