"""Fills the states of a new checkpoint with values from table topics that Goka (a Go library) has written.

A query with the operators of the plan reads the whole topics in its micro-batch 0, and writes the log of each bucket.
The value of a key is that of its last record. The application's query later continues from this checkpoint.
"""

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count, max_by, struct

from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.plan.block import blocks_of
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import translated
from wallaroo_runtime.spark.machine.hadoop import spark_path
from wallaroo_runtime.spark.source.kafka import read_topic
from wallaroo_runtime.spark.state_store.layout import state_store
from wallaroo_runtime.spark.state_store.rescale import load
from wallaroo_runtime.topology.model import KafkaSource

PYTHON = "python"
LANGUAGES = (PYTHON, "go")  # languages with an API for groups


@dataclass(frozen=True, slots=True)
class GokaTable:
    """A table topic that Goka has written, whose values become the first states of a group.

    Attributes:
        source: A source that reads the topic of the table from the start.
        port: Port of the group's state, in the headers of log frames.
        language: Language of the group's worker.
    """

    source: KafkaSource
    port: int
    language: str


class TableCount(NamedTuple):
    """The numbers of keys that a group takes over from its table topic.

    Attributes:
        keys: Number of keys with a value.
        double: Number of keys with values in more than one partition. The newest value counts.
        example: One of the latter keys.
    """

    keys: int = 0
    double: int = 0
    example: bytes = b""

    def plus(self, note: Mapping[str, Any]) -> "TableCount":
        """Return the sum of these counts and the counts in a report of an operator in Java."""
        example = self.example or b64decode(note.get("example", ""))
        return TableCount(self.keys + note.get("keys", 0), self.double + note.get("double", 0), example)


def values_of(records: DataFrame) -> DataFrame:
    """Return the newest value of each key, and whether the key has values in more than one partition.

    Goka has a state for each key and partition. Here a key has one state, the value of its newest record. A key whose
    newest record has no value has no state.

    Args:
        records: Columns partition, offset, timestamp, key and value.
    """
    of_partition = records.groupBy("partition", "key").agg(max_by(struct("timestamp", "value"), "offset").alias("last"))
    order, value = struct("last.timestamp", "partition"), struct("last.value")
    of_key = of_partition.groupBy("key").agg(max_by(value, order).alias("newest"), count("last.value").alias("values"))
    rows = of_key.where(col("newest.value").isNotNull())
    return rows.select("key", "newest.value", (col("values") > 1).alias("is_double"))


def load_tables(
    session: SparkSession, plan: Plan, tables: Sequence[GokaTable], checkpoint: str
) -> dict[int, TableCount]:
    """Run micro-batch 0 of a new checkpoint: it stores the values of Goka's tables as states.

    Args:
        session: The session of the run.
        plan: The plan of the application.
        tables: The tables to read. Without tables the micro-batch writes no state.
        checkpoint: Spark's own checkpoint, which is still empty.

    Returns:
        The counts of each table, by the port (number in log frames) of its state.

    Raises:
        RunError: The query fails. Then the checkpoint cannot be used.
    """
    java, blocks, buckets, targets = state_store(session), blocks_of(plan), plan.bucket_count, plan.targets

    def logs(stage: Stage) -> list[Any]:
        ports = {node.state_port for node in stage.nodes if node.state}
        logs = []
        for table in (table for table in tables if table.port in ports):
            records = read_topic(session, table.source)
            values = values_of(
                records.selectExpr("partition", "offset", "timestamp", "coalesce(key, X'') AS key", "value")
            )
            is_python = table.language == PYTHON
            logs.append(java.table(values._jdf, table.port, is_python, blocks[stage.id], buckets, targets))
        return logs

    try:
        notes = load(session, plan, spark_path(checkpoint), logs, is_realtime=False)
    except PySparkException as error:
        raise translated(causes_of(error), checkpoint) from error
    return counts_of(notes)


def counts_of(notes: Iterable[Mapping[str, Any]]) -> dict[int, TableCount]:
    """Add up the counts that operators in Java report for tables, by the port (number in log frames) of the state."""
    counts: dict[int, TableCount] = {}
    for note in notes:
        counts[note["port"]] = counts.get(note["port"], TableCount()).plus(note)
    return counts
