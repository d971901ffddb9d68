"""Compiling topologies to stages: levels, ports, shared states, and what cannot be compiled."""

import copy
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import NodeKind, Plan, compile_topology, explain, mermaid
from wallaroo_runtime.plan.bucket import bucket_ids, murmur3, partition_of
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
WORKER = json.loads((VALID / "word_count.json").read_bytes())["workers"][0]

# Spark 4.3: hash(b), pmod(hash(b), 7), pmod(hash(b), 200) of an INT column.
SPARK_HASHES = {
    0: (933211791, 1, 191),
    1: (-559580957, 2, 43),
    2: (1765031574, 5, 174),
    3: (-1823081949, 4, 51),
    7: (1079293707, 2, 107),
    42: (29417773, 0, 173),
    1000: (-14577491, 2, 109),
    65535: (-1629199920, 2, 80),
    65536: (1017081869, 6, 69),
    123456789: (-598405280, 3, 120),
    2147483647: (133916647, 4, 47),
    -1: (-1604776387, 3, 13),
    -2: (-1160545675, 5, 125),
    -42: (1758484645, 1, 45),
    -2147483648: (723455942, 6, 142),
}


@pytest.mark.parametrize("value", SPARK_HASHES)
def test_murmur3_is_sparks(value: int) -> None:
    assert (murmur3(value), partition_of(value, 7), partition_of(value, 200)) == SPARK_HASHES[value]


@pytest.mark.parametrize("partitions", [1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 200, 1000])
@pytest.mark.parametrize("per_partition", [1, 4])
def test_every_partition_gets_equally_many_buckets(partitions: int, per_partition: int) -> None:
    ids = bucket_ids(partitions, per_partition)
    assert len(set(ids)) == len(ids) == partitions * per_partition
    assert set(Counter(partition_of(value, partitions) for value in ids).values()) == {per_partition}
    assert all(partition_of(value, partitions) == bucket % partitions for bucket, value in enumerate(ids))


def test_bucket_ids_need_numbers_of_at_least_one() -> None:
    with pytest.raises(ValueError, match="0 partitions of 4 buckets; both must be at least 1"):
        bucket_ids(0, 4)


def source(path: str, name: str = "in", worker: str = "main") -> dict[str, Any]:
    pipeline, _, number = path.split("/")
    return {
        "path": path, "name": name, "kind": "tcp", "host": "127.0.0.1", "port": 7010 + 10 * int(pipeline) + int(number),
        "framing": {"kind": "u32be"}, "max_message_bytes": 1024, "codec": "native", "worker": worker,
    }  # fmt: skip


def step(path: str, inputs: list[str], state: str = "", worker: str = "main") -> dict[str, Any]:
    value: dict[str, Any] = {
        "path": path, "name": path, "kind": "state_computation" if state else "computation", "inputs": inputs,
        "codec": "native", "worker": worker,
    }  # fmt: skip
    if state:
        value["state"] = {"name": state, "codec": "native", "key": {"kind": "single"}}
    return value


def sink(path: str, inputs: list[str], worker: str = "main") -> dict[str, Any]:
    return {
        "path": path, "name": "out", "kind": "tcp", "host": "127.0.0.1", "port": 7002, "inputs": inputs, "worker": worker  # noqa: E501
    }  # fmt: skip


def topology_of(*pipelines: tuple[list[Any], list[Any], list[Any]], workers: tuple[str, ...] = ("main",)) -> Topology:
    document = {
        "topology_version": 1,
        "name": "test",
        "workers": [{**copy.deepcopy(WORKER), "name": name, "components": []} for name in workers],
        "pipelines": [
            {"name": f"pipeline {number}", "sources": sources, "steps": steps, "sinks": sinks}
            for number, (sources, steps, sinks) in enumerate(pipelines)
        ],
    }
    return load_document(document)


def shape(plan: Plan) -> list[list[list[str]]]:
    """Write nodes as `kind path <inputs` for each stage of each level."""
    return [
        [[f"{node.kind.name} {node.path} <{' '.join(node.inputs)}" for node in stage.nodes] for stage in level]
        for level in plan.levels
    ]


def compiled(topology: Topology) -> Plan:
    return compile_topology(topology, shuffle_partitions=2)


def test_stateless_application_is_one_stage() -> None:
    plan = compiled(
        topology_of(([source("0/sources/0")], [step("0/steps/0", ["0/sources/0"])], [sink("0/sinks/0", ["0/steps/0"])]))
    )
    assert shape(plan) == [
        [["SOURCE 0/sources/0 <", "COMPUTATION 0/steps/0 <0/sources/0", "SINK 0/sinks/0 <0/steps/0"]]
    ]
    assert plan.ports == {"0/sources/0": 0, "0/sinks/0": 1}
    assert (plan.bucket_count, plan.stages[0].has_state, plan.stages[0].id) == (8, False, "s0")


