"""Starts a plan as a query in Spark's real-time mode, and watches the query."""

import base64
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.service.client import Away
from wallaroo_runtime.spark.batch_report import LiveReports
from wallaroo_runtime.spark.failure.cause import Cause, query_causes
from wallaroo_runtime.spark.failure.translate import JavaEnded, is_end_of_java, needing_java, of_operator, translated
from wallaroo_runtime.spark.letter_watch import LetterWatch
from wallaroo_runtime.spark.machine.hadoop import spark_path
from wallaroo_runtime.spark.machine.jar import java_class
from wallaroo_runtime.spark.offset_log import OffsetLog, past_progress
from wallaroo_runtime.spark.operators import put_credentials
from wallaroo_runtime.spark.options import QueryOptions
from wallaroo_runtime.spark.realtime.letters import Letters, open_output
from wallaroo_runtime.spark.realtime.settings import BATCH_S, BATCH_SETTING, Services, operator_settings
from wallaroo_runtime.spark.realtime.visits import VisitReports
from wallaroo_runtime.spark.worker_start import Workers, start_workers
from wallaroo_runtime.storage.place import DriverOutput
from wallaroo_runtime.storage.progress import Progress, read_offset
from wallaroo_runtime.topology.error_policy import ErrorPolicy, stopped_by
from wallaroo_runtime.topology.model import Topology

END_S, LOOK_S, LETTERS_S, NUMBERS_S = 30.0, 0.02, 0.5, 0.5


