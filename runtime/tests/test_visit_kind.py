"""Visits in a topology: read, checked, compiled, explained, compared; and what a worker must know of them."""

import json
from typing import Any

import pytest

from support.valid_topology import VALID
from wallaroo.message.frame import TICK_PORT, VISIT_PORT, encode_frame, read_frame, read_header
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.memory.crossing import controls_of
from wallaroo_runtime.memory.source_frame import tick_frame, visit_frame
from wallaroo_runtime.plan import compile_topology, explain
from wallaroo_runtime.plan.change import Impact, compare
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.worker.capability import needed

STATE = 1  # the position of the state computation


def visited(*names: str, step: int = STATE) -> dict[str, Any]:
    document = dict(json.loads((VALID / "word_count.json").read_bytes()))
    found = document["pipelines"][0]["steps"][step]
    members = list(found.items())
    members.insert([name for name, _ in members].index("codec"), ("visits", list(names)))
    found.clear()
    found.update(members)
    return document


@pytest.mark.parametrize(
    ("document", "code", "pointer"),
    [
        (visited("a", step=0), "T102", "/pipelines/0/steps/0/visits"),
        (visited("a", "a"), "T102", f"/pipelines/0/steps/{STATE}/visits/1"),
        (visited(), "T102", f"/pipelines/0/steps/{STATE}/visits"),
        (visited("a", "a\u0301"), "T210", f"/pipelines/0/steps/{STATE}/visits/1"),
    ],
)
def test_only_state_computations_take_visits_each_name_once(document: dict[str, Any], code: str, pointer: str) -> None:
    with pytest.raises(RunError) as caught:
        load_document(document)
    assert [(each.code, each.pointer) for each in caught.value.diagnostics] == [(code, pointer)]


def test_a_stage_with_visits_takes_them_and_needs_the_capability() -> None:
    topology = load_document(visited("reset", "show"))
    assert topology.visits() == ["reset", "show"]
    plan = compile_topology(topology, shuffle_partitions=1)
    (first,), (second,) = plan.levels
    assert VISIT_PORT not in first.entry_ports and VISIT_PORT in second.entry_ports
    message = stage_message(second)
    assert [list(node.visits) for node in message.nodes if node.visits] == [["reset", "show"]]
    assert "visits" in needed(message) and "visits" not in needed(stage_message(first))
    assert ', visits "reset", "show" [port' in explain(plan, topology)


def test_a_visit_that_is_gone_must_not_wait_in_the_journal() -> None:
    old, new = load_document(visited("reset", "show")), load_document(visited("show", "more"))
    found = [(change.impact, change.text.partition(";")[0]) for change in compare(old, new)]
    assert found[0][0] is Impact.NEEDS_DRAIN and 'visit "reset" of step' in found[0][1]
    assert any(impact is Impact.SAFE and "visits of step" in text for impact, text in found)
    assert [change.impact for change in compare(new, load_document(visited("show", "more", "yet")))] == [Impact.SAFE]


def test_visits_and_ticks_come_from_a_journal_in_order() -> None:
    visits = [pb.Visit(id=each, name="show", metadata=b"m") for each in (7, 9)]
    data = (
        tick_frame(3, 50) + visit_frame(4, 60, visits[0]) + encode_frame([b"a"], port=0) + visit_frame(9, 70, visits[1])
    )
    found = list(controls_of(data, {TICK_PORT, VISIT_PORT}))
    assert [sequence for sequence, _ in found] == [3, 4, 9]
    frames = [read_frame(frame) for _, frame in found]
    assert [(frame.header.sequence, frame.header.timestamp_ms) for frame in frames] == [(3, 50), (4, 60), (9, 70)]
    assert [pb.Visit.FromString(bytes(frame.values()[0])) for frame in frames[1:]] == visits
    assert [read_header(frame).port for _, frame in controls_of(data, {TICK_PORT})] == [TICK_PORT]
