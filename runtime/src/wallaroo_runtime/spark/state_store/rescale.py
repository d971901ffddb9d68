"""Moves the state of a checkpoint to other numbers of partitions and buckets, while no query runs.

Done in three steps, all on a copy: the logs are read and sorted by new bucket; Spark's own tool gives its store the new
number of partitions; and one micro-batch without messages, of the same query, writes each new bucket's log and clears
the old ones. So offsets, the query's id and the count of its micro-batches go on.
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import carried, described
from wallaroo_runtime.spark.machine.hadoop import spark_path
from wallaroo_runtime.spark.micro_batches import MicroBatches
from wallaroo_runtime.spark.state_store.rescale_log import COUNT_SCHEMA, LogSorter, sorted_entries
from wallaroo_runtime.spark.state_store.stage_log import LOG, VERSION, stage_log, variable_of
from wallaroo_runtime.spark.task.row import DATA, FRAME_SCHEMA, FrameRow, frame_batch
from wallaroo_runtime.spark.task.state import BucketState
from wallaroo_runtime.storage.spark_log import latest_batch
from wallaroo_runtime.worker.session import BucketResult, Version

NO_OFFSET = "-"


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved.

    Attributes:
        keys: Keys with state; a key of two states counts twice.
        size: Bytes of the new logs.
    """

    keys: int
    size: int


def state_variables(checkpoint: Path) -> list[list[str]]:
    """Return the names of the state variables of each of Spark's operators, in the order of the operators."""
    found = []
    for operator in sorted((checkpoint / "state").glob("[0-9]*"), key=lambda path: int(path.name)):
        log = operator / "_metadata" / "v2"
        _version, text = (log / str(latest_batch(log))).read_text(encoding="utf-8").split("\n", 1)
        properties = json.loads(json.loads(text)["operatorPropertiesJson"])
        found.append([variable["stateName"] for variable in properties["stateVariables"]])
    return found


def rescale(session: SparkSession, old: Path, new: Path, folder: Path, before: Plan, plan: Plan) -> Moved:
    """Write a checkpoint of Spark's with the state of another one, for the same query.

    Args:
        session: A local one.
        old: Spark's checkpoint; it has no pending micro-batch, and stays as it is.
        new: The directory to make, next to it.
        folder: A directory for what is under way; it does not exist.
        before: The plan with the numbers of `old`.
        plan: The plan with those of `new`.

    Raises:
        RunError: R664, it did not work; `new` is of no use then.
    """
    with moving():
        moved = sort_logs(session, old, folder, before, plan)
        _copy(old, new)
        if plan.shuffle_partitions != before.shuffle_partitions:
            session._streamingCheckpointManager.repartition(str(new), plan.shuffle_partitions, False)
        _plan_batch(new)
        _run_batch(session, new, folder, before, plan)
        verify(session, new, plan, moved)
    return moved


@contextmanager
def moving() -> Iterator[None]:
    """Turn what may fail while states are moved into an R664."""
    try:
        yield
    except RunError:
        raise
    except (PySparkException, Py4JError, OSError, ValueError, KeyError) as error:
        raise failed(reason=described(causes_of(error)).reason) from error


def failed(*, reason: str) -> RunError:
    """Return an R664."""
    return RunError.of("R664", reason=reason)


def read_variable(session: SparkSession, checkpoint: Path, operator: int, variable: str) -> DataFrame:
    """Return the content of a state variable, as of the last committed micro-batch."""
    reader = session.read.format("statestore").option("operatorId", operator)
    return reader.option("stateVarName", variable).load(spark_path(checkpoint))


def _logs(session: SparkSession, checkpoint: Path, plan: Plan) -> Iterator[tuple[str, DataFrame]]:
    """Yield the id of each stage that has a log with its log, whatever the mode."""
    stages = [stage.id for level in plan.levels[1:] for stage in level if stage.has_state]
    for operator, variables in enumerate(state_variables(checkpoint)):
        for stage in stages:
            if variable := variable_of(LOG, stage, variables):
                content = read_variable(session, checkpoint, operator, variable)
                yield stage, stage_log(variable, content, stage, plan)


