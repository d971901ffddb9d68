"""Writes a new checkpoint of Spark's with the states of an old one, for other numbers of buckets or the other mode.

A temporary query with the operators of the new mode writes the states, sorted by the new buckets, in micro-batch 0.
Then Spark's own tool rewrites this state as that of a later micro-batch, the last one of the new checkpoint, and
Spark's own classes commit it. So the new checkpoint continues the offsets, the query's id and its batch numbers.
"""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wallaroo.diagnostic.fault import reach
from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.plan.block import blocks_of
from wallaroo_runtime.spark.machine.hadoop import spark_path
from wallaroo_runtime.spark.micro_batches import MicroBatches, Rows
from wallaroo_runtime.spark.state_store.layout import (
    SparkStateStore,
    operator_count,
    operator_of,
    operators_of,
    reason_of,
    state_store,
)
from wallaroo_runtime.storage.spark_log import last_commit

LOGS = ("offsets", "commits", "state")  # folders that a rescale writes; other files are copied
_SNAPSHOT_BYTES = slice(24, 32)  # place of this field in the bytes of a `BucketVersion`
_VERSIONS = "number & 4294967295 = 4294967295"


@dataclass(frozen=True, slots=True)
class Moved:
    """The counts of the states that a rescale has written.

    Attributes:
        keys: Number of keys with state. A key with two states counts twice.
        size: Number of bytes of the new state logs.
    """

    keys: int
    size: int


@dataclass(frozen=True, slots=True)
class Rescaling:
    """The parameters of a rescale, which makes a new checkpoint of Spark's from an old one.

    Attributes:
        old: Spark's old checkpoint, which has a micro-batch. It is not changed.
        new: The directory to create, next to `old`.
        before: The plan with the numbers of `old`.
        plan: The plan with the numbers of `new`.
        is_realtime: Whether `new` is for real-time mode.
        batch: Number of the last micro-batch of `new`.
        offsets: Lines of the offsets of that micro-batch, one for each source.
    """

    old: Path
    new: Path
    before: Plan
    plan: Plan
    is_realtime: bool
    batch: int
    offsets: tuple[str, ...]


def rescale(session: SparkSession, what: Rescaling) -> Moved:
    """Write a new checkpoint of Spark's for the same query, with the states of an old checkpoint.

    Args:
        session: A local session.
        what: Describes the job.

    Raises:
        RunError: R664 if the rescale fails. Then `new` cannot be used.
    """
    try:
        shutil.copytree(what.old, what.new, copy_function=os.link, ignore=shutil.ignore_patterns(*LOGS))
        notes = load(session, what.plan, spark_path(what.new), _moved(session, what), is_realtime=what.is_realtime)
        moved = Moved(sum(note["keys"] for note in notes), sum(note["bytes"] for note in notes))
        _renumber(session, what)
        _verify(session, what, moved)
    except (PySparkException, Py4JError, OSError, ValueError, KeyError) as error:
        raise RunError.of("R664", reason=reason_of(error)) from error
    return moved


def _moved(session: SparkSession, what: Rescaling) -> Callable[[Stage], list[Any]]:
    """Return a function for `load` that reads the old states of a stage, sorted by the new buckets."""
    stored = SparkStateStore(session, spark_path(what.old), what.before)
    batch, operators = last_commit(what.old), operator_count(what.old)
    blocks, count, targets = blocks_of(what.plan), len(what.plan.bucket_ids), what.plan.targets

    def logs(stage: Stage) -> list[Any]:
        operator = operator_of(what.before, stage.id, operators)
        if operator is None:
            return []
        log = stored.logs(stage.id, operator, batch)
        return [state_store(session).moved(log, blocks[stage.id], count, targets)]

    return logs


