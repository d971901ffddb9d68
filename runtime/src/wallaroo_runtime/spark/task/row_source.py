"""Sources that Spark reads itself, Kafka and any other: their rows become frames in the tasks."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wallaroo.message.frame import encode_frame
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.kafka.frame import FRAME_MESSAGES, MESSAGE_BYTES, Pair, columns_of, encode_headers, whole_value
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.spark.failure.cause import causes_of, significant
from wallaroo_runtime.spark.failure.translate import described
from wallaroo_runtime.spark.source.kafka import FAIL_ON_LOSS, read_kafka
from wallaroo_runtime.topology.model import KafkaSource, SparkSource, Topology, has_records
from wallaroo_runtime.topology.secret import resolved

FRAME_BYTES = 512 * 1024
# Never null: for a column of nulls Arrow's ListVector begins at its first row again whenever Spark asks for its size.
NO_HEADERS = "CAST(array() AS ARRAY<STRUCT<key: STRING, value: BINARY>>)"
_COLUMNS = ("sequence", "key", "value", "timestamp_ms", "headers")


@dataclass(frozen=True, slots=True)
class RecordSource:
    """A source that Spark reads; pickles into its tasks.

    Attributes:
        port: Number of the source in the plan; is part of the frames.
    """

    port: int
    source: KafkaSource | SparkSource

    @property
    def is_table(self) -> bool:
        """Whether its messages precede all others of a micro-batch."""
        return isinstance(self.source, KafkaSource) and self.source.table

    def load(self, session: SparkSession) -> DataFrame:
        """Return the rows: sequence LONG (null: numbered here), key, value BINARY, timestamp_ms LONG, headers.

        Of Kafka also partition and offset. Records of tables all have sequence 0, so that they come
        first; those of one key keep their order, because they are of one partition, which one task reads.
        """
        if isinstance(self.source, KafkaSource):
            sequence = "CAST(0 AS LONG)" if self.is_table else "offset"
            return read_kafka(session, self.source).selectExpr(
                f"{sequence} AS sequence",
                "key",
                "value",
                "unix_millis(timestamp) AS timestamp_ms",
                f"coalesce(headers, {NO_HEADERS}) AS headers",
                "partition",
                "offset",
            )
        return self._selected(session, self.source)

    @staticmethod
    def _selected(session: SparkSession, source: SparkSource) -> DataFrame:
        with analysed(f'source "{source.name}"'):
            reader = session.readStream.format(source.format).options(**resolved(source.options))
            if source.schema:
                reader = reader.schema(source.schema)
            rows = reader.load()
        time = f"CAST(({source.timestamp}) AS TIMESTAMP)" if source.timestamp else "NULL"
        key = f"CAST(({source.key}) AS BINARY)" if source.key else "CAST(NULL AS BINARY)"
        with analysed(f'source "{source.name}"', source.value, source.key, source.timestamp):
            return rows.selectExpr(
                "CAST(NULL AS LONG) AS sequence",
                f"{key} AS key",
                f"CAST(({source.value}) AS BINARY) AS value",
                f"unix_millis(coalesce({time}, current_timestamp())) AS timestamp_ms",
                f"{NO_HEADERS} AS headers",
            )

    def frames(self, batches: Iterable[pa.RecordBatch], batch: int) -> Iterator[bytes]:
        """Pack rows into frames, in order.

        Args:
            batches: Rows of one partition, as `load` gives them.
            batch: Number of the micro-batch; numbers messages of sources that do not number them.

        Raises:
            RunError: R606, a message is longer than the topology allows.
        """
        rows: list[tuple[Any, ...]] = []
        size = 0
        following = batch << 32
        for arrow in batches:
            for row in self._rows(arrow):
                numbered = row if row[0] is not None else (following, *row[1:])
                following += 1
                value = len(row[2] or b"")
                self._check_size(value, numbered[0])
                if rows and (size + value > FRAME_BYTES or len(rows) == FRAME_MESSAGES):
                    yield self._frame(rows)
                    rows, size = [], 0
                rows.append(numbered)
                size += value + MESSAGE_BYTES
        if rows:
            yield self._frame(rows)

    def _rows(self, arrow: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
        rows = zip(*(arrow.column(name).to_pylist() for name in _COLUMNS), strict=True)
        if not has_records(self.source):
            return rows
        places = zip(*(arrow.column(name).to_pylist() for name in ("partition", "offset")), strict=True)
        return map(self._whole, rows, places)

    def _whole(self, row: tuple[Any, ...], place: tuple[int, int]) -> tuple[Any, ...]:
        """Return a row whose value is the whole record."""
        sequence, key, value, timestamp_ms, headers = row
        partition, offset = place
        data = whole_value(
            self.source.place,
            partition,
            offset,
            key=key,
            value=value,
            timestamp_ms=timestamp_ms,
            headers=_pairs(headers),
        )
        self._check_size(len(data), f"{offset} of partition {partition}")
        return sequence, key, data, timestamp_ms, None

    def _check_size(self, size: int, record: object) -> None:
        if size > self.source.max_message_bytes:
            limit, place = self.source.max_message_bytes, f"{self.source.place}, record {record}"
            raise RunError.of("R606", source=self.source.name, place=place, limit=limit, reason=f"it has {size} bytes")

    def _frame(self, rows: Sequence[tuple[Any, ...]]) -> bytes:
        sequences, keys, values, times, headers = zip(*rows, strict=True)
        encoded = [encode_headers(_pairs(pairs)) for pairs in headers] if any(headers) else ()
        earliest, columns = columns_of(values, keys if self.source.gives_keys else (), times, encoded)
        first = sequences[0]
        is_dense = sequences[-1] - first == len(rows) - 1
        offsets = () if is_dense else [sequence - first for sequence in sequences]
        return encode_frame(port=self.port, sequence=first, timestamp_ms=earliest, sequences=offsets, **columns)


@contextmanager
def analysed(part: str, *expressions: str) -> Iterator[None]:
    """Raise R716 when Spark does not accept what a source or sink says: its format, options, schema or SQL.

    Args:
        part: Which source or sink.
        expressions: Its SQL.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        chain = causes_of(error)
        sql = ", ".join(f"`{expression}`" for expression in expressions if expression)
        what = f"the SQL {sql} of {part}" if sql else part
        said = significant(chain)
        reason = next((cause.line for cause in said if cause.condition), said[-1].line)
        fix = described(chain).fix or "correct it in the program: format, options, schema or SQL"
        raise RunError.of("R716", USAGE, what=what, reason=reason, fix=fix) from error


def _pairs(headers: Iterable[dict[str, Any]] | None) -> Iterator[Pair]:
    return ((header["key"], header["value"]) for header in headers or ())


def record_sources(plan: Plan, topology: Topology, *, passes_lost: bool = False) -> list[RecordSource]:
    """Return the sources of a topology that Spark reads, in document order.

    Args:
        passes_lost: Whether those of Kafka go on where a topic has lost records.
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
