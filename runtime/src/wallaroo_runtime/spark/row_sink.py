"""Sinks that Spark writes itself, Kafka and any other: what is staged for them becomes rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wallaroo.frame import split_frames
from wallaroo_runtime.errors import TOPOLOGY, RunError
from wallaroo_runtime.kafka.java import java_options
from wallaroo_runtime.lowering.sink_record import rows_of
from wallaroo_runtime.spark.failure import carried, translated
from wallaroo_runtime.spark.kafka import FORMAT
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.storage.outbox.written import read_written, write_written
from wallaroo_runtime.storage.place import OutputPlace
from wallaroo_runtime.topology.model import KafkaSink, SparkSink

ROWS_PER_BATCH = 8192
_ROWS = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("partition", pa.int32())])
_ROW_SCHEMA = "key BINARY, value BINARY, partition INT"


@dataclass(frozen=True, slots=True)
class RowReader:
    """The function of `mapInArrow` that turns staged files into rows."""

    place: OutputPlace

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the files of one partition."""
        with carried():
            for batch in batches:
                for row in batch.to_pylist():
                    yield from self._read(StagedFile(**row))

    def _read(self, file: StagedFile) -> Iterator[pa.RecordBatch]:
        for data in self.place.read(file):
            for _, at, _ in split_frames(data):
                rows = list(rows_of(data, at))
                for start in range(0, len(rows), ROWS_PER_BATCH):
                    columns = zip(*rows[start : start + ROWS_PER_BATCH], strict=True)
                    arrays = [pa.array(column, field.type) for column, field in zip(columns, _ROWS, strict=True)]
                    yield pa.RecordBatch.from_arrays(arrays, schema=_ROWS)


class RowSinks:
    """Writes what is staged for Spark's sinks, before the rest of a micro-batch is published.

    A micro-batch that was written is noted in a file and not written again. A driver that dies between writing and
    the note writes it once more: Kafka and files get those rows twice.

    Args:
        sinks: By port.
        place: Where output is staged.
        note: The file.

    Raises:
        RunError: P304, what is staged is on another machine.
    """

    def __init__(
        self, session: SparkSession, sinks: dict[int, KafkaSink | SparkSink], place: OutputPlace, note: Path
    ) -> None:
        for sink in sinks.values() if place.service is not None else ():
            what, fix = f'a sink of kind "{sink.kind}" with a remote egress', "let the driver start the egress"
            raise RunError.of("P304", TOPOLOGY, path=sink.path, what=what, fix=fix)
        self._session, self._sinks, self._place, self._note = session, sinks, place, note

    def write(self, query: str, batch: int, files: Sequence[StagedFile]) -> list[StagedFile]:
        """Write the files of Spark's sinks, each sink's by one action; returns the other files.

        Raises:
            RunError: R674, a sink does not take its rows.
        """
        if not self._sinks:
            return list(files)
        mine = [file for file in files if file.port in self._sinks]
        if mine and not self._is_written(query, batch):
            for port, sink in self._sinks.items():
                chosen = [file for file in mine if file.port == port]
                if chosen:
                    self._write(sink, chosen)
            write_written(self._note, query, batch)
        self._place.remove(mine)
        return [file for file in files if file.port not in self._sinks]

    def messages_of(self, files: Iterable[StagedFile]) -> int:
        """Return how many messages staged files have for Spark's sinks."""
        return sum(file.messages for file in files if file.port in self._sinks)

    def _is_written(self, query: str, batch: int) -> bool:
        found = read_written(self._note)
        return found.query == query and found.batch >= batch

    def _write(self, sink: KafkaSink | SparkSink, files: Sequence[StagedFile]) -> None:
        try:
            rows = self._rows(files)
            if isinstance(sink, KafkaSink):
                own = java_options(sink.options, f'sink "{sink.name}"')
                options = {**own, "kafka.bootstrap.servers": ",".join(sink.brokers), "topic": sink.topic}
                rows.write.format(FORMAT).options(**options).save()
                return
            view = "wallaroo_rows_" + sink.path.replace("/", "_")
            rows.drop("partition").createOrReplaceTempView(view)
            chosen = self._session.sql(f"SELECT {sink.value} FROM {view}")
            chosen.write.format(sink.format).options(**sink.options).mode("append").save()
        except PySparkException as error:
            reason = translated(str(error)).diagnostics[0].message
            raise RunError.of("R674", sink=sink.name, place=f"{sink.kind} {sink.place}", reason=reason) from error

    def _rows(self, files: Sequence[StagedFile]) -> DataFrame:
        names = StagedFile.__slots__
        listed = [tuple(getattr(file, name) for name in names) for file in files]
        schema = "port INT, path STRING, bytes LONG, crc32 LONG, messages LONG, partition INT"
        frame = self._session.createDataFrame(listed, schema).repartition(len(files))
        return frame.mapInArrow(RowReader(self._place).run, _ROW_SCHEMA)