def load(
    session: SparkSession, plan: Plan, checkpoint: str, logs: Callable[[Stage], Sequence[Any]], *, is_realtime: bool
) -> list[dict[str, Any]]:
    """Write the first states of a new checkpoint of Spark's, in micro-batch 0 of a temporary query.

    Args:
        plan: The plan with the numbers of the new checkpoint.
        checkpoint: URL of Spark's new checkpoint. It may have the id of a query, but no micro-batch.
        logs: Returns Java datasets with the rows of a stage's state logs.
        is_realtime: Whether the checkpoint is for real-time mode.

    Returns:
        The reports of the operators in Java, with counts of the states that they wrote.
    """
    java, notes = state_store(session), list[dict[str, Any]]()
    none = session.range(0).selectExpr("CAST(NULL AS BINARY) AS row")._jdf
    operators = []
    for stages in operators_of(plan, is_realtime=is_realtime):
        rows = none
        for log in (each for stage in stages for each in logs(stage)):
            rows = rows.union(log)
        operators.append(rows)

    def take(rows: Rows, batch: int) -> None:
        notes.extend(json.loads(note) for note in rows)
        reach("states.before_commit")

    session.conf.set("spark.sql.shuffle.partitions", plan.shuffle_partitions)
    frame = DataFrame(java.load(session._jsparkSession, operators, is_realtime), session)
    writer = frame.writeStream.option("checkpointLocation", checkpoint)
    MicroBatches(session, take).run_one(writer.outputMode("update" if is_realtime else "append"))
    return notes


def _renumber(session: SparkSession, what: Rescaling) -> None:
    """Turn micro-batch 0 of the new checkpoint into micro-batch `what.batch` with the given offsets."""
    offsets = what.new / "offsets"
    if last_commit(what.new) != 0:
        raise RunError.of("R664", reason="Spark did not commit micro-batch 0")
    head = (offsets / "0").read_text(encoding="utf-8").splitlines()[:2]
    for batch in (what.batch - 1, what.batch):  # Spark also reads the offsets of the micro-batch before
        write_file(offsets / str(batch), "\n".join([*head, *what.offsets]))
    jvm: Any = session._jvm
    spark, url, none = session._jsparkSession, f"file:{what.new}", jvm.scala.Option.empty()
    streaming = jvm.org.apache.spark.sql.execution.streaming
    commits = streaming.runtime.StreamingQueryCheckpointMetadata(spark, url, False).commitLog()
    ids = none
    if operator_count(what.new):
        conf = spark.sessionState().newHadoopConf()
        ids = streaming.state.StateRewriter(spark, 0, what.batch, url, conf, none, none, none).run()
    commits.add(what.batch, commits.get(0).get().withStateUniqueIds(ids))
    for path in (what.new / "commits" / "0", *([offsets / "0"] if what.batch > 1 else [])):
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _verify(session: SparkSession, what: Rescaling, moved: Moved) -> None:
    """Read the new states back. Raise R664 if their size differs from the size that was written."""
    stored, size = SparkStateStore(session, spark_path(what.new), what.plan), 0
    for operator, stages in enumerate(operators_of(what.plan, is_realtime=what.is_realtime)):
        for stage in stages:
            logs = DataFrame(stored.logs(stage.id, operator, what.batch), session)
            for row in logs.where(_VERSIONS).collect():
                size += int.from_bytes(row["value"][_SNAPSHOT_BYTES], "big")
    if size != moved.size:
        raise RunError.of("R664", reason=f"Spark has stored {size} bytes of {moved.size}")


def relocate(checkpoint: Path, target: str) -> None:
    """Change the absolute file names in the records of one of Spark's checkpoints, before the checkpoint is moved.

    Args:
        checkpoint: The directory of the checkpoint.
        target: URL of the directory where the checkpoint will be used.
    """
    for record in checkpoint.glob("state/*/_metadata/v2/[0-9]*"):
        version, text = record.read_text(encoding="utf-8").split("\n", 1)
        value = json.loads(text)
        for store in value["stateStoreInfo"]:
            names = (path.rpartition("/state/")[2] for path in store["stateSchemaFilePaths"])
            store["stateSchemaFilePaths"] = [f"{target}/state/{name}" for name in names]
        write_file(record, f"{version}\n{json.dumps(value, separators=(',', ':'))}")


def write_file(path: Path, text: str) -> None:
    """Replace the content of one of Spark's files, and remove Hadoop's checksum of the old content."""
    replace_file(path, text.encode("utf-8"), durable=True)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # this is Hadoop's checksum of the old content