class RealTimeQuery:
    """A started query in real-time mode, with the methods of `RunningQuery`, the query of micro-batches.

    Attributes:
        targets: gRPC target of each worker by its name.
        letters: Chooses the dead letters that the run reports.
        is_busy: Always False, because in real-time mode Spark reads no sources itself.
        is_held: Always False, because no batch waits for sinks. Instead, the egress delays calls that deliver output.
    """

    def __init__(
        self,
        query: StreamingQuery,
        session: SparkSession,
        *,
        workers: Workers,
        settings: str,
        outbox: DriverOutput,
        before: tuple[int, int],
        letters: Letters,
        watch: LetterWatch,
        options: QueryOptions,
        policy: ErrorPolicy,
    ) -> None:
        self.targets, self.letters = workers.targets, watch
        self._operators = _operators(session)
        self._ask = self._operators.look  # kept, since each look-up of the method would be a call of Java
        self.is_busy = self.is_held = False
        self._query, self._workers, self._settings = query, workers, settings
        self._outbox, self._policy = outbox, policy
        self._visits = VisitReports(options.tell_visits)
        self._offset_log = OffsetLog(session, options.checkpoint)
        count, self._before = before
        past = past_progress(session, options.checkpoint)
        past = replace(past, counts=dict(self._visits.counts), records=options.records)
        self._progress = replace(past, dead_letters=count, dead_letters_before=count)
        self._letters, self._letters_at = letters, 0.0
        self._log, self._checkpoint = options.logs / "spark.log", options.checkpoint
        self._is_stopped, self._batch, self._end = False, -1, -1
        self._findings: list[Diagnostic] = []
        self._status, self._status_at = _Status(), 0.0
        self._tell_live, self._reports, self._told, self._told_at = options.tell_live, LiveReports(), 0, 0.0

    def exception(self) -> RunError | None:
        """Return the error that ended the query; None if there is no such error."""
        with needing_java(self._log):
            if self._last_status().is_active or self._query.isActive:
                return None
            chain = query_causes(self._query)
        if chain:
            return query_error(chain, self._checkpoint, self._log, self._policy)
        return None if self._is_stopped else JavaEnded.because("it was asked to end", self._log)

    def progress(self) -> Progress:
        """Return the progress of the query. A message counts as processed when all its output is in the outbox."""
        if self._is_stopped:
            return self._progress
        with needing_java(self._log):
            status = self._last_status()
            report = self._query.lastProgress if status.batch > self._batch else None
            self._tell_counts(status)
        if time.monotonic() - self._letters_at > LETTERS_S:
            self._find_letters()
        self._progress = replace(self._progress, messages_in=max(status.messages, self._progress.messages_in))
        self._record(report)
        self._release()
        return self._progress

    def _tell_counts(self, status: "_Status") -> bool:
        """Report counts if they have changed: those of the operators to the monitor, those of visits to the gateway.

        A visit is a call of user code for every key of a state.

        Returns:
            Whether the gateway has the counts of all visits whose output is completely in the outbox.
        """
        now = time.monotonic()
        is_wanted = self._tell_live is not None and status.changes > self._told and now >= self._told_at + NUMBERS_S
        if is_wanted or status.visit > self._visits.last:
            self._told, self._told_at = status.changes, now
            report = json.loads(self._operators.numbers(self._settings))
            self._visits.take(report)
            self._progress = replace(self._progress, counts=dict(self._visits.counts))
            if self._tell_live is not None:
                self._tell_live(self._reports.read(report))
        return self._visits.tell()

    def _find_letters(self) -> None:
        self._letters.look()
        self._letters_at = time.monotonic()
        count = self._progress.dead_letters_before + self._letters.count
        self._progress = replace(self._progress, dead_letters=count)

    def _count_output(self) -> None:
        try:
            emitted = self._outbox.published() - self._before
        except Away:  # the run reports that the egress is away
            return
        self._progress = replace(self._progress, messages_out=emitted)

    def _last_status(self) -> "_Status":
        """Return a status that is at most `LOOK_S` old, because several callers need it and a call costs CPU time."""
        now = time.monotonic()
        if now >= self._status_at + LOOK_S:
            self._status, self._status_at = self._ask_status(), now
        return self._status

    def _ask_status(self) -> "_Status":
        is_active, is_reading, *numbers = map(int, self._ask(self._query._jsq, self._settings).split())
        return _Status(bool(is_active), bool(is_reading), *numbers)

    def wait_until_reading(self) -> None:
        """Wait until the query has started to read arriving messages. Return early if the query has ended."""
        with needing_java(self._log):
            while (status := self._ask_status()).is_active and not status.is_reading:
                time.sleep(LOOK_S)

    def _record(self, report: Mapping[str, Any] | None) -> None:
        """Record a committed batch in the outbox. The next start compares this record with Spark's checkpoint."""
        batch, offset = report["batchId"] if report is not None else -1, _offset_of(report)
        if batch <= self._batch or offset < 0:
            return
        try:
            self._outbox.publish(self._offset_log.query, batch, (), self._offset_log.offsets(batch))
        except Away:  # the next look tries again; the run ends if the egress is away too long
            return
        self._batch, self._end = batch, offset
        self._progress = replace(self._progress, batches=self._progress.batches + 1)

    def _release(self) -> None:
        """Let the gateway delete the committed input, but not before it has the counts of the visits in this input.

        Without this order a crash would lose the counts, because committed input is not processed again.
        """
        if self._end < 0 or self._progress.offsets == (self._end,):
            return
        with needing_java(self._log):
            is_known = self._tell_counts(self._ask_status())
        if is_known:
            self._progress = replace(self._progress, offsets=(self._end,))

    def await_commit(self) -> None:
        """End the running batch as soon as it has input, because a gateway waits for its commit."""
        if not self._is_stopped:
            with needing_java(self._log):
                self._operators.awaitBatch(self._settings)

    def new_findings(self) -> list[Diagnostic]:
        """Return the warnings since the last call. Most problems are not warnings, since they end the query."""
        findings, self._findings = self._findings, []
        return findings

    def latest(self) -> Mapping[str, Any]:
        """Return Spark's own report of the latest batch; empty if there is none."""
        if self._is_stopped:
            return {}
        with needing_java(self._log):
            report: Any = self._query.lastProgress
        return {} if report is None else json.loads(report.json)

    def stop(self) -> None:
        """End the running batch, so that the next run need not repeat it. Then stop the query and its workers."""
        if self._is_stopped:
            return
        try:
            if self._query.isActive:
                self._end_batch()
            self._query.stop()
            self._status_at = self._told_at = 0.0
            self.progress()
            self._find_letters()
            self._count_output()
        except (Py4JError, ConnectionError, JavaEnded) as error:
            if not isinstance(error, JavaEnded) and not is_end_of_java(error):
                raise
        finally:
            self._is_stopped = True
            self._workers.stop()

    def _end_batch(self) -> None:
        """Let the engine end its batch, and wait until all its results are committed.

        The next report of a batch does not prove this: it may be about an earlier batch, which was being committed
        while the engine already processed messages of the next batch.
        """
        self._operators.endBatches(self._settings)
        deadline = time.monotonic() + END_S
        while time.monotonic() < deadline and self._query.isActive:
            end = self._operators.end(self._settings)
            if 0 <= end <= _offset_of(self._query.lastProgress):
                return
            time.sleep(LOOK_S)
        if self._query.isActive:
            self._findings.append(Diagnostic.of("R799", seconds=END_S))


