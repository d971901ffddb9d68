"""Reads the logs of states out of Spark's store, as of the last committed micro-batch; a query may run meanwhile."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from wallaroo_runtime.durable.directory import Directory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import carried, described
from wallaroo_runtime.spark.machine.hadoop import spark_path
from wallaroo_runtime.spark.state_store.choice import StateChoice, StateRow, row_bytes
from wallaroo_runtime.spark.state_store.stage_log import LOG, stage_log, variable_of
from wallaroo_runtime.spark.task.state import LOG_SCHEMA
from wallaroo_runtime.storage.spark_log import last_batch
from wallaroo_runtime.worker.session import grouped

ROW_SCHEMA = "port INT, key BINARY, encoding INT, size LONG, value BINARY"
_ARROW = pa.schema(
    [("port", pa.int32()), ("key", pa.binary()), ("encoding", pa.int32()), ("size", pa.int64()), ("value", pa.binary())]
)
_ENTRY = LOG_SCHEMA.partition(" ")[0]
BATCH_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SparkLogs:
    """The state logs in a checkpoint of Spark's.

    Attributes:
        files: The checkpoint directory of the application.
        plan: Of the application, with the numbers of the checkpoint.
        name: Of Spark's checkpoint in it.
    """

    session: SparkSession
    files: Directory
    plan: Plan
    name: str = "spark"

    def batch(self) -> int:
        """Return the last committed micro-batch; -1: there is none."""
        return last_batch(self.files.names(f"{self.name}/commits"))

    def rows(self, stage: str, choice: StateChoice, batch: int, bucket_ids: tuple[int, ...] = ()) -> Iterator[StateRow]:
        """Yield the chosen states of a stage.

        Args:
            stage: Id of the stage.
            choice: Which states; with a limit, those of the first keys of all buckets, in order.
            batch: A committed micro-batch.
            bucket_ids: Only of these buckets, as Spark knows them; none: of all.

        Raises:
            RunError: R771, the store cannot be read.
        """
        try:
            log = self._log(stage, batch)
            if log is None:
                return
            if bucket_ids:
                log = log.where(col("key.bucket").isin(*bucket_ids))
            found = log.mapInArrow(RowReader(choice).run, ROW_SCHEMA)
            if choice.limit is not None:
                found = found.orderBy("key", "port").limit(choice.limit)
            for row in found.toLocalIterator():
                yield StateRow(row["port"], bytes(row["key"]), row["encoding"], row["size"], bytes(row["value"]))
        except (PySparkException, Py4JError, OSError, ValueError, KeyError) as error:
            raise _unreadable(self.files, described(causes_of(error)).reason) from error

    def _log(self, stage: str, batch: int) -> DataFrame | None:
        for operator in sorted(filter(str.isdigit, self.files.names(f"{self.name}/state")), key=int):
            if variable := variable_of(LOG, stage, self._variables(operator)):
                reader = self.session.read.format("statestore").option("operatorId", operator).option("batchId", batch)
                content = reader.option("stateVarName", variable).load(spark_path(f"{self.files}/{self.name}"))
                return stage_log(variable, content, stage, self.plan)
        return None

    def _variables(self, operator: str) -> list[str]:
        """Return the names of the state variables of one of Spark's operators."""
        log = f"{self.name}/state/{operator}/_metadata/v2"
        newest = max((int(name) for name in self.files.names(log) if name.isdigit()), default=0)
        content = self.files.read(f"{log}/{newest}")
        if content is None:
            return []  # it is being written for the first time
        properties = json.loads(json.loads(content.split(b"\n", 1)[1])["operatorPropertiesJson"])
        return [variable["stateName"] for variable in properties["stateVariables"]]


def _unreadable(place: object, reason: str) -> RunError:
    return RunError.of(
        "R771", path=place, reason=reason, fix="look at the end of Spark's log; `wallaroo logs` shows it"
    )


@dataclass(frozen=True, slots=True)
class RowReader:
    """The function of `mapInArrow` that makes rows of one stage's logs."""

    choice: StateChoice

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the logs of one partition; a bucket's entries follow each other, oldest first."""
        with carried():
            rows = (row for batch in batches for row in batch.to_pylist())
            entries = ((row["key"]["bucket"], row["list_element"][_ENTRY]) for row in rows)
            for _, group in groupby(entries, itemgetter(0)):
                rows_of_bucket = self.choice.rows(entry for _, entry in group)
                yield from map(_record_batch, grouped(rows_of_bucket, row_bytes, BATCH_BYTES))


def _record_batch(rows: list[StateRow]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([row._asdict() for row in rows], schema=_ARROW)
