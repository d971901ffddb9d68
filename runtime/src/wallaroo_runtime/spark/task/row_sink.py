"""Sinks that Spark writes itself, Kafka and any other: what is staged for them becomes rows."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wallaroo.diagnostic.diagnostic import Diagnostic, Kind, shown
from wallaroo.message.frame import Frame, read_frame, split_frames
from wallaroo.message.kafka_record import too_large
from wallaroo_runtime.errors import TOPOLOGY, RunError
from wallaroo_runtime.kafka.java import java_options
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import AGAIN, carried, described, translated
from wallaroo_runtime.spark.source.kafka import COMPACT, FORMAT, POLICY, KafkaAdmin
from wallaroo_runtime.spark.task.row_source import analysed
from wallaroo_runtime.storage.outbox.refused import CORRECT, SET_ASIDE, refused_letter, set_aside
from wallaroo_runtime.storage.outbox.sink_record import records_of
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.storage.place import OutputPlace
from wallaroo_runtime.storage.record_count import RecordCount
from wallaroo_runtime.topology.model import KafkaSink, SparkSink
from wallaroo_runtime.topology.secret import resolved
from wallaroo_runtime.worker.step_count import StepCounts, refusal

ROWS_PER_BATCH = 8192
_ROWS = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("partition", pa.int32()), ("sequence", pa.int64())])
_ROW_SCHEMA = "key BINARY, value BINARY, partition INT, sequence LONG"

MOST_BYTES = 1024 * 1024  # of Kafka's client in Java, unless its max.request.size says another
LIMIT, MOST = "max.request.size", "max.message.bytes"  # of the client, of the topic


@dataclass(frozen=True, slots=True)
class Limits:
    """What a topic takes.

    Attributes:
        partitions: How many it has.
        size: Of a record, in bytes.
        needs_key: Whether it refuses records without a key.
    """

    partitions: int
    size: int
    needs_key: bool

    def refusal(self, key: bytes | None, value: bytes | None, partition: int | None) -> str:
        """Say why a record is refused; empty: it is not."""
        if partition is not None and not 0 <= partition < self.partitions:
            return f"it has no partition {partition}, but 0 to {self.partitions - 1}"
        if size := too_large(self.size, key, value):
            return f"the record has {size} bytes; {self.size} are possible, with key and batch"
        return "it is compacted, and the record has no key" if self.needs_key and key is None else ""


@dataclass(frozen=True, slots=True)
class RowReader:
    """The function of `mapInArrow` that turns staged files into rows.

    Attributes:
        limits: Of the topic that the rows are for; None: nothing is known of it, and all rows come.
        refused: With limits: whether only those come that it refuses, or only the others.
    """

    place: OutputPlace
    limits: Limits | None = None
    refused: bool = False

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the files of one partition."""
        with carried():
            for batch in batches:
                for row in batch.to_pylist():
                    yield from self._read(StagedFile(**row))

    def _read(self, file: StagedFile) -> Iterator[pa.RecordBatch]:
        for data in self.place.read(file):
            for _, at, _ in split_frames(data):
                rows = list(self._rows(read_frame(data, at)))
                for start in range(0, len(rows), ROWS_PER_BATCH):
                    columns = zip(*rows[start : start + ROWS_PER_BATCH], strict=True)
                    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ROWS, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, schema=_ROWS)

    def _rows(self, frame: Frame) -> Iterator[tuple[bytes | None, bytes | None, int | None, int | None]]:
        for number, row in enumerate(records_of(frame)):
            if self.limits is None or bool(self.limits.refusal(*row)) == self.refused:
                yield *row, frame.sequence_of(number) if self.refused else None


