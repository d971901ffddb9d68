"""Topology documents with very many items: what they cost, and how many findings they give."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.topology.load import load
from wallaroo_runtime.topology.schema_validation import check_shape

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
WORD_COUNT = json.loads((VALID / "word_count.json").read_bytes())


def test_many_findings_are_cut() -> None:
    document = copy.deepcopy(WORD_COUNT)
    document["pipelines"][0]["steps"] = [1] * 1000
    with pytest.raises(RunError) as caught:
        load(json.dumps(document).encode())
    assert 200 <= len(caught.value.diagnostics) <= 400


class Looked(dict[str, Any]):
    """A component that counts how often somebody asks what it has."""

    count = 0

    def __iter__(self) -> Iterator[str]:
        Looked.count += 1
        return super().__iter__()

    def __contains__(self, name: object) -> bool:
        Looked.count += 1
        return super().__contains__(name)


@pytest.mark.parametrize("item", [1, Looked(WORD_COUNT["workers"][0]["components"][0])], ids=["wrong", "right"])
def test_of_a_list_that_is_too_long_no_item_is_looked_at(item: Any) -> None:
    """Each item of 100,000 cost 0.4 ms, before the number was reported."""
    document = copy.deepcopy(WORD_COUNT)
    document["workers"][0]["components"] = [item] * 10_001
    (finding,) = check_shape(document, 200)
    assert (finding.message, finding.fix) == ("the list has 10001 items", "give at most 10000")
    assert Looked.count == 0


def test_a_long_list_of_mixed_keys_is_read_in_linear_time() -> None:
    document = copy.deepcopy(WORD_COUNT)
    values = document["pipelines"][0]["steps"][1]["state"]["key"]
    values["values"] = [item for number in range(20_000) for item in (number, f"key {number}")]
    topology = load(json.dumps(document).encode())
    (state,) = [step.state for step in topology.state_steps() if step.state]
    assert len(state.key.values) == 40_000