def sort_logs(session: SparkSession, old: Path, folder: Path, before: Plan, plan: Plan) -> Moved:
    """Write the logs of a checkpoint of Spark's to files, sorted by the buckets of another plan.

    Args:
        session: A local one.
        old: Spark's checkpoint.
        folder: Where to.
        before: The plan of `old`.
        plan: The other one.
    """
    keys = size = 0
    for stage, log in _logs(session, old, before):
        sorter = LogSorter(folder / stage, len(plan.bucket_ids))
        for row in log.mapInArrow(sorter.run, COUNT_SCHEMA).collect():
            keys, size = keys + row["keys"], size + row["bytes"]
    return Moved(keys, size)


def _copy(old: Path, new: Path) -> None:
    """Link the files, which Spark never changes; only where its records name the directory they are written again."""
    shutil.copytree(old, new, copy_function=os.link)
    relocate(new, f"file:{new}")


def relocate(checkpoint: Path, place: str) -> None:
    """Let the records of a checkpoint of Spark's, which name its files, name them where it will be used.

    Args:
        checkpoint: A directory.
        place: URL of the directory that it will be.
    """
    for record in checkpoint.glob("state/*/_metadata/v2/[0-9]*"):
        version, text = record.read_text(encoding="utf-8").split("\n", 1)
        value = json.loads(text)
        for store in value["stateStoreInfo"]:
            names = (path.rpartition("/state/")[2] for path in store["stateSchemaFilePaths"])
            store["stateSchemaFilePaths"] = [f"{place}/state/{name}" for name in names]
        write_file(record, f"{version}\n{json.dumps(value, separators=(',', ':'))}")


def write_file(path: Path, text: str) -> None:
    """Give a file of Spark's another content."""
    replace_file(path, text.encode("utf-8"), durable=True)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)  # Hadoop's checksum of the old content


def _plan_batch(checkpoint: Path) -> None:
    """Plan a micro-batch that ends where the last one ended.

    Spark asks a source for rows only when its offset has moved, and compares offsets as texts; so that one is asked,
    its offset before gets a blank more. What is planned has the very text that the sources gave.
    """
    last = latest_batch(checkpoint / "offsets")
    path = checkpoint / "offsets" / str(last)
    text = path.read_text(encoding="utf-8")
    write_file(checkpoint / "offsets" / str(last + 1), text)
    lines = text.splitlines()
    chosen = next(number for number in range(2, len(lines)) if lines[number] != NO_OFFSET)
    lines[chosen] += " "
    write_file(path, "\n".join(lines))


def _sources(checkpoint: Path) -> int:
    text = (checkpoint / "offsets" / str(latest_batch(checkpoint / "offsets"))).read_text(encoding="utf-8")
    return len(text.splitlines()) - 2


def _run_batch(session: SparkSession, checkpoint: Path, folder: Path, before: Plan, plan: Plan) -> None:
    ids = tuple(sorted({*before.bucket_ids, *plan.bucket_ids}))
    session.conf.set("spark.sql.shuffle.partitions", plan.shuffle_partitions)
    frame = written_logs(one_row(session, _sources(checkpoint)), folder, ids, plan)
    run_one_batch(frame, checkpoint, latest_batch(checkpoint / "offsets"))


def one_row(session: SparkSession, sources: int) -> DataFrame:
    """Return a streaming dataset of so many sources, each of which has one row in the next micro-batch."""
    session.dataSource.register(OneRowSource)
    return reduce(DataFrame.union, [session.readStream.format(OneRowSource.name()).load() for _ in range(sources)])


