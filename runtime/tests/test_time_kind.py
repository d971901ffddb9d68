"""Timers and ttl in a topology: compiled, explained, compared, completed; and what a worker must know of them."""

import copy
import json
from typing import Any

import pytest

from support.valid_topology import VALID
from wallaroo.message.frame import TICK_PORT
from wallaroo_runtime.dataframe.query import check_topology
from wallaroo_runtime.dataframe.ticks import Ticks
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import NodeKind, compile_topology, explain
from wallaroo_runtime.plan.change import Impact, compare
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.topology.complete import complete
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.worker.capability import needed

LAST = {"codec": "native", "worker": "main"}
TIMED = json.loads((VALID / "timed.json").read_bytes())


def timed(number: int, **changes: Any) -> Any:
    """Return the document with other properties of a step; None: without it. `ttl_ms` is that of its state."""
    document = copy.deepcopy(TIMED)
    step = document["pipelines"][0]["steps"][number]
    for name, value in changes.items():
        owner = step["state"] if name == "ttl_ms" else step
        owner.pop(name, None)
        owner |= {} if value is None else {name: value}
    return document


def test_a_timed_stage_takes_ticks_and_needs_the_capability() -> None:
    topology = load_document(TIMED)
    plan = compile_topology(topology, shuffle_partitions=1)
    (first,), (second,) = plan.levels
    assert TICK_PORT not in first.entry_ports and TICK_PORT in second.entry_ports
    message = stage_message(second)
    found = [(node.ttl_ms, node.event_time, list(node.timers)) for node in message.nodes if node.state]
    assert found == [(60000, False, ["remind", "end"]), (60000, False, []), (0, True, ["end"])]
    assert [list(node.counters) for node in message.nodes if node.state] == [["expired", "timers_fired"]] * 3
    assert "timers" in needed(message) and "timers" not in needed(stage_message(first))
    text = explain(plan, topology)
    assert ', state "carts", ttl 60000 ms, timers "remind", "end" by ingest time [port' in text
    assert ', state "carts", ttl 60000 ms by ingest time [port' in text
    assert ', state "seen", timers "end" by event time [port' in text


def test_messages_carry_their_times_to_all_steps_of_a_state_with_times() -> None:
    document = timed(0, ttl_ms=None)
    second = document["pipelines"][0]["steps"][1]
    del second["state"]["ttl_ms"], second["time"]  # not timed itself, but the state has times
    plan = compile_topology(load_document(document), shuffle_partitions=1)
    keys = [node for node in plan.levels[0][0].nodes if node.kind is NodeKind.KEY]
    assert len(keys) == 3 and all(node.timestamps for node in keys)
    assert "timers" in needed(stage_message(plan.levels[1][0]))


@pytest.mark.parametrize(("ttl", "timers", "expected"), [(60000, 1, 250), (300, 1, 150), (1, 0, 100), (60000, 0, 1000)])
def test_ticks_come_twice_in_a_ttl_and_four_times_a_second_for_timers(ttl: int, timers: int, expected: int) -> None:
    document = copy.deepcopy(TIMED)
    steps = document["pipelines"][0]["steps"]
    for step in steps[:2]:
        step["state"]["ttl_ms"] = ttl
    if not timers:
        del steps[0]["timers"], steps[2]["timers"], steps[2]["time"]
    assert load_document(document).tick_ms() == expected


@pytest.mark.parametrize(
    ("new", "impact", "text"),
    [
        (timed(2, ttl_ms=5), Impact.SAFE, 'ttl_ms of step "seen" (0/steps/2) was none and is 5'),
        (timed(2, timers=["end", "m"]), Impact.SAFE, 'timers of step "seen" (0/steps/2) was "end" and is "end", "m"'),
        (
            timed(2, time="ingest"), Impact.UNKNOWN,
            'time of step "seen" (0/steps/2) was event and is ingest; '
            "states and timers of old data would be due at once",
        ),
        (
            timed(0, timers=["end"]), Impact.NEEDS_DRAIN,
            'timer "remind" of step "add" (0/steps/0) is gone; it would not run for keys that have set it',
        ),
    ],
)  # fmt: skip
def test_what_a_change_means_for_a_checkpoint(new: Any, impact: Impact, text: str) -> None:
    found = compare(load_document(TIMED), load_document(new))
    assert (found[0].impact, text in [change.text for change in found]) == (impact, True), found


