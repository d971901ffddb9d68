"""Named outputs in a topology: read, checked, compiled, explained, compared."""

import json
from typing import Any

import pytest

from support.valid_topology import VALID
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import NodeKind, compile_topology, explain, mermaid
from wallaroo_runtime.plan.change import Impact, compare
from wallaroo_runtime.topology.load import load_document

ONE = "an output reads one computation, state computation or window"


def outputs() -> dict[str, Any]:
    return dict(json.loads((VALID / "outputs.json").read_bytes()))


def edited(number: int, **more: Any) -> dict[str, Any]:
    document = outputs()
    document["pipelines"][0]["steps"][number].update(more)
    return document


@pytest.mark.parametrize(
    ("document", "finding"),
    [
        (edited(1, inputs=["0/sources/0"]), 'T213 "0/steps/1" reads "0/sources/0" of kind "tcp"; ' + ONE),
        (edited(1, inputs=["0/sources/0", "0/steps/0"]), 'T213 "0/steps/1" reads 2 parts; ' + ONE),
        (edited(2, inputs=["0/steps/1"]), 'T213 "0/steps/2" reads "0/steps/1" of kind "output"; ' + ONE),
        (edited(2, name="alerts"), 'T203 output "alerts" of "0/steps/0" is declared twice'),
        (
            edited(5, component="alerts"),
            'T213 "0/steps/5" has another worker or component than "0/steps/4", which it reads',
        ),
    ],
)
def test_an_output_is_one_of_one_computation(document: dict[str, Any], finding: str) -> None:
    with pytest.raises(RunError) as caught:
        load_document(document)
    assert f"{finding}\n" in str(caught.value)


def test_an_output_runs_where_its_computation_runs() -> None:
    plan = compile_topology(load_document(outputs()), shuffle_partitions=1)
    (first,), (second,) = plan.levels
    named = [
        [(node.path, node.output) for node in stage.nodes if node.kind is NodeKind.OUTPUT] for stage in (first, second)
    ]
    assert named == [[("0/steps/1", "alerts"), ("0/steps/2", "Größe <&>")], [("0/steps/5", "alerts")]]


def test_explain_graph_and_diff_have_outputs() -> None:
    topology = load_document(outputs())
    assert '  output   0/steps/1 "alerts" <- 0/steps/0\n' in explain(
        compile_topology(topology, shuffle_partitions=1), topology
    )
    assert '    n0_steps_1>"alerts"]\n' in mermaid(topology)
    less = outputs()
    del less["pipelines"][0]["steps"][5]
    less["pipelines"][0]["sinks"].pop()
    found = [(change.impact, change.text) for change in compare(topology, load_document(less))]
    assert (Impact.SAFE, 'step "alerts" (0/steps/5) is gone') in found
