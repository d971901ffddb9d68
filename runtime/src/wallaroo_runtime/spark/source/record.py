"""Loads the sources that Spark reads itself, without a gateway, e.g. Kafka. `RecordFrames.java` packs their rows."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegralType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from wallaroo.message.spark_format import EVERYTHING
from wallaroo.message.timer import FIRST_MS, LAST_MS
from wallaroo_runtime.plan import NodeKind, Plan
from wallaroo_runtime.spark.failure.cause import causes_of, significant
from wallaroo_runtime.spark.failure.translate import described
from wallaroo_runtime.spark.row import (
    as_object,
    check_times,
    declared_columns,
    micros_of,
    place_in_order,
    refused,
    struct_of,
)
from wallaroo_runtime.spark.source.kafka import FAIL_ON_LOSS, read_kafka
from wallaroo_runtime.topology.model import KafkaSource, SparkSource, Topology, has_records, place_of
from wallaroo_runtime.topology.secret import resolved

_HEADERS = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
IN_TIME = "*"  # value of `order_by`, in place of a column's name, that means the order of event time
_NO_TIME = FIRST_MS - 1  # the time of a row whose event time is null; windows and timers report such rows


@dataclass(frozen=True, slots=True)
class RecordSource:
    """A source that Spark reads itself, without a gateway.

    Attributes:
        port: Number of the source in the plan, which frames contain.
    """

    port: int
    source: KafkaSource | SparkSource

    def settings(self, plan: Plan) -> dict[str, Any]:
        """Return the settings of the source for `RecordSource.java`."""
        source = self.source
        return {
            "port": self.port,
            "stage": next(at for at, stage in enumerate(plan.levels[0]) if self.port in stage.entry_ports),
            "path": source.path,
            "name": source.name,
            "place": source.place,
            "limit": source.max_message_bytes,
            "keys": source.gives_keys,
            "whole": has_records(source),
            "topic": isinstance(source, KafkaSource),
            "table": isinstance(source, KafkaSource) and source.table,
            "rows": isinstance(source, SparkSource) and source.value == EVERYTHING,
        }

    def load(self, session: SparkSession) -> DataFrame:
        """Return the messages as rows with these columns: sequence LONG, key, value BINARY, timestamp_ms LONG, headers.

        If the sequence is null, a task numbers the row. Rows of Kafka also have partition and offset. Records of tables
        have sequence 0, so that they come first. Records of a key stay in order: one task reads their partition.
        """
        if isinstance(self.source, KafkaSource):
            sequence = "CAST(0 AS LONG)" if self.source.table else "offset"
            return read_kafka(session, self.source).selectExpr(
                f"{sequence} AS sequence",
                "key",
                "value",
                "unix_millis(timestamp) AS timestamp_ms",
                "headers",
                "partition",
                "offset",
            )
        source = self.source
        with analysed(f'source "{source.name}"'):
            reader = session.readStream.format(source.format).options(**resolved(source.options))
            if source.schema:
                reader = reader.schema(struct_of(source.schema))
            rows = reader.load()
        return selected(rows, source)


def selected(rows: DataFrame, source: SparkSource, order_by: str = "") -> DataFrame:
    """Convert rows that Spark has read to messages: rows with the columns of `RecordSource.load`.

    Args:
        order_by: Column that gives the order of the messages; `IN_TIME` for event time; empty for arrival order.

    Raises:
        RunError: R716 if the columns or the SQL of the source do not fit the rows.
    """
    with analysed(place_of(source), source.value, source.key, source.timestamp):
        if source.value == EVERYTHING:
            kinds = struct_of(source.schema) if source.schema else rows.schema
            check_times(rows.sparkSession, kinds, place_of(source))
            columns = declared_columns(rows, source.schema, place_of(source)) if source.schema else [F.col("*")]
            value = as_object(columns)
        else:
            value = F.expr(f"({source.value})").cast(BinaryType())
        key = F.expr(f"({source.key})").cast(BinaryType()) if source.key else F.lit(None).cast(BinaryType())
        time_ms, sequence = _times(rows, source)
        if order_by != IN_TIME:
            sequence = place_in_order(rows, order_by, place_of(source)) if order_by else F.lit(None).cast(LongType())
        return rows.select(
            sequence.alias("sequence"),
            key.alias("key"),
            value.alias("value"),
            time_ms.alias("timestamp_ms"),
            F.lit(None).cast(_HEADERS).alias("headers"),
        )


def _times(rows: DataFrame, source: SparkSource) -> tuple[Column, Column]:
    """Return two columns: the times of rows in milliseconds since 1970, and sequences in the order of these times."""
    # Not in SQL, where settings of the session can change the meaning of `current_timestamp` and `TIMESTAMP`.
    if not source.timestamp:
        return F.unix_millis(F.current_timestamp()), F.lit(None).cast(LongType())
    time = F.expr(f"({source.timestamp})")
    kind = rows.select(time).schema.fields[0].dataType
    if isinstance(kind, IntegralType):
        millis = time.cast(LongType())
        micros = millis * 1000
    else:
        text = isinstance(kind, StringType)
        number = F.unix_micros(time.cast(TimestampType())) if text else micros_of(time, kind)
        if number is None:
            reason = f"its event time `{source.timestamp}` is {kind.simpleString()}"
            raise refused(place_of(source), reason, "give a TIMESTAMP, a DATE, or an integer of milliseconds")
        millis, micros = F.unix_millis(F.timestamp_micros(number)), number
    sequence = F.when(millis.between(FIRST_MS, LAST_MS), micros - 1000 * FIRST_MS + 1).otherwise(F.lit(0).cast("long"))
    return F.coalesce(millis, F.lit(_NO_TIME)), sequence


@contextmanager
def analysed(part: str, *expressions: str) -> Iterator[None]:
    """Raise R716 if the block fails because Spark does not accept the settings or the SQL of a source or sink.

    Args:
        part: Names the source or sink.
        expressions: The SQL expressions of the source or sink.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        chain = causes_of(error)
        sql = ", ".join(f"`{expression}`" for expression in expressions if expression)
        what = f"the SQL {sql} of {part}" if sql else part
        causes = significant(chain)
        reason = next((cause.line for cause in causes if cause.condition), causes[-1].line)
        fix = described(chain).fix or "correct it in the program: format, options, schema or SQL"
        raise refused(what, reason, fix) from error


def record_sources(plan: Plan, topology: Topology, *, passes_lost: bool = False) -> list[RecordSource]:
    """Return the sources of a topology that Spark reads, in document order.

    Args:
        passes_lost: Whether sources of Kafka continue if a topic has lost records.
    """
    passing = {FAIL_ON_LOSS: "false"} if passes_lost else {}
    return [
        RecordSource(
            plan.ports[source.path],
            replace(source, options={**source.options, **passing}) if isinstance(source, KafkaSource) else source,
        )
        for source in topology.sources()
        if isinstance(source, KafkaSource | SparkSource)
    ]


def precede_all(plan: Plan, sources: Iterable[RecordSource]) -> bool:
    """Say whether Spark reads all sources, so that the journals have only ticks and visits.

    A visit is a call of user code for every key of a state. Sequences of ticks and visits cannot be compared with those
    of records. So in this case visits precede all messages of a micro-batch, and its last tick follows them.

    Args:
        sources: The sources that Spark reads.
    """
    entries = (node for stage in plan.levels[0] for node in stage.entries if node.kind is NodeKind.SOURCE)
    return {node.port for node in entries} <= {source.port for source in sources}
