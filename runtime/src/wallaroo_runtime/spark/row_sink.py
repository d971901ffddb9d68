"""Sinks that Spark writes itself, Kafka and any other: what is staged for them becomes rows."""

import json
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wallaroo.diagnostic.diagnostic import Diagnostic, Kind, shown
from wallaroo_runtime.errors import TOPOLOGY, RunError
from wallaroo_runtime.kafka.java import java_options
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import AGAIN, described, translated
from wallaroo_runtime.spark.machine.jar import java_class
from wallaroo_runtime.spark.source.kafka import COMPACT, FORMAT, POLICY, KafkaAdmin
from wallaroo_runtime.spark.source.record import analysed
from wallaroo_runtime.storage.outbox.refused import CORRECT, SET_ASIDE, refused_letter, set_aside
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.storage.place import OutputPlace
from wallaroo_runtime.storage.record_count import RecordCount
from wallaroo_runtime.topology.model import KafkaSink, SparkSink
from wallaroo_runtime.topology.secret import resolved
from wallaroo_runtime.worker.step_count import StepCounts, refusal

MOST = "max.message.bytes"  # of the topic
OWN = {"kafka.max.request.size": 1 << 20, "kafka.buffer.memory": 32 << 20}  # of Kafka's client: names and defaults


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
        sinks = [sink for sink in self._sinks.values() if isinstance(sink, SparkSink)]
        if not sinks:
            return  # the first look at a format takes Spark some tenths of a second
        settings = cast(Any, self._session)._jsparkSession.sessionState().conf()
        sources = cast(Any, self._session.sparkContext._jvm).org.apache.spark.sql.execution.datasources.DataSource
        none = self._session.range(0).selectExpr("CAST(NULL AS BINARY) AS key", "CAST(NULL AS BINARY) AS value")
        for sink in sinks:
            with analysed(f'sink "{sink.name}"'):
                sources.lookupDataSource(sink.format, settings)
            with analysed(f'sink "{sink.name}"', sink.value):
                self._chosen(sink, none)

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
        rows.select("key", "value").createOrReplaceTempView(view)
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
        own = java_options(resolved(sink.options), sink.name)
        request = min(int(own.get(name, most_bytes)) for name, most_bytes in OWN.items())
        limits = json.dumps(
            {"partitions": partitions, "size": int(most), "request": request, "needsKey": COMPACT in policy}
        )
        rows = self._rows(files, limits, is_refused=True).collect()
        if not rows:
            return 0
        records = [(*(None if part is None else bytes(part) for part in row[:2]), *row[3:]) for row in rows]
        why = f"topic {sink.topic} does not take it: "
        if not self._sets_aside:
            key, *_, refusal = records[0]
            raise refused(sink, f"key {shown(key)}: {why}{refusal}", SET_ASIDE)
        letters = {
            (batch << 20) + number: refused_letter(sink.path, sink.name, sequence, key, value, f"{why}{refusal}")
            for number, (key, value, sequence, refusal) in enumerate(records)
        }
        self.findings.append(set_aside(Path(self._place.dead_letters), port, letters))
        self._save(sink, self._rows(files, limits))
        return len(letters)

    def _rows(self, files: Sequence[StagedFile], limits: str = "", *, is_refused: bool = False) -> DataFrame:
        """Return the messages of staged files: key, value, partition, and of refused ones sequence and why.

        Args:
            limits: Of the topic that they are for, as `TopicLimits.java` has them; empty: all messages come.
            is_refused: With limits: whether only those come that the topic refuses, or only the others.
        """
        rows: Any = java_class(self._session, "microbatch.StagedRows")
        paths = [file.path for file in files]
        return DataFrame(rows.of(cast(Any, self._session)._jsparkSession, paths, limits, is_refused), self._session)


def refused(sink: KafkaSink | SparkSink, reason: str, fix: str) -> RunError:
    """Return an R674."""
    return RunError.of("R674", sink=sink.name, place=f"{sink.kind} {sink.place}", reason=reason, fix=fix)
