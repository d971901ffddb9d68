"""Starts a plan as a streaming query of micro-batches, and watches the query."""

import json
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.diagnostic.fault import reach
from wallaroo.worker.host import trace
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import NodeKind, Plan
from wallaroo_runtime.spark.account import Balance
from wallaroo_runtime.spark.executor_watch import ExecutorWatch, last_memory_error
from wallaroo_runtime.spark.failure.cause import causes_of, query_causes
from wallaroo_runtime.spark.failure.translate import JavaEnded, is_end_of_java, is_loss, needing_java, translated
from wallaroo_runtime.spark.machine.hadoop import spark_path
from wallaroo_runtime.spark.machine.jar import java_class
from wallaroo_runtime.spark.machine.settings import POLLING
from wallaroo_runtime.spark.micro_batches import MicroBatches
from wallaroo_runtime.spark.offset_log import OffsetLog, past_progress
from wallaroo_runtime.spark.operators import microbatch_settings, put_credentials
from wallaroo_runtime.spark.options import QueryOptions
from wallaroo_runtime.spark.outbox_gate import OutboxGate
from wallaroo_runtime.spark.publish import Publisher
from wallaroo_runtime.spark.row_sink import RowSinks
from wallaroo_runtime.spark.source.file_name import check_batch, check_names, file_sources, forget_renamed
from wallaroo_runtime.spark.source.kafka import records_lost
from wallaroo_runtime.spark.source.record import record_sources
from wallaroo_runtime.spark.worker_start import Workers, start_workers
from wallaroo_runtime.storage.progress import Progress, read_offset, unread_records
from wallaroo_runtime.topology.error_policy import ErrorPolicy
from wallaroo_runtime.topology.model import KafkaSource, SparkSource, Topology

WAIT_S, BETWEEN_WAITS = 0.1, "2ms"
# Without this, Spark runs only one micro-batch (the planned one, if any) if one of the sources lacks the trigger.
AVAILABLE_NOW_FOR_ALL = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


