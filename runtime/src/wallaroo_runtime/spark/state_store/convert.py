"""Moves the state of a checkpoint between micro-batches and real-time mode, while no query runs.

The logs are read and sorted as for a rescale. A new query of the other mode, whose only row names them, writes them in
its micro-batch 0. Spark's own tool then writes that state as the one of the micro-batch that is to be the last, and
Spark's own classes commit it: so offsets, the query's id and the count of its micro-batches go on.
"""

import json
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from wallaroo_runtime.plan import Plan
from wallaroo_runtime.plan.block import blocks_of
from wallaroo_runtime.spark.machine.jar import java_class
from wallaroo_runtime.spark.realtime.settings import STATE_FORMAT, STATES_WITH_IDS
from wallaroo_runtime.spark.state_store.rescale import (
    Moved,
    failed,
    moving,
    one_row,
    read_variable,
    run_one_batch,
    sort_logs,
    state_variables,
    verify,
    write_file,
    written_logs,
)
from wallaroo_runtime.spark.state_store.stage_log import VERSION
from wallaroo_runtime.storage.spark_log import last_commit

_ROW_SCHEMA = "row BINARY"
_ROW_ARROW = pa.schema([("row", pa.binary())])
_SNAPSHOT_BYTES = slice(24, 32)  # of a version in real-time mode, `BucketVersion`


@dataclass(frozen=True, slots=True)
class Conversion:
    """What is to be done.

    Attributes:
        old: Spark's checkpoint; it has a micro-batch and none that is pending, and stays as it is.
        new: The directory to make, next to it.
        folder: A directory for what is under way; it does not exist.
        before: The plan with the numbers of `old`.
        plan: The plan with those of `new`.
        is_realtime: Whether `new` is of real-time mode.
        batch: The last micro-batch that `new` shall have.
        topics: Lines of its offsets for the sources that follow the journal.
    """

    old: Path
    new: Path
    folder: Path
    before: Plan
    plan: Plan
    is_realtime: bool
    batch: int
    topics: tuple[str, ...] = ()


def convert(session: SparkSession, what: Conversion) -> Moved:
    """Write a checkpoint of Spark's of the other mode, with the state and the offsets of another one.

    Args:
        session: A local one, with the settings of the mode to be.
        what: Is to be done.

    Raises:
        RunError: R664, it did not work; `new` is of no use then.
    """
    with moving():
        session.conf.set(STATE_FORMAT, STATES_WITH_IDS)
        moved = sort_logs(session, what.old, what.folder, what.before, what.plan)
        if not what.is_realtime:
            session.conf.unset(STATE_FORMAT)
        what.new.mkdir(mode=0o700)
        shutil.copyfile(what.old / "metadata", what.new / "metadata")  # the id of the query
        _write_states(session, what)
        _renumber(session, what)
        if what.is_realtime:
            _verify_realtime(session, what.new, moved)
        else:
            verify(session, what.new, what.plan, moved)
    return moved


def _write_states(session: SparkSession, what: Conversion) -> None:
    """Let a query of the mode to be take over the logs; without state it has only its offsets."""
    session.conf.set("spark.sql.shuffle.partitions", what.plan.shuffle_partitions)
    rows = one_row(session, 1)
    if not what.is_realtime:
        run_one_batch(written_logs(rows, what.folder, what.plan.bucket_ids, what.plan), what.new, 0)
        return
    frame = rows.mapInArrow(LogRows(tuple(_log_rows(what))).run, _ROW_SCHEMA)
    if len(what.plan.levels) > 1:
        operators: Any = java_class(session, "realtime.RealTime")
        frame = DataFrame(operators.load(frame._jdf), session)
    run_one_batch(frame, what.new, 0, "update")


def _log_rows(what: Conversion) -> Iterator[bytes]:
    """Yield what `LogLoader` is to take over: a row for each bucket that has a log."""
    blocks, count = blocks_of(what.plan), len(what.plan.bucket_ids)
    for stage, block in blocks.items():
        for bucket in range(count):
            if files := sorted(map(str, (what.folder / stage / str(bucket)).glob("*.frames"))):
                nonce = f"{1 + secrets.randbelow((1 << 64) - 1):016x}"
                yield json.dumps({"bucket": block * count + bucket, "nonce": nonce, "files": files}).encode()


@dataclass(frozen=True, slots=True)
class LogRows:
    """The function of `mapInArrow` that gives rows in place of the one that comes.

    Attributes:
        rows: To give.
    """

    rows: tuple[bytes, ...]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows once for each row that comes; an empty one keeps a store without states in being."""
        for batch in batches:
            for _ in range(batch.num_rows):
                yield pa.RecordBatch.from_arrays([pa.array(self.rows, pa.binary())], schema=_ROW_ARROW)


def _renumber(session: SparkSession, what: Conversion) -> None:
    """Let micro-batch 0 of the new checkpoint be the one that is to be the last, at the offset of the old one."""
    offsets = what.new / "offsets"
    head = (offsets / "0").read_text(encoding="utf-8").splitlines()[:2]
    journal = (what.old / "offsets" / str(last_commit(what.old))).read_text(encoding="utf-8").splitlines()[2]
    for batch in (what.batch - 1, what.batch):  # Spark reads the one before, too
        write_file(offsets / str(batch), "\n".join([*head, journal, *what.topics]))
    jvm: Any = session._jvm
    spark, place, none = session._jsparkSession, f"file:{what.new}", jvm.scala.Option.empty()
    streaming = jvm.org.apache.spark.sql.execution.streaming
    commits = streaming.runtime.StreamingQueryCheckpointMetadata(spark, place, False).commitLog()
    ids = none
    if state_variables(what.new):
        conf = spark.sessionState().newHadoopConf()
        ids = streaming.state.StateRewriter(spark, 0, what.batch, place, conf, none, none, none).run()
    commits.add(what.batch, commits.get(0).get().withStateUniqueIds(ids))
    for path in (what.new / "commits" / "0", *([offsets / "0"] if what.batch > 1 else [])):
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def _verify_realtime(session: SparkSession, checkpoint: Path, moved: Moved) -> None:
    """Read what Spark has stored; raises R664 when it is not what was sorted."""
    size = 0
    for operator, variables in enumerate(state_variables(checkpoint)):
        if VERSION in variables:
            for row in read_variable(session, checkpoint, operator, VERSION).collect():
                size += int.from_bytes(row["user_map_value"]["value"][_SNAPSHOT_BYTES], "big")
    if size != moved.size:
        raise failed(reason=f"Spark has stored {size} bytes of {moved.size}")