def test_timers_of_a_step_that_is_gone_need_a_drain() -> None:
    """Another step still has the state, so keys keep timers that no function would run."""
    old = timed(1, timers=["late"])
    new = copy.deepcopy(old)
    (pipeline,) = new["pipelines"]
    del pipeline["steps"][1]
    pipeline["steps"][1] |= {"path": "0/steps/1"}
    pipeline["sinks"][0]["inputs"] = ["0/steps/1"]
    text = json.dumps(new).replace('"0/steps/2"', '"0/steps/1"')
    found = compare(load_document(old), load_document(json.loads(text)))
    (timer,) = [change for change in found if "late" in change.text]
    assert timer.impact is Impact.NEEDS_DRAIN
    assert timer.text.endswith("(0/steps/1) is gone; it would not run for keys that have set it")


def test_the_time_that_is_left_out_is_that_of_all_steps_of_the_state() -> None:
    document = copy.deepcopy(TIMED)
    for step in document["pipelines"][0]["steps"]:
        del step["time"]
    steps = complete(json.dumps(document).encode(), "/srv", "1").document["pipelines"][0]["steps"]
    assert [step["time"] for step in steps] == ["event"] * 3
    (pipeline,) = document["pipelines"]
    own = {"path": "0/sources/1", "name": "made", "kind": "generator", "codec": "native", "worker": "main"}
    pipeline["sources"].append(own)
    pipeline["steps"].insert(
        0, {"path": "0/steps/0", "name": "all", "kind": "collect", "inputs": ["0/sources/0", "0/sources/1"], **LAST}
    )
    pipeline["steps"][2]["inputs"] = ["0/steps/0"]
    pipeline["sinks"][0]["inputs"] = ["0/steps/1"]
    for number, step in enumerate(pipeline["steps"]):
        step["path"] = f"0/steps/{number}"
    steps = complete(json.dumps(document).encode(), "/srv", "1").document["pipelines"][0]["steps"]
    assert [step.get("time") for step in steps] == [None, "ingest", "ingest", "event"]


@pytest.mark.parametrize(("times", "arrival"), [(("ingest", "ingest"), True), (("ingest", "event"), False)])
def test_a_source_gives_times_of_arrival_if_only_they_are_used(times: tuple[str, str], arrival: bool) -> None:
    document = copy.deepcopy(TIMED)
    for number, step in enumerate(document["pipelines"][0]["steps"]):
        step["time"] = times[number > 1]
    ((first,), _) = compile_topology(load_document(document), shuffle_partitions=1).levels
    assert [node.arrival for node in stage_message(first).nodes if node.kind == NodeKind.SOURCE] == [arrival]


@pytest.mark.parametrize("name", ["look", "add"])
def test_a_timer_belongs_to_one_step_of_its_state(name: str) -> None:
    with pytest.raises(RunError) as caught:
        load_document(timed(1, timers=["end"], name=name))
    (found,) = caught.value.diagnostics
    assert str(found).startswith(
        'T205 state "carts" is declared with timer "end" of step "add" (0/steps/0) '
        f'and with timer "end" of step "{name}" (0/steps/1)\n  at /pipelines/0/steps/1/timers'
    ), found


def test_timed_steps_between_dataframes_take_times_of_the_data() -> None:
    topology = load_document(TIMED)
    check_topology(topology)
    plan = compile_topology(topology, shuffle_partitions=1)
    for is_of_data in (False, True):
        (stage,) = Ticks(is_of_data=is_of_data).timed_plan(plan, has_times=False).levels[1]
        message = stage_message(stage)
        assert [node.watermarks for node in message.nodes if node.state] == [is_of_data] * 3
        assert ("watermarks" in needed(message)) is is_of_data
