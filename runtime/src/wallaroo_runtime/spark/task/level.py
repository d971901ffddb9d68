"""What the tasks of one level of a plan have to know; pickles into them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark import Accumulator, AccumulatorParam, TaskContext
from pyspark.sql import SparkSession

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.plan.bucket_stages import later_ports
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.spark.account import Account, AccountParam, Accounts
from wallaroo_runtime.spark.task.executor import executor_name
from wallaroo_runtime.spark.task.row import DATA, DONE, FrameHead, FrameRow
from wallaroo_runtime.storage.place import JournalPlace, OutputPlace, Staging
from wallaroo_runtime.worker.channel import take_endings
from wallaroo_runtime.worker.spec import WorkerSpec

CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Attempt:
    """Which attempt of which task runs here."""

    query: str
    batch: int
    partition: int
    stage: int
    attempt: int

    @classmethod
    def current(cls) -> "Attempt":
        """Ask Spark."""
        context = TaskContext.get()
        query = context and context.getLocalProperty("sql.streaming.queryId")
        batch = context and context.getLocalProperty("streaming.sql.batchId")
        if context is None or not query or not batch:
            raise RunError.of("I901", reason="Spark does not say which query and micro-batch a task belongs to")
        return cls(query, int(batch), context.partitionId(), context.stageId(), context.taskAttemptId())


class EndingParam(AccumulatorParam[dict[str, str]]):
    """Lets tasks report to the driver which processes of workers have ended."""

    def zero(self, value: dict[str, str]) -> dict[str, str]:
        """Return one that reports nothing."""
        return {}

    def addInPlace(self, value1: dict[str, str], value2: dict[str, str]) -> dict[str, str]:  # noqa: N802 - Spark's name
        """Return both."""
        return {**value1, **value2}


@dataclass(frozen=True, slots=True)
class ReadCounts:
    """What tasks report to the driver: bytes of the journal that they have read, repeated ones included.

    Attributes:
        endings: Processes of workers that ended by themselves, in words.
        accounts: Messages that left tasks and came to them, in the latest micro-batch.
    """

    by_file: Accumulator[int]
    by_grpc: Accumulator[int]
    endings: Accumulator[dict[str, str]]
    accounts: Accumulator[Accounts]

    @classmethod
    def of(cls, session: SparkSession) -> "ReadCounts":
        """Return counts that begin at 0."""
        count = session.sparkContext.accumulator
        return cls(count(0), count(0), count({}, EndingParam()), count(Accounts(), AccountParam()))


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a plan.

    Attributes:
        application: Name of the application.
        number: Of the level, from 0.
        stages: The level's stages, in the order in which they run; what one sends the later ones receive.
        workers: How the workers are found, by name.
        bucket_ids: Bucket to the value of the column `bucket`.
        later_ports: Ports of frames that later levels take; that of ticks is among them where these have windows.
        is_last: Whether no shuffle follows.
        journals: Where the journals are; rows of a range name one by its number.
        chunk_bytes: How much of the journal one call of the worker gets.
        counts: What tasks report to the driver; None: nothing.
        is_rehearsal: Whether the operators only touch what they would use; see `rehearse`.
    """

    application: str
    number: int
    stages: tuple[Stage, ...]
    workers: Mapping[str, WorkerSpec]
    bucket_ids: tuple[int, ...]
    later_ports: frozenset[int]
    is_last: bool
    journals: tuple[JournalPlace, ...]
    output: OutputPlace
    chunk_bytes: int = CHUNK_BYTES
    counts: ReadCounts | None = None
    is_rehearsal: bool = False

    def opening(self, stage: Stage, attempt: Attempt) -> pb.Opening:
        """Return what begins a stream of a stage."""
        return pb.Opening(
            application=self.application,
            query=attempt.query,
            stage=stage_message(stage),
            batch=attempt.batch,
            partition=attempt.partition,
            attempt=attempt.attempt,
        )

    def read(self, place: int, journal_id: int, begin: int, end: int) -> Iterator[bytes]:
        """Yield the frames of a range, and count their bytes."""
        chosen = self.journals[place]
        count = None
        if self.counts is not None:
            count = self.counts.by_grpc if chosen.service else self.counts.by_file
        for data in chosen.open(journal_id).read(begin, end, self.chunk_bytes):
            if count is not None:
                count.add(len(data))
            yield data

    def tell_endings(self) -> None:
        """Report to the driver processes of workers that ended by themselves while tasks of this process used them."""
        found = take_endings()
        if self.counts is not None and found:
            place = executor_name()
            self.counts.endings.add({f"{place}, process {pid}": f"{text} ({place})" for pid, text in found.items()})

    def account(self, attempt: Attempt) -> Account:
        """Return what counts the messages of an attempt."""
        return Account(attempt.batch, self.number, attempt.partition, attempt.attempt)

    def tell_account(self, account: Account) -> None:
        """Tell the driver what an attempt has counted; only those that succeed arrive."""
        if self.counts is not None:
            self.counts.accounts.add({account.task: account})

    def staging_writer(self, attempt: Attempt) -> Staging:
        """Return what takes the outputs of an attempt."""
        return self.output.writer(attempt.query, attempt.batch, attempt.partition, attempt.stage, attempt.attempt)

    def row_of(self, output: pb.Output, ordinal: int, account: Account) -> FrameRow:
        """Return an output as a row for the level that takes it.

        Args:
            ordinal: The place among rows of one sequence.
            account: Of the attempt that makes the row. The last level has no rows for others.
        """
        head = FrameHead.of(output.frame)
        if not self.is_last:
            account.made[self._bucket_of(output.bucket, output.port), output.port] += head.count
        kind, column = (DATA if output.bucket >= 0 else DONE), self.column_of(output.bucket, output.port)
        return FrameRow(column, head.sequence, ordinal, kind, account.task, output.frame)

    def column_of(self, bucket: int, port: int) -> int:
        """Return the value of the column `bucket`; frames that belong to no bucket keep together by port."""
        return self.bucket_ids[self._bucket_of(bucket, port)]

    def _bucket_of(self, bucket: int, port: int) -> int:
        return bucket if bucket >= 0 else port % len(self.bucket_ids)


def levels_of(
    plan: Plan,
    workers: Mapping[str, WorkerSpec],
    *,
    journals: Sequence[JournalPlace],
    output: OutputPlace,
    chunk_bytes: int = CHUNK_BYTES,
    counts: ReadCounts | None = None,
) -> list[Level]:
    """Return the levels of a plan, in order."""
    later = later_ports(plan)
    return [
        Level(
            plan.application,
            number,
            stages,
            {stage.worker: workers[stage.worker] for stage in stages},
            plan.bucket_ids,
            later[number],
            number + 1 == len(plan.levels),
            tuple(journals),
            output,
            chunk_bytes,
            counts,
        )
        for number, stages in enumerate(plan.levels)
    ]