class RunningQuery:
    """A started query of micro-batches. The run asks it for progress, errors and warnings, and stops it at the end.

    Attributes:
        targets: gRPC target of each worker by its name. The gateway calls workers that cut the messages of a source.
        letters: Chooses the dead letters that the run reports.
    """

    def __init__(
        self,
        query: StreamingQuery,
        session: SparkSession,
        *,
        workers: Workers,
        batches: MicroBatches,
        publisher: Publisher,
        gate: OutboxGate,
        offset_log: OffsetLog,
        options: QueryOptions,
        topology: Topology,
    ) -> None:
        self.targets, self.letters = workers.targets, publisher.watch
        self._query, self._session, self._workers, self._publisher = query, session, workers, publisher
        self._batches, self._gate, self._executor = batches, gate, ExecutorWatch(session)
        self._progress, self._records = past_progress(session, options.checkpoint), options.records
        self._log, self._checkpoint = options.logs / "spark.log", options.checkpoint
        self._journals, self._available_now = options.journals, options.available_now
        self._record_sources = sum(isinstance(each, KafkaSource | SparkSource) for each in topology.sources())
        self._topology, self._offset_log = topology, offset_log
        self._lock, self._is_stopped = threading.Lock(), False

    @property
    def is_busy(self) -> bool:
        """Whether the query has input of Spark's own sources to process, so that the run is not idle.

        It is busy while a micro-batch runs, and until the first one. With `available_now` it is busy until it ends.
        """
        with needing_java(self._log):
            if self._available_now:
                return bool(self._query.isActive)
            status, begun = self._query.status, self._query.lastProgress is not None
        is_running = bool(status["isDataAvailable"] and status["isTriggerActive"])
        return self._record_sources > 0 and (is_running or not begun)

    def exception(self) -> RunError | None:
        """Return the error that ended the query, without stack traces of the JVM; None if there is no such error."""
        if self._gate.failure is not None:
            return self._gate.failure
        with needing_java(self._log):
            if not self._is_stopped and self._executor.is_gone():
                if reason := last_memory_error(self._log):
                    return translated(causes_of(reason), self._checkpoint, self._log)
                return RunError.of("R617", process="executor of Spark", reason="it takes no more tasks", log=self._log)
            if self._query.isActive:
                return None
            chain = query_causes(self._query)
            if chain and self._gate.error is not None:  # the original exception says more than Spark's copy of its text
                chain = causes_of(self._gate.error)
        if chain:
            lost = records_lost(self._session, self._topology, self._checkpoint) if is_loss(chain) else ()
            findings = [finding for _, finding in lost]
            return RunError(findings) if findings else translated(chain, self._checkpoint, self._log)
        if self._is_stopped or (self._available_now and not self._is_java_ending()):
            return None
        return JavaEnded.because("it was asked to end", self._log)

    def _is_java_ending(self) -> bool:
        with needing_java(self._log):
            context: Any = self._session.sparkContext._jsc
            return bool(context.sc().isStopped())

    def await_commit(self) -> None:
        """Do nothing, since a micro-batch never waits for more input. In real-time mode this ends a batch early."""

    def progress(self) -> Progress:
        """Return the offsets, batches and counts that the query has reached."""
        report = self._report()
        unread = self._unread(report)
        counted = replace(
            self._progress,
            batches=self._publisher.batches,
            messages_out=self._publisher.messages,
            dead_letters=self._publisher.letters_before + self._publisher.letters,
            dead_letters_before=self._publisher.letters_before,
            bytes_by_file=self._publisher.bytes_by_file,
            bytes_by_grpc=self._publisher.bytes_by_grpc,
            records=replace(self._records),
            endings=self._publisher.endings,
            counts=dict(self._publisher.counts),
            unread=0 if unread is None and self._has_read_all() else unread,
        )
        ends = [source["endOffset"] for source in report["sources"]] if report is not None else []
        positions = [read_offset(end) for end in ends[: len(self._journals)] if end]
        if positions and len(positions) == len(self._journals):
            counted = counted.reached(positions)
        if counted.offsets != self._progress.offsets:
            reach("driver.after_commit")  # Spark reports a micro-batch when it has committed it
        with self._lock:
            self._progress = counted
        return counted

    def _unread(self, report: Mapping[str, Any] | None) -> int | None:
        """Return the number of unprocessed records of topics, including those of the running micro-batch.

        Before Spark has reported the second micro-batch of the run, only the records of the running micro-batch count.
        A 0 would be wrong then, since Spark does not look for the end of a topic if it repeats a micro-batch. The
        result is None in its place.
        """
        if not self._record_sources or self._is_stopped:
            return self._progress.unread
        if self._gate.batch < 0:
            return None
        planned = self._offset_log.topics(self._gate.batch)
        if report is not None:
            number = unread_records(report["sources"][len(self._journals) :], planned)
            return None if not number and report["batchId"] <= self._gate.first else number
        first_number = len(self._journals)
        numbers = range(first_number, first_number + self._record_sources)
        first = self._progress.topics or self._offset_log.first_topics(numbers)
        known = {topic: planned[topic] for topic in first if topic in planned}
        return unread_records([{"endOffset": first, "latestOffset": known}]) or None

    def _has_read_all(self) -> bool:
        """Say whether Spark has looked for records since the last micro-batch, and has found none."""
        with needing_java(self._log):
            return not (self._is_stopped or self._query.lastProgress is None or self._query.status["isDataAvailable"])

    def _report(self) -> Mapping[str, Any] | None:
        """Return Spark's report of the latest micro-batch; None if there is none, or if Java has ended after a stop."""
        try:
            with needing_java(self._log):
                return self._query.lastProgress
        except JavaEnded:
            if not self._is_stopped:
                raise
            return None

    def new_findings(self) -> list[Diagnostic]:
        """Return the warnings since the last call. None of them ends the query."""
        return self._gate.new_findings()

    @property
    def is_held(self) -> bool:
        """Whether a micro-batch waits because the outbox is full. It goes on when sinks have taken enough output."""
        return self._gate.is_waiting

    def latest(self) -> Mapping[str, Any]:
        """Return Spark's own report of the latest micro-batch; empty if there is none."""
        report: Any = self._report()
        return {} if report is None else json.loads(report.json)

    def stop(self) -> None:
        """Stop the query and its workers. The next run processes uncommitted input again.

        If a signal has also reached Java, the query and its workers have already ended.
        """
        if self._is_stopped:
            return
        self._is_stopped = True
        self._gate.end()
        try:
            try:
                self._query.stop()
            finally:
                self._batches.end()
                trace.flush()
            self._workers.stop()
        except (Py4JError, ConnectionError) as error:
            if not is_end_of_java(error):
                raise


