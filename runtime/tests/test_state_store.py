"""Drawn states in Spark's store, written for one pair of numbers and one mode after the other, and read each time."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from wallaroo.message.key import bucket_of
from wallaroo_runtime.durable.directory import LocalDirectory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Plan, Stage, compile_topology
from wallaroo_runtime.plan.block import blocks_of
from wallaroo_runtime.spark.state_store.choice import StateChoice, StateRow
from wallaroo_runtime.spark.state_store.layout import operator_count, reason_of, state_store
from wallaroo_runtime.spark.state_store.reader import StateReader
from wallaroo_runtime.spark.state_store.rescale import Moved, Rescaling, load, rescale
from wallaroo_runtime.storage.spark_log import last_commit
from wallaroo_runtime.topology.load import load_document

pytestmark = pytest.mark.jvm
VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"
LARGE = b"large"
States = dict[int, dict[bytes, bytes]]  # by port of the state


def plan_of(name: str, partitions: int, buckets: int) -> Plan:
    """Return the plan of a vector."""
    document = json.loads((VALID / f"{name}.json").read_bytes())
    return compile_topology(load_document(document), shuffle_partitions=partitions, buckets_per_partition=buckets)


def stages_of(plan: Plan) -> list[tuple[Stage, int]]:
    """Return each stage with state, with the port of a state of it."""
    return [
        (stage, next(node.state_port for node in stage.nodes if node.state)) for stage in plan.stages if stage.has_state
    ]


def written(session: SparkSession, plan: Plan, states: States, checkpoint: Path) -> list[dict[str, Any]]:
    """Write the states, as groups have them, into a new checkpoint of Spark's."""
    ports = {stage.id: port for stage, port in stages_of(plan)}
    count, targets = len(plan.bucket_ids), list(plan.targets)

    def logs(stage: Stage) -> list[Any]:
        rows = [(key, value, False) for key, value in states[ports[stage.id]].items()]
        values = session.createDataFrame(rows, "key BINARY, value BINARY, is_double BOOLEAN")
        block = blocks_of(plan)[stage.id]
        return [state_store(session).table(values._jdf, ports[stage.id], False, block, count, targets)]

    return load(session, plan, str(checkpoint), logs, is_realtime=False)


def check(logs: StateReader, states: States, batch: int) -> None:
    """Compare what is stored with the states; ask for a single key of the first stage, too."""
    assert logs.batch() == batch
    for stage, port in stages_of(logs.plan):
        found = {row.key: row for row in logs.rows(stage.id, StateChoice(frozenset({port})), batch)}
        assert found.keys() == states[port].keys()
        assert all(row.value.endswith(states[port][key]) and row.size == len(row.value) for key, row in found.items())
        if port != stages_of(logs.plan)[0][1]:
            continue
        key = min(states[port])
        buckets = (bucket_of(key, logs.plan.bucket_count),)
        choice = StateChoice(frozenset({port}), keys=frozenset({key}), most_bytes=0, limit=2)
        row = found[key]
        assert [*logs.rows(stage.id, choice, batch, buckets)] == [StateRow(port, key, row.encoding, row.size, b"")]


def test_states_are_the_same_whatever_the_numbers_and_the_mode(spark: SparkSession, tmp_path: Path) -> None:
    """Two steps with state, of different levels, go from each mode to each."""
    name, draw, modes = "branches", random.Random(1), (False, True, True, False)  # whether it is real-time mode
    plan = plan_of(name, 2, 3)
    states = {
        port: {b"%d" % draw.randrange(10**6): draw.randbytes(draw.randrange(50)) for _ in range(300)}
        for _, port in stages_of(plan)
    }
    states[stages_of(plan)[0][1]][LARGE] = draw.randbytes(9_000_000)
    keys = sum(map(len, states.values()))
    notes = written(spark, plan, states, tmp_path / "spark-0")
    assert sum(note["keys"] for note in notes) == keys
    batch, levels = 0, len(plan.levels) - 1
    for number, is_realtime in enumerate(modes):
        partitions = 1 if is_realtime else draw.randint(1, 3)
        after = plan_of(name, partitions, draw.randint(1, 5))
        old, new = tmp_path / f"spark-{number}", tmp_path / f"spark-{number + 1}"
        batch, line = batch + draw.randint(1, 9), json.dumps({"offset": batch})
        moved = rescale(spark, Rescaling(old, new, plan, after, is_realtime, batch, (line,)))
        plan = after
        assert moved.keys == keys
        assert operator_count(new) == (1 if is_realtime else levels)
        assert (new / "metadata").read_bytes() == (tmp_path / "spark-0" / "metadata").read_bytes()
        assert (new / "offsets" / str(batch)).read_text().splitlines()[2:] == [line]
        check(StateReader(spark, LocalDirectory(tmp_path), plan, new.name), states, batch)


def test_an_application_without_state_gets_other_numbers(spark: SparkSession, tmp_path: Path) -> None:
    draw, plan, batch = random.Random(3), plan_of("no_steps", 2, 3), 0
    assert written(spark, plan, {}, tmp_path / "spark-0") == []
    for number, is_realtime in enumerate((False, True, True, False)):
        after = plan_of("no_steps", 1 if is_realtime else draw.randint(1, 3), draw.randint(1, 5))
        old, new = tmp_path / f"spark-{number}", tmp_path / f"spark-{number + 1}"
        batch, line = batch + draw.randint(1, 9), json.dumps({"offset": batch})
        assert rescale(spark, Rescaling(old, new, plan, after, is_realtime, batch, (line,))) == Moved(0, 0)
        assert (operator_count(new), last_commit(new)) == (0, batch)
        assert (new / "offsets" / str(batch)).read_text().splitlines()[2:] == [line]
        plan = after


def test_a_damaged_store_is_told(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(7 << 32, b"an entry")], "number LONG, value BINARY")
    choice = StateChoice(frozenset({1})).to_json()
    with pytest.raises(Py4JError) as caught:
        DataFrame(state_store(spark).chosen(rows._jdf, choice), spark).collect()
    assert reason_of(caught.value) == "the log of a bucket is damaged: it has entries and no version"


def test_a_damaged_store_is_told_with_a_remedy(tmp_path: Path) -> None:
    class Damaged(LocalDirectory):
        def names(self, name: str) -> list[str]:
            msg = "a log that is none"
            raise ValueError(msg)

    plan = plan_of("word_count", 1, 1)
    stage, port = stages_of(plan)[0]
    with pytest.raises(RunError) as caught:
        list(StateReader(Any, Damaged(tmp_path), plan).rows(stage.id, StateChoice(frozenset({port})), 0))  # type: ignore[arg-type]
    assert str(caught.value) == (
        f"R771 the states of {tmp_path} cannot be shown; ValueError: a log that is none\n"
        "  fix: ask again if a run goes on; of a damaged checkpoint restore all from one backup, as R698 says"
    )
