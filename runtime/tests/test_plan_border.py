"""Messages that pass from one worker to another: stages in the order in which they run, and what crosses."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.border_plan import WORKER, source
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import NodeKind, Plan, Stage, compile_topology, explain
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

MESSAGE = {"kind": "message"}
PARTITION = {"kind": "partition", "values": [], "unknown": "create"}


def step(number: int, *inputs: str, kind: str = "computation", on: str = "main", **more: Any) -> dict[str, Any]:
    value = {"path": f"0/steps/{number}", "name": f"step{number}", "kind": kind, "inputs": list(inputs)}
    if "key" in more:
        value["state"] = {"name": f"state{number}", "codec": "native", "key": more.pop("key")}
    value |= {"codec": more.pop("codec", "json"), "worker": on}
    return value if on == "main" else value | {"component": f"component{number}"}


def sink(*inputs: str) -> dict[str, Any]:
    tcp = {"kind": "tcp", "host": "127.0.0.1", "port": 7002}
    return {"path": "0/sinks/0", "name": "out", **tcp, "inputs": list(inputs), "worker": "main"}


def topology(*steps: dict[str, Any]) -> Topology:
    names = dict.fromkeys(["main", *(value["worker"] for value in steps)])
    pipeline = {"name": "p", "sources": [source()], "steps": list(steps), "sinks": [sink(steps[-1]["path"])]}
    workers = [WORKER | {"name": name, "components": []} for name in names]
    return load_document({"topology_version": 1, "name": "mixed", "workers": workers, "pipelines": [pipeline]})


def compiled(*steps: dict[str, Any]) -> Plan:
    return compile_topology(topology(*steps), shuffle_partitions=2)


def shown(stage: Stage) -> list[str]:
    return [f"{node.kind.name} {node.path}" for node in stage.nodes]


def test_a_step_on_another_worker_and_back() -> None:
    plan = compiled(step(0, "0/sources/0"), step(1, "0/steps/0", on="go"), step(2, "0/steps/1"))
    (level,) = plan.levels
    assert [(stage.id, stage.worker) for stage in level] == [("s0", "main"), ("s1", "go"), ("s2", "main")]
    assert shown(level[0]) == ["SOURCE 0/sources/0", "COMPUTATION 0/steps/0", "SEND 0/steps/0"]
    assert shown(level[1]) == ["RECEIVE 0/steps/0", "COMPUTATION 0/steps/1", "SEND 0/steps/1"]
    assert shown(level[2]) == ["RECEIVE 0/steps/1", "COMPUTATION 0/steps/2", "SINK 0/sinks/0"]
    sent, received = level[0].nodes[-1], level[1].nodes[0]
    assert (sent.port, sent.codec, sent.inputs) == (received.port, "json", ("0/steps/0",))
    assert received.codec == "json" and not received.inputs
    assert level[1].nodes[1].component == "component1"
    ports = [node.port for stage in level for node in stage.nodes if node.kind in (NodeKind.SEND, NodeKind.RECEIVE)]
    assert len(set(ports)) == 2 and not set(ports) & set(plan.ports.values())


def test_what_the_same_worker_takes_past_a_border_keeps_its_own_form() -> None:
    plan = compiled(step(0, "0/sources/0"), step(1, "0/steps/0", on="go"), step(2, "0/steps/0", "0/steps/1"))
    (level,) = plan.levels
    assert shown(level[2])[:2] == ["RECEIVE 0/steps/0", "RECEIVE 0/steps/1"]


def test_keys_that_messages_carry_need_no_code_of_the_other_worker() -> None:
    plan = compiled(
        step(0, "0/sources/0", kind="key_by"),
        step(1, "0/steps/0", on="go"),
        step(2, "0/steps/1", kind="state_computation", key=MESSAGE, on="go"),
        step(3, "0/steps/2"),
    )
    first, second = plan.levels
    assert shown(first[1]) == ["RECEIVE 0/steps/0", "COMPUTATION 0/steps/1", "KEY 0/steps/2"]
    assert first[0].nodes[-1].keys and first[1].nodes[0].keys
    assert first[1].nodes[-1].keys and not first[1].nodes[-1].codec
    assert [(stage.id, stage.worker, stage.has_state) for stage in second] == [
        ("s1", "go", True),
        ("s3", "main", False),
    ]
    assert shown(second[1]) == ["RECEIVE 0/steps/2", "COMPUTATION 0/steps/3", "SINK 0/sinks/0"]


def test_a_state_on_another_worker_gets_messages_in_the_codec() -> None:
    plan = compiled(
        step(0, "0/sources/0", kind="key_by"), step(1, "0/steps/0", kind="state_computation", key=MESSAGE, on="go")
    )
    (stage,) = plan.levels[0]
    assert shown(stage)[-1] == "KEY 0/steps/1" and stage.nodes[-1].codec == "json"
    assert plan.levels[1][0].nodes[0].codec == "json"


def test_a_partition_function_runs_on_its_own_worker() -> None:
    plan = compiled(step(0, "0/sources/0", on="go"), step(1, "0/steps/0", kind="state_computation", key=PARTITION))
    assert [shown(stage) for stage in plan.levels[0]] == [
        ["SOURCE 0/sources/0", "SEND 0/sources/0"],
        ["RECEIVE 0/sources/0", "COMPUTATION 0/steps/0", "SEND 0/steps/0"],
        ["RECEIVE 0/steps/0", "KEY 0/steps/1"],
    ]


def test_a_border_changes_no_number_under_which_state_is_kept() -> None:
    state = {"kind": "state_computation", "key": PARTITION}
    before = compiled(step(0, "0/sources/0"), step(1, "0/steps/0", **state))
    after = compiled(step(0, "0/sources/0", on="go"), step(1, "0/steps/0", **state))
    assert [stage.id for plan in (before, after) for stage in plan.stages if stage.has_state] == ["s1", "s1"]


CODECS = ("native", "bytes", "string", "int64", "json")


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(CODECS)), min_size=1, max_size=3), st.booleans())
def test_all_that_comes_to_a_state_has_one_codec(inputs: list[tuple[bool, str]], has_state: bool) -> None:
    producers = [
        step(number, "0/sources/0", codec=codec, **({"on": "go"} if is_foreign else {}))
        for number, (is_foreign, codec) in enumerate(inputs)
    ]
    kind: dict[str, Any] = {"kind": "state_computation", "key": PARTITION} if has_state else {}
    merging = step(len(inputs), *(f"0/steps/{number}" for number in range(len(inputs))), **kind)
    foreign = {codec for is_foreign, codec in inputs if is_foreign}
    declared = {codec for is_foreign, codec in inputs if codec != "native" and (is_foreign or has_state)}
    expected = "P301" if "native" in foreign else "P303" if foreign and len(declared) > 1 else ""
    try:
        compiled(*producers, merging)
        found = ""
    except RunError as error:
        found = error.diagnostics[0].code
    assert found == expected


def test_inputs_in_several_codecs_are_refused() -> None:
    with pytest.raises(RunError) as caught:
        compiled(
            step(0, "0/sources/0"),
            step(1, "0/sources/0", codec="string"),
            step(2, "0/steps/0", "0/steps/1", on="go"),
            step(3, "0/steps/2"),
        )
    assert str(caught.value) == (
        'P303 "0/steps/2": input in several codecs ("json", "string") is not supported\n  at /pipelines/0/steps/2\n'
        "  fix: give its inputs the same codec"
    )


def test_explain_tells_what_crosses() -> None:
    found = topology(step(0, "0/sources/0"), step(1, "0/steps/0", on="go"), step(2, "0/steps/1"))
    text = explain(compile_topology(found, shuffle_partitions=2), found)
    assert '  send     0/steps/0 "step0" as json [port 3] <- 0/steps/0' in text
    assert '  receive  0/steps/0 "step0" as json [port 3]' in text
    assert '  compute  0/steps/1 "step1" (component "component1") <- 0/steps/0' in text