def test_a_state_step_begins_a_level_and_the_key_exit_has_its_path_and_port() -> None:
    plan = compiled(
        topology_of(
            ([source("0/sources/0")], [step("0/steps/0", ["0/sources/0"], "a")], [sink("0/sinks/0", ["0/steps/0"])])
        )
    )
    assert shape(plan) == [
        [["SOURCE 0/sources/0 <", "KEY 0/steps/0 <0/sources/0"]],
        [["STATE_COMPUTATION 0/steps/0 <", "SINK 0/sinks/0 <0/steps/0"]],
    ]
    (key,), (entry,) = plan.stages[0].exits, plan.stages[1].entries
    assert (key.port, entry.port, entry.state, entry.state_port) == (1, 1, "a", 1)


def test_state_steps_in_a_row_are_levels() -> None:
    steps = [step("0/steps/0", ["0/sources/0"], "a"), step("0/steps/1", ["0/steps/0"], "b")]
    plan = compiled(topology_of(([source("0/sources/0")], steps, [sink("0/sinks/0", ["0/steps/1"])])))
    assert shape(plan)[1:] == [
        [["STATE_COMPUTATION 0/steps/0 <", "KEY 0/steps/1 <0/steps/0"]],
        [["STATE_COMPUTATION 0/steps/1 <", "SINK 0/sinks/0 <0/steps/1"]],
    ]


def test_ports_number_sources_then_state_steps_then_sinks_across_pipelines() -> None:
    plan = compiled(
        topology_of(
            ([source("0/sources/0")], [step("0/steps/0", ["0/sources/0"], "a")], [sink("0/sinks/0", ["0/steps/0"])]),
            ([source("1/sources/0")], [step("1/steps/0", ["1/sources/0"], "b")], []),
        )
    )
    assert plan.ports == {"0/sources/0": 0, "1/sources/0": 1, "0/steps/0": 2, "1/steps/0": 3, "0/sinks/0": 4}


def test_steps_that_share_a_state_run_at_one_level_with_one_state_port() -> None:
    plan = compiled(
        topology_of(
            (
                [source("0/sources/0")],
                [step("0/steps/0", ["0/sources/0"], "shared")],
                [sink("0/sinks/0", ["0/steps/0"])],
            ),
            (
                [source("1/sources/0")],
                [step("1/steps/0", ["1/sources/0"], "own"), step("1/steps/1", ["1/steps/0"], "shared")],
                [],
            ),
        )
    )
    assert shape(plan) == [
        [["SOURCE 0/sources/0 <", "SOURCE 1/sources/0 <", "KEY 0/steps/0 <0/sources/0", "KEY 1/steps/0 <1/sources/0"]],
        [["STATE_COMPUTATION 1/steps/0 <", "KEY 1/steps/1 <1/steps/0"]],
        [["STATE_COMPUTATION 0/steps/0 <", "STATE_COMPUTATION 1/steps/1 <", "SINK 0/sinks/0 <0/steps/0"]],
    ]
    first, second = plan.stages[2].entries
    assert (first.port, second.port, first.state_port, second.state_port) == (2, 4, 2, 2)


def test_a_step_that_reads_two_levels_stands_in_both_stages() -> None:
    steps = [step("0/steps/0", ["0/sources/0"], "a"), step("0/steps/1", ["0/sources/0", "0/steps/0"])]
    plan = compiled(topology_of(([source("0/sources/0")], steps, [sink("0/sinks/0", ["0/steps/1"])])))
    assert shape(plan) == [
        [
            [
                "SOURCE 0/sources/0 <",
                "KEY 0/steps/0 <0/sources/0",
                "COMPUTATION 0/steps/1 <0/sources/0",
                "SINK 0/sinks/0 <0/steps/1",
            ]
        ],
        [["STATE_COMPUTATION 0/steps/0 <", "COMPUTATION 0/steps/1 <0/steps/0", "SINK 0/sinks/0 <0/steps/1"]],
    ]


def test_a_level_has_one_stage_for_each_worker() -> None:
    plan = compiled(
        topology_of(
            ([source("0/sources/0")], [], [sink("0/sinks/0", ["0/sources/0"])]),
            ([source("1/sources/0", worker="other")], [], [sink("1/sinks/0", ["1/sources/0"], "other")]),
            workers=("main", "other"),
        )
    )
    assert [(stage.id, stage.worker) for stage in plan.levels[0]] == [("s0", "main"), ("s1", "other")]


def refused(topology: Topology) -> str:
    with pytest.raises(RunError) as caught:
        compiled(topology)
    assert caught.value.exit_code == 3
    return str(caught.value)


