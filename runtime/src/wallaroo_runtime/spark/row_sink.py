"""Writes staged messages as rows to the sinks that Spark writes by one of its formats, e.g. Parquet or JDBC."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wallaroo.diagnostic.diagnostic import Kind
from wallaroo_runtime.errors import TOPOLOGY, RunError
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import AGAIN, described, translated
from wallaroo_runtime.spark.machine.jar import java_class
from wallaroo_runtime.spark.row import rows_of
from wallaroo_runtime.spark.source.record import analysed
from wallaroo_runtime.storage.outbox.refused_record import CORRECT
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.storage.place import OutputPlace
from wallaroo_runtime.storage.record_count import RecordCount
from wallaroo_runtime.topology.model import SparkSink, place_of
from wallaroo_runtime.topology.secret import resolved


class RowSinks:
    """Writes the staged messages for Spark's sinks by jobs of Spark, before a micro-batch's other output is published.

    A written micro-batch is recorded and not written again. If a driver dies between writing and recording, the next
    driver writes the micro-batch once more, and the sink gets these rows twice.

    Args:
        sinks: The sinks by port, the number that staged files have for a sink.
        output: The place where output is staged.
        records: Records which micro-batch was written.

    Raises:
        RunError: P303 if output is staged on another machine.
    """

    def __init__(
        self,
        session: SparkSession,
        sinks: dict[int, SparkSink],
        output: OutputPlace,
        records: RecordCount,
    ) -> None:
        for sink in sinks.values() if output.service is not None else ():
            what, fix = f'a sink of kind "{sink.kind}" with a remote egress', "let the driver start the egress"
            raise RunError.of("P303", TOPOLOGY, path=sink.path, what=what, fix=fix)
        self._session, self._sinks, self._place, self._records = session, sinks, output, records

    def check(self) -> None:
        """Let Spark analyse the SQL expressions of the sinks before the first message.

        Raises:
            RunError: R716 if Spark does not accept an expression.
        """
        if not self._sinks:
            return  # Spark needs some tenths of a second to look up its first format
        settings = cast(Any, self._session)._jsparkSession.sessionState().conf()
        sources = cast(Any, self._session.sparkContext._jvm).org.apache.spark.sql.execution.datasources.DataSource
        none = self._session.range(0).selectExpr("CAST(NULL AS BINARY) AS key", "CAST(NULL AS BINARY) AS value")
        for sink in self._sinks.values():
            with analysed(f'sink "{sink.name}"'):
                sources.lookupDataSource(sink.format, settings)
            with analysed(f'sink "{sink.name}"', sink.value):
                self._chosen(sink, none)

    def write(self, query: str, batch: int, files: Sequence[StagedFile]) -> list[StagedFile]:
        """Write the staged files for Spark's sinks, with one Spark action per sink. Return the other files.

        Raises:
            RunError: R674 if a sink does not accept its rows.
        """
        if not self._sinks:
            return list(files)
        mine = [file for file in files if file.port in self._sinks]
        if mine and not self._records.is_written(query, batch):
            for port, sink in self._sinks.items():
                chosen = [file for file in mine if file.port == port]
                if chosen:
                    self._write(sink, chosen)
            self._records.write(query, batch)
        self._place.remove(mine)
        return [file for file in files if file.port not in self._sinks]

    def messages_of(self, files: Iterable[StagedFile]) -> int:
        """Count the messages in staged files that are for Spark's sinks."""
        return sum(file.messages for file in files if file.port in self._sinks)

    def _write(self, sink: SparkSink, files: Sequence[StagedFile]) -> None:
        try:
            chosen = self._chosen(sink, self._rows(sink, files))
            chosen.write.format(sink.format).options(**resolved(sink.options)).mode("append").save()
        except (PySparkException, Py4JJavaError) as error:
            failed = translated(causes_of(error))
            if failed.kind is not Kind.QUERY:
                raise failed from error
            _, reason, fix = described(causes_of(error))
            fix, place = f"{fix}; {AGAIN}" if fix else CORRECT, f"{sink.kind} {sink.place}"
            raise RunError.of("R674", sink=sink.name, place=place, reason=reason, fix=fix) from error

    def _chosen(self, sink: SparkSink, rows: DataFrame) -> DataFrame:
        view = "wallaroo_rows_" + sink.path.replace("/", "_")
        frame = rows_of(rows, sink.schema, place_of(sink)) if sink.schema else rows
        frame.createOrReplaceTempView(view)
        return self._session.sql(f"SELECT {sink.value} FROM {view}")

    def _rows(self, sink: SparkSink, files: Sequence[StagedFile]) -> DataFrame:
        """Read staged files as rows of key and value; without keys if the sink declares columns."""
        rows: Any = java_class(self._session, "microbatch.StagedRows")
        paths = [file.path for file in files]
        return DataFrame(rows.of(cast(Any, self._session)._jsparkSession, paths, bool(sink.schema)), self._session)