def query_error(chain: Sequence[Cause], checkpoint: str, log: Path, policy: ErrorPolicy) -> RunError:
    """Return the error for the user from the causes of a failed query. A dead letter may have ended the query.

    Args:
        chain: The result of `query_causes`.
        checkpoint: Spark's own checkpoint.
        log: Path of Spark's log.
        policy: Says which dead letters stop the query.
    """
    value = of_operator(chain) or {}
    if "letter" in value:
        return stopped_by(pb.DeadLetter.FromString(base64.b64decode(value["letter"])), policy)
    return translated(chain, checkpoint, log)


@dataclass(frozen=True, slots=True)
class _Status:
    """The status of a query. The driver asks the operators in Java for it ten times a second (`RealTime.look`).

    Attributes:
        is_reading: Whether the engine has begun to read the journal.
        messages: Number of messages whose output is all in the outbox; -1 before the first message.
        batch: Number of the last batch that Spark has reported; -1 before the first one.
        changes: Number that grows with each change of the counts of `RealTime.numbers`.
        visit: Id of the last visit in these counts; 0 before the first visit.
    """

    is_active: bool = False
    is_reading: bool = False
    messages: int = -1
    batch: int = -1
    changes: int = 0
    visit: int = 0


def _offset_of(report: Mapping[str, Any] | None) -> int:
    """Return the journal's offset at the end of a reported batch; -1 if the report has no such offset."""
    offset = report["sources"][0]["endOffset"] if report is not None else None
    return int(read_offset(offset)["offset"]) if offset else -1


def _operators(session: SparkSession) -> Any:
    return java_class(session, "realtime.RealTime")


def start_realtime(
    session: SparkSession,
    plan: Plan,
    topology: Topology,
    options: QueryOptions,
    services: Callable[[Mapping[str, str]], Services],
) -> RealTimeQuery:
    """Start the workers of a plan, then its query in real-time mode.

    Args:
        session: The result of `create_session` with the settings of `session_settings`.
        plan: A plan without obstacles to real-time mode.
        topology: Has the commands of the workers.
        options: Options of the query.
        services: Returns the addresses of gateway and egress. Gets the gRPC target of each worker by name.

    Raises:
        RunError: A worker does not start, or does not fit the application.
    """
    workers = start_workers(session, plan, topology, options, is_realtime=True)
    try:
        called = services(workers.targets)
        return _start_query(session, plan, options, topology, workers, called)
    except BaseException:
        workers.stop()
        raise


def _start_query(
    session: SparkSession,
    plan: Plan,
    options: QueryOptions,
    topology: Topology,
    workers: Workers,
    services: Services,
) -> RealTimeQuery:
    policy = ErrorPolicy.of(topology, options.on_error)
    topics = [*topology.kafka_sources()]
    settings = operator_settings(plan, workers.running, services, policy, topics)
    put_credentials(session, services.remote)
    session.conf.set("spark.sql.shuffle.partitions", plan.shuffle_partitions)
    operators = _operators(session)
    frame = DataFrame(operators.lower(session._jsparkSession, settings), session)
    watch = LetterWatch()
    outbox, letters = open_output(options.output, watch.add)
    before = outbox.letters(), outbox.published()
    writer: Any = frame.writeStream.format(operators.sinkFormat()).option("settings", settings)
    writer = writer.option("checkpointLocation", spark_path(options.checkpoint)).outputMode("update")
    seconds = session.conf.get(BATCH_SETTING, str(BATCH_S))
    query = writer.trigger(realTime=f"{seconds} seconds").start()  # PySpark's types lack this argument
    started = RealTimeQuery(
        query,
        session,
        workers=workers,
        settings=settings,
        outbox=outbox,
        before=before,
        letters=letters,
        watch=watch,
        options=options,
        policy=policy,
    )
    started.wait_until_reading()
    return started