class RowSinks:
    """Writes what is staged for Spark's sinks, before the rest of a micro-batch is published.

    A micro-batch that was written is noted and not written again. A driver that dies between writing and the note
    writes it once more: Kafka and files get those rows twice.

    Attributes:
        findings: What was found wrong and ends nothing.

    Args:
        sinks: By port.
        place: Where output is staged.
        records: Notes which micro-batch was written.
        sets_aside: Whether records that a topic never takes become dead letters; else they end the query.

    Raises:
        RunError: P303, what is staged is on another machine.
    """

    def __init__(
        self,
        session: SparkSession,
        sinks: dict[int, KafkaSink | SparkSink],
        place: OutputPlace,
        records: RecordCount,
        *,
        sets_aside: bool = False,
    ) -> None:
        self.findings: deque[Diagnostic] = deque()  # another thread takes from it
        self._sets_aside, self._refused = sets_aside, Counter[str]()
        for sink in sinks.values() if place.service is not None else ():
            what, fix = f'a sink of kind "{sink.kind}" with a remote egress', "let the driver start the egress"
            raise RunError.of("P303", TOPOLOGY, path=sink.path, what=what, fix=fix)
        self._session, self._sinks, self._place, self._records = session, sinks, place, records

    def check(self) -> None:
        """Let Spark analyse what sinks say, before the first message.

        Raises:
            RunError: R716.
        """
        settings = cast(Any, self._session)._jsparkSession.sessionState().conf()
        sources = cast(Any, self._session.sparkContext._jvm).org.apache.spark.sql.execution.datasources.DataSource
        for sink in self._sinks.values():
            if isinstance(sink, SparkSink):
                with analysed(f'sink "{sink.name}"'):
                    sources.lookupDataSource(sink.format, settings)
                with analysed(f'sink "{sink.name}"', sink.value):
                    self._chosen(sink, self._session.createDataFrame([], _ROW_SCHEMA))

    def write(self, query: str, batch: int, files: Sequence[StagedFile]) -> list[StagedFile]:
        """Write the files of Spark's sinks, each sink's by one action; returns the other files.

        Raises:
            RunError: R674, a sink does not take its rows.
        """
        if not self._sinks:
            return list(files)
        mine = [file for file in files if file.port in self._sinks]
        if mine and not self._records.is_written(query, batch):
            refused = Counter[str]()
            for port, sink in self._sinks.items():
                chosen = [file for file in mine if file.port == port]
                if chosen:
                    refused[sink.path] = self._write(sink, chosen, port, batch)
            self._records.write(query, batch, refused.total())
            self._refused.update(refused)
        self._place.remove(mine)
        return [file for file in files if file.port not in self._sinks]

    def messages_of(self, files: Iterable[StagedFile]) -> int:
        """Return how many messages staged files have for Spark's sinks."""
        return sum(file.messages for file in files if file.port in self._sinks)

    def new_steps(self) -> StepCounts:
        """Return what sinks have refused since the last call, by path."""
        found, self._refused = self._refused, Counter()
        return {path: refusal(count) for path, count in found.items()}

    def _write(self, sink: KafkaSink | SparkSink, files: Sequence[StagedFile], port: int, batch: int) -> int:
        """Write the messages of a sink, and return how many it refuses."""
        try:
            self._save(sink, self._rows(files))
        except (PySparkException, Py4JJavaError) as error:
            failed = translated(causes_of(error))
            if failed.kind is not Kind.QUERY:
                raise failed from error
            count = self._set_aside(sink, files, port, batch) if isinstance(sink, KafkaSink) else 0
            if not count:
                _, reason, fix = described(causes_of(error))
                raise refused(sink, reason, f"{fix}; {AGAIN}" if fix else CORRECT) from error
            return count
        return 0

    def _save(self, sink: KafkaSink | SparkSink, rows: DataFrame) -> None:
        if isinstance(sink, KafkaSink):
            own = java_options(resolved(sink.options), f'sink "{sink.name}"')
            options = {**own, "kafka.bootstrap.servers": ",".join(sink.brokers), "topic": sink.topic}
            rows.write.format(FORMAT).options(**options).save()
            return
        self._chosen(sink, rows).write.format(sink.format).options(**resolved(sink.options)).mode("append").save()

    def _chosen(self, sink: SparkSink, rows: DataFrame) -> DataFrame:
        view = "wallaroo_rows_" + sink.path.replace("/", "_")
        rows.drop("partition", "sequence").createOrReplaceTempView(view)
        return self._session.sql(f"SELECT {sink.value} FROM {view}")

    def _set_aside(self, sink: KafkaSink, files: Sequence[StagedFile], port: int, batch: int) -> int:
        """Make dead letters of the records that a topic refuses for what they are, and write the others.

        Returns:
            How many there are.

        Raises:
            RunError: R674, there are, and they shall end the query.
        """
        with KafkaAdmin(self._session, sink) as admin:
            (most, policy), partitions = admin.settings(sink.topic, MOST, POLICY), len(admin.partitions(sink.topic))
        own = int(java_options(resolved(sink.options), sink.name).get(f"kafka.{LIMIT}", MOST_BYTES))
        limits = Limits(partitions, min(own, int(most)), COMPACT in policy)
        rows = [tuple(row) for row in self._rows(files, limits, is_refused=True).collect()]
        if not rows:
            return 0
        records = [(*(None if part is None else bytes(part) for part in row[:2]), *row[2:]) for row in rows]
        why = f"topic {sink.topic} does not take it: {limits.refusal(*records[0][:3])}"
        if not self._sets_aside:
            raise refused(sink, f"key {shown(records[0][0])}: {why}", SET_ASIDE)
        letters = {
            (batch << 20) + number:
            refused_letter(sink.path, sink.name, sequence, key, value,
                           f"topic {sink.topic} does not take it: {limits.refusal(key, value, partition)}")
            for number, (key, value, partition, sequence) in enumerate(records)
        }  # fmt: skip
        self.findings.append(set_aside(Path(self._place.dead_letters), port, letters))
        self._save(sink, self._rows(files, limits))
        return len(letters)

    def _rows(
        self, files: Sequence[StagedFile], limits: Limits | None = None, *, is_refused: bool = False
    ) -> DataFrame:
        names = StagedFile.__slots__
        listed = [tuple(getattr(file, name) for name in names) for file in files]
        schema = "port INT, path STRING, bytes LONG, crc32 LONG, messages LONG, partition INT"
        frame = self._session.createDataFrame(listed, schema).repartition(len(files))
        return frame.mapInArrow(RowReader(self._place, limits, is_refused).run, _ROW_SCHEMA)


def refused(sink: KafkaSink | SparkSink, reason: str, fix: str) -> RunError:
    """Return an R674."""
    return RunError.of("R674", sink=sink.name, place=f"{sink.kind} {sink.place}", reason=reason, fix=fix)