def start_query(session: SparkSession, plan: Plan, topology: Topology, options: QueryOptions) -> RunningQuery:
    """Start the workers of a plan, then its query of micro-batches.

    Args:
        session: The result of `create_session`.
        topology: Has the commands of the workers.

    Raises:
        RunError: A worker does not start, or does not fit the application.
    """
    workers = start_workers(session, plan, topology, options)
    try:
        return _start(session, plan, topology, options, workers)
    except BaseException:
        workers.stop()
        raise


def _start(
    session: SparkSession, plan: Plan, topology: Topology, options: QueryOptions, workers: Workers
) -> RunningQuery:
    outbox = options.output.open(
        {node.port for stage in plan.stages for node in stage.nodes if node.kind is NodeKind.SINK}
    )
    sinks = {plan.ports[sink.path]: sink for sink in topology.spark_sinks()}
    rows = RowSinks(session, sinks, options.output, options.records)
    rows.check()
    policy, offset_log = ErrorPolicy.of(topology, options.on_error), OffsetLog(session, options.checkpoint)
    publisher = Publisher(
        outbox, policy, rows=rows, offset_log=offset_log, balance=Balance(plan), tell_visits=options.tell_visits,
        tell_batch=options.tell_batch, application=topology.name,
        workers={stage.id: stage.worker for stage in plan.stages}, records=options.records,
    )  # fmt: skip
    publisher.letters_before = outbox.letters()
    has_files = bool(file_sources(topology))
    unmatched = [*check_names(session, topology)] if has_files else []
    if has_files:
        forget_renamed(session, options.checkpoint)

    def begin() -> None:
        if has_files:
            check_batch(session)
        publisher.begin()

    gate = OutboxGate(publisher, outbox, options.max_outbox_bytes, begin, unmatched)
    # The plan has the checkpoint's number of partitions. Spark would keep that number anyway, without a message.
    session.conf.set("spark.sql.shuffle.partitions", plan.shuffle_partitions)
    records = record_sources(plan, topology, passes_lost=options.passes_lost)
    # While one source waits for messages, Spark does not look at the other sources.
    wait_s = WAIT_S if len(options.journals) == 1 and options.journals[0].service is None and not records else 0
    session.conf.set(POLLING, BETWEEN_WAITS if wait_s else str(session.sparkContext.getConf().get(POLLING)))
    batches = MicroBatches(session, gate.publish, gate.begin)
    # On a cluster not all executors may have started yet.
    parts = max(session.sparkContext.defaultParallelism, plan.shuffle_partitions)
    settings = microbatch_settings(plan, workers.running, options, parts, wait_s, records)
    put_credentials(session, [*(journal.service for journal in options.journals), options.output.service])
    operators: Any = java_class(session, "microbatch.MicroBatch")
    loaded = [source.load(session)._jdf for source in records]
    frame = DataFrame(operators.lower(session._jsparkSession, settings, loaded), session)
    writer = frame.writeStream.option("checkpointLocation", spark_path(options.checkpoint)).outputMode("append")
    if options.available_now:
        session.conf.set(AVAILABLE_NOW_FOR_ALL, "true")
        writer = writer.trigger(availableNow=True)
    query = batches.start(writer)
    return RunningQuery(
        query, session, workers=workers, batches=batches, publisher=publisher, gate=gate,
        offset_log=offset_log, options=options, topology=topology,
    )  # fmt: skip
