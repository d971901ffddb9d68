"""Publishes the staged output of each micro-batch exactly once, in the driver."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from wallaroo.diagnostic.fault import reach
from wallaroo.message.frame import DEAD_LETTER_PORT
from wallaroo.worker.host import trace
from wallaroo_runtime.spark.account import Account, Accounts, Balance, last_attempts, visits_of
from wallaroo_runtime.spark.batch_report import BatchReport, LiveReport
from wallaroo_runtime.spark.letter_watch import LetterWatch
from wallaroo_runtime.spark.micro_batches import Rows
from wallaroo_runtime.spark.offset_log import OffsetLog
from wallaroo_runtime.spark.row_sink import RowSinks
from wallaroo_runtime.storage.outbox.letter_tail import letters_of
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.storage.place import DriverOutput
from wallaroo_runtime.storage.record_count import RecordCount
from wallaroo_runtime.topology.error_policy import ErrorPolicy, stop_at_dead_letter
from wallaroo_runtime.worker.step_count import VisitCounts, count_run

TellBatch = Callable[[BatchReport], None]
TellLive = Callable[[LiveReport], None]
TellVisits = Callable[[VisitCounts, int], None]


def read_rows(rows: Rows) -> tuple[list[StagedFile], Accounts]:
    """Return the staged files and the accounts (counts of messages) that the tasks of a micro-batch have reported.

    Args:
        rows: Descriptors of staged files and accounts, as JSON.

    Returns:
        The files in the order of partition and port, and the accounts by number of the attempt.
    """
    files: list[StagedFile] = []
    accounts: Accounts = {}
    for text in rows:
        value = json.loads(text)
        if "path" in value:
            files.append(StagedFile(**value))
        else:
            accounts[value["task"]] = Account.from_json(value)
    return sorted(files, key=lambda file: (file.partition, file.port)), accounts


class Publisher:
    """Checks the counts of each micro-batch, then publishes its staged files in the outbox.

    Attributes:
        batches: Number of micro-batches that this run has published.
        messages: Number of messages for sinks that this run has published.
        letters: Number of dead letters that this run has published.
        letters_before: Number of dead letters published by earlier runs.
        watch: Chooses the dead letters that the run reports.
        endings: Descriptions of worker processes that ended by themselves, by executor and number.
        counts: Further counts of this run, by name.
        bytes_by_file: Bytes of journals that tasks have read from files.
        bytes_by_grpc: Bytes of journals that gateways have sent to tasks.

    Args:
        policy: Says which dead letters stop the query.
        rows: Writes the sinks that Spark writes.
        offset_log: Has the offsets of each micro-batch, which the outbox keeps a copy of.
        balance: Compares the accounts of tasks.
        records: Counts the messages of sources that Spark reads, and of sinks that Spark writes.
        tell_visits: Called with the counts of visits before their micro-batch is committed, and with 0.
        tell_batch: Called with the report of each micro-batch, in the thread that publishes.
        application: Name of the application, for traces.
        workers: Name of the worker of each stage, for traces.
    """

    def __init__(
        self,
        outbox: DriverOutput,
        policy: ErrorPolicy,
        *,
        rows: RowSinks,
        offset_log: OffsetLog,
        balance: Balance,
        records: RecordCount,
        tell_visits: TellVisits,
        tell_batch: TellBatch | None,
        application: str,
        workers: Mapping[str, str],
    ) -> None:
        self._outbox, self._policy, self._rows = outbox, policy, rows
        self._offset_log, self._balance = offset_log, balance
        self.endings: dict[str, str] = {}
        self.watch = LetterWatch()
        self._tell_visits, self._tell_batch = tell_visits, tell_batch
        self.batches = self.messages = self.letters = self.letters_before = 0
        self.counts = Counter[str]()
        self._application, self._workers, self._records = application, workers, records
        self.bytes_by_file = self.bytes_by_grpc = self._begun = 0

    def begin(self) -> None:
        """Record that the tasks of the next micro-batch begin now."""
        self._begun = time.time_ns()

    def __call__(self, rows: Rows, batch: int) -> None:
        """Publish one micro-batch. Spark may call this again for a micro-batch that is published already."""
        before = self.messages, self.letters
        try:
            self._run(rows, batch)
        except BaseException as error:
            self._trace(batch, before, str(error) or type(error).__name__)
            raise
        self._trace(batch, before)
        reach("driver.before_commit")  # Spark commits when this has returned

    def _trace(self, batch: int, before: tuple[int, int], error: str = "") -> None:
        if not trace.is_wanted():
            return
        counts = {"messages_out": self.messages - before[0], "dead_letters": self.letters - before[1]}
        trace.batch_span(
            self._application, self._offset_log.query, batch, self._begun, counts, error.partition("\n")[0]
        )

    def _run(self, rows: Rows, batch: int) -> None:
        files, accounts = read_rows(rows)
        self._balance.check(batch, accounts, files, self._offset_log.messages(batch))
        self._publish(self._offset_log.query, batch, files, self._offset_log.offsets(batch))
        self._visit(batch, accounts)
        self._count(batch, files, accounts)
        self._add(batch, accounts)
        self._report(batch, files, accounts)
        self.batches += 1

    def _report(self, batch: int, files: Iterable[StagedFile], accounts: Accounts) -> None:
        if self._tell_batch is None:
            return
        report = BatchReport(batch, self._begun // 1_000_000, time.time_ns() // 1_000_000)
        for account in last_attempts(batch, accounts):
            report.add(account.steps, account.arrived, account.stores)
        for file in files:
            report.emitted[file.port] += file.messages
        self._tell_batch(report)

    def _add(self, batch: int, accounts: Accounts) -> None:
        for account in accounts.values():
            self.endings.update(account.endings)
            self.bytes_by_file += account.bytes_by_file
            self.bytes_by_grpc += account.bytes_by_grpc
        if not trace.is_wanted():
            return
        for account in accounts.values():
            for stage, begun in account.begun.items():
                trace.task_span(
                    self._application, self._offset_log.query, batch, begun * 1_000_000, account.ended * 1_000_000,
                    stage=stage, worker=self._workers.get(stage, ""), partition=account.partition, attempt=account.task,
                )  # fmt: skip

    def _visit(self, batch: int, accounts: Accounts) -> None:
        """Report to the gateway the counts of the visits in a micro-batch."""
        visits = visits_of(batch, accounts)
        if visits:
            self._tell_visits(visits, 0)
            self.counts.update(count_run(visits))

    def _count(self, batch: int, files: Iterable[StagedFile], accounts: Accounts) -> None:
        """Count the messages of Spark's sources and sinks, before the micro-batch is committed."""
        received = sum(each.records for each in last_attempts(batch, accounts))
        self._records.add(self._offset_log.query, batch, received, self._rows.messages_of(files))

    def _publish(self, query: str, batch: int, files: list[StagedFile], offsets: str) -> None:
        letters = sorted(
            (file for file in files if file.port == DEAD_LETTER_PORT), key=lambda file: (file.partition, file.path)
        )
        if letters and self._policy.may_fail:
            pieces = (data for file in letters for data in self._outbox.read_staged(file))
            stop_at_dead_letter(letters_of(pieces), self._policy)
        seen = self.watch.look(batch, letters, self._outbox.read_staged)
        reach("driver.before_publish")
        if not self._outbox.publish(query, batch, self._rows.write(query, batch, files), offsets):
            return
        self.letters += (count := sum(file.messages for file in letters))
        self.watch.add(seen, count)
        self.messages += sum(file.messages for file in files if file.port != DEAD_LETTER_PORT)