def test_messages_do_not_pass_between_workers_in_native_form() -> None:
    steps = [step("0/steps/0", ["0/sources/0"], worker="other")]
    topology = topology_of(
        ([source("0/sources/0")], steps, [sink("0/sinks/0", ["0/steps/0"], "other")]), workers=("main", "other")
    )
    assert refused(topology) == (
        'P301 "0/steps/0" gets messages of worker "main" on worker "other" in codec "native"\n  at /pipelines/0/steps/0\n'  # noqa: E501
        "  fix: run both on one worker, or declare a built-in codec"
    )


def test_too_many_ports() -> None:
    topology = topology_of(([source("0/sources/0")], [], [sink("0/sinks/0", ["0/sources/0"])]))
    (pipeline,) = topology.pipelines
    sources = tuple(replace(pipeline.sources[0], path=f"0/sources/{number}") for number in range(65535))
    many = replace(topology, pipelines=(replace(pipeline, sources=sources),))
    assert refused(many) == (
        "T104 the application has 65536 sources, state steps and sinks; at most 65533 are possible\n"
        "  at /pipelines\n  fix: split the application"
    )


def test_a_state_that_feeds_itself() -> None:
    steps = [step("0/steps/0", ["0/sources/0"], "a"), step("0/steps/1", ["0/steps/0"], "a")]
    assert refused(topology_of(([source("0/sources/0")], steps, [sink("0/sinks/0", ["0/steps/1"])]))) == (
        'P303 "0/steps/1": state "a" after itself is not supported\n  at /pipelines/0/steps/1\n'
        "  fix: give the second step a state name of its own"
    )


def test_a_state_on_two_workers() -> None:
    topology = topology_of(
        ([source("0/sources/0")], [step("0/steps/0", ["0/sources/0"], "a")], [sink("0/sinks/0", ["0/steps/0"])]),
        ([source("1/sources/0", worker="other")], [step("1/steps/0", ["1/sources/0"], "a", "other")], []),
        workers=("main", "other"),
    )
    assert refused(topology) == (
        'P303 "1/steps/0": state "a" on worker "other" and on worker "main" is not supported\n  at /pipelines/1/steps/0\n'  # noqa: E501
        "  fix: give the states names of their own, or use one worker"
    )


@pytest.mark.parametrize("path", sorted(VALID.glob("*.json")), ids=lambda path: path.stem)
def test_every_valid_vector_compiles_alike_whatever_its_workers(path: Path) -> None:
    document = json.loads(path.read_bytes())
    plan = compiled(load_document(document))
    for worker in document["workers"]:
        worker |= {"language": "go", "command": ["/bin/app"], "components": []}
    assert compiled(load_document(document)) == plan
    entries = {node.path for stage in plan.stages for node in stage.entries}
    keys = {node.path for stage in plan.stages for node in stage.exits if node.kind is NodeKind.KEY}
    assert keys <= entries


EXPLAINED = """\
application "Word Count Application"
2 stages, 1 shuffle
8 buckets of keys over 2 shuffle partitions

stage s0 on worker main
  decode   0/sources/0 "Split and Count" (Decoder) [port 0]
  compute* 0/steps/0 "split into words" (Split) <- 0/sources/0
  key      for 0/steps/1 "Count Word" (WordPartitionFunction) [port 1] <- 0/steps/0

stage s1 on worker main, after shuffle 1
  state    0/steps/1 "Count Word" (CountWord), state "word totals" [port 1]
  encode   0/sinks/0 "Split and Count" (Encoder) [port 2] <- 0/steps/1

steps marked * give any number of messages for each one

on Spark
  source             ranges of the journal, read by the tasks themselves
  mapPartitions      s0: calls of the worker, each of up to 1 MiB of messages
  repartition        by bucket into 2 partitions
  transformWithState s1: version and log of each bucket in RocksDB
  sink               publishes the staged output to the outbox, once for each batch
"""


def test_explain_and_graph_of_the_word_count() -> None:
    topology = load_document(json.loads((VALID / "word_count.json").read_bytes()))
    assert explain(compiled(topology), topology) == EXPLAINED
    assert mermaid(topology) == (
        "flowchart LR\n"
        '  subgraph p0["Split and Count"]\n'
        '    n0_sources_0(["Split and Count tcp 127.0.0.1:7010"])\n'
        '    n0_steps_0["split into words"]\n'
        '    n0_steps_1[("Count Word / word totals")]\n'
        '    n0_sinks_0(["Split and Count tcp 127.0.0.1:7002"])\n'
        "  end\n"
        "  n0_sources_0 --> n0_steps_0\n  n0_steps_0 ==> n0_steps_1\n  n0_steps_1 --> n0_sinks_0\n"
    )


def test_names_are_escaped_in_graphs() -> None:
    topology = topology_of(([source("0/sources/0", 'a "b" <c> \\')], [], [sink("0/sinks/0", ["0/sources/0"])]))
    assert "a #quot;b#quot; #lt;c#gt;" in mermaid(topology)
