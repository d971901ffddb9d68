"""Session windows: explained, compared, and what their stage needs."""

import copy
import json
from typing import Any

from support.valid_topology import VALID
from wallaroo_runtime.plan import Plan, compile_topology, explain
from wallaroo_runtime.plan.change import Impact, compare
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.topology.complete import complete
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.capability import needed

EVERY_KIND = json.loads((VALID / "every_kind.json").read_bytes())


def changed(**changes: Any) -> Topology:
    document = copy.deepcopy(EVERY_KIND)
    document["pipelines"][0]["steps"][4]["window"].update(changes)
    return load_document(document)


def compiled(topology: Topology) -> Plan:
    return compile_topology(topology, shuffle_partitions=2)


def test_explain_names_the_gap() -> None:
    topology = changed()
    lines = explain(compiled(topology), topology).splitlines()
    assert any('"visit", state "visit", sessions with gaps of 30000 ms' in line for line in lines)


def test_gap_delay_and_policy_may_change() -> None:
    found = compare(changed(), changed(gap_ms=60_000, delay_ms=5, late="fire_per_message"))
    assert {change.text: change.impact for change in found} == {
        'gap_ms of step "visit" (0/steps/4) was 30000 and is 60000': Impact.SAFE,
        'delay_ms of step "visit" (0/steps/4) was 5000 and is 5': Impact.SAFE,
        'late of step "visit" (0/steps/4) was drop and is fire_per_message': Impact.SAFE,
    }


def test_another_time_breaks_the_state() -> None:
    (found,) = compare(changed(), changed(time="event"))
    assert found.impact is Impact.BREAKS_STATE
    assert found.text.endswith(
        "was sessions by ingest time and is sessions by event time; what it has gathered would not fit"
    )


def test_only_a_stage_with_sessions_needs_the_capability() -> None:
    topology = changed()
    stages = [stage_message(stage) for level in compiled(topology).levels for stage in level]
    with_sessions = [stage for stage in stages if any(node.state == "visit" for node in stage.nodes)]
    assert [stage for stage in stages if "sessions" in needed(stage)] == with_sessions
    assert len(with_sessions) == 1
    assert "windows" in needed(with_sessions[0])


def test_the_time_that_is_left_out_is_that_of_the_sources() -> None:
    document = copy.deepcopy(EVERY_KIND)
    window = document["pipelines"][0]["steps"][4]["window"]
    del window["time"], window["delay_ms"], window["late"]
    made = complete(json.dumps(document).encode(), "/srv", "1").document["pipelines"][0]["steps"][4]["window"]
    assert made == {"kind": "session", "gap_ms": 30_000, "delay_ms": 0, "late": "drop", "time": "ingest"}