def written_logs(rows: DataFrame, folder: Path, ids: tuple[int, ...], plan: Plan) -> DataFrame:
    """Return the dataset whose operators, those of a plan in micro-batches, take over sorted logs.

    Args:
        rows: From `one_row`.
        folder: Has the logs.
        ids: Of all buckets that are to be written or cleared.
        plan: Has the buckets that are to be.
    """
    frame = rows.mapInArrow(RowMaker(ids).run, FRAME_SCHEMA)
    for level in plan.levels[1:]:
        writer = LogWriter(level, folder, plan.bucket_ids)
        frame = frame.groupBy("bucket").transformWithState(writer, FRAME_SCHEMA, "Append", "None")
    return frame


def run_one_batch(frame: DataFrame, checkpoint: Path, batch: int, mode: str = "append") -> None:
    """Run a query for one micro-batch: the planned one, or else the next one.

    Raises:
        RunError: R664, it was not committed.
    """
    writer = frame.writeStream.option("checkpointLocation", spark_path(checkpoint)).outputMode(mode)
    MicroBatches(frame.sparkSession).run_one(writer)
    if latest_batch(checkpoint / "commits") != batch:
        raise failed(reason=f"Spark did not commit micro-batch {batch}")


class OneRowSource(DataSource):
    """Stands for a source of the query, whatever its kind: gives one row for the planned micro-batch."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "wallaroo-one-row"

    def schema(self) -> str:
        """Return the columns."""
        return "number INT"

    def streamReader(self, schema: StructType) -> "OneRowReader":  # noqa: N802 - Spark's name
        """Return a reader."""
        return OneRowReader()


class OneRowReader(DataSourceStreamReader):
    """Gives one row for a range, and offers a new one to a new query alone; lives in a process of Spark's."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return where a new query begins."""
        return {}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802
        """Return where it is; of a new query, where it shall be."""
        return start or {"row": 1}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return one partition."""
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        """Yield the row."""
        yield (0,)


@dataclass(frozen=True, slots=True)
class RowMaker:
    """The function of `mapInArrow` that makes a row for each bucket, old or new."""

    bucket_ids: tuple[int, ...]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows once for each row that comes."""
        ids = self.bucket_ids
        for batch in batches:
            for _ in range(batch.num_rows):
                yield frame_batch([FrameRow(number, 0, 0, DATA, 0, b"") for number in ids])


class LogWriter(StatefulProcessor):
    """Gives each bucket of a level its new log; what is no longer a bucket gets none."""

    def __init__(self, stages: tuple[Stage, ...], folder: Path, bucket_ids: tuple[int, ...]) -> None:
        self._stages, self._folder, self._bucket_ids = stages, folder, bucket_ids
        self._states: dict[str, BucketState] = {}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Take hold of the state."""
        self._states = {stage.id: BucketState(handle, stage) for stage in self._stages if stage.has_state}

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Write one bucket's logs, and hand its row to the next level."""
        with carried():
            bucket = self._bucket_ids.index(key[0]) if key[0] in self._bucket_ids else None
            for stage, state in self._states.items():
                entries = [] if bucket is None else list(sorted_entries(self._folder, stage, bucket))
                if entries:
                    version = Version(1, 1 + secrets.randbelow((1 << 64) - 1))
                    state.store(BucketResult(version, changes=entries, is_snapshot=True))
                else:
                    state.clear()
            yield from rows


def verify(session: SparkSession, checkpoint: Path, plan: Plan, moved: Moved) -> None:
    """Read what Spark has stored; raises R664 when it is not what was sorted."""
    size = 0
    for operator, variables in enumerate(state_variables(checkpoint)):
        for variable in (name for name in variables if name.startswith(f"{VERSION}_")):
            size += _verified(read_variable(session, checkpoint, operator, variable), plan)
    if size != moved.size:
        raise failed(reason=f"Spark has stored {size} bytes of {moved.size}")


def _verified(version: DataFrame, plan: Plan) -> int:
    size = 0
    for row in version.collect():
        size += row["value"]["snapshot_bytes"]
        if row["key"]["bucket"] not in plan.bucket_ids or row["partition_id"] >= plan.shuffle_partitions:
            raise failed(reason=f"Spark has kept the old bucket {row['key']['bucket']}")
    return size
