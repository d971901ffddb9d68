"""Levels after a shuffle: keeps each bucket's state in Spark's store and lets the worker compute on it."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from wallaroo.diagnostic.fault import reach
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.plan import Stage
from wallaroo_runtime.plan.bucket_stages import in_order, run_bucket
from wallaroo_runtime.plan.crossing import CONTROL_PORTS, Crossing
from wallaroo_runtime.spark.account import Account
from wallaroo_runtime.spark.failure.translate import carried
from wallaroo_runtime.spark.task.executor import located
from wallaroo_runtime.spark.task.level import Attempt, Level
from wallaroo_runtime.spark.task.row import DATA, DONE, FrameHead, FrameRow, staged_columns
from wallaroo_runtime.storage.place import Staging
from wallaroo_runtime.worker.channel import WorkerChannel
from wallaroo_runtime.worker.compaction import is_due
from wallaroo_runtime.worker.process import ProcessCall
from wallaroo_runtime.worker.session import BucketResult, StateSession, Version, grouped
from wallaroo_runtime.worker.step_count import count_steps
from wallaroo_runtime.worker.visit_count import count_visits

VERSION_SCHEMA = "counter LONG, nonce LONG, snapshot_bytes LONG, delta_bytes LONG"
LOG_SCHEMA = "entry BINARY"


def to_signed(nonce: int) -> int:
    """Return an unsigned 64-bit number as Spark's LONG."""
    return nonce - (1 << 64) if nonce >> 63 else nonce


def to_unsigned(value: int) -> int:
    """Return what `to_signed` was given."""
    return value % (1 << 64)


def _take(account: Account, bucket: int, rows: Iterable[FrameRow]) -> None:
    for row in rows:
        head = FrameHead.of(row.payload)
        if head.count and head.port not in CONTROL_PORTS:  # ticks and visits are no messages
            account.taken[bucket, row.task, head.port] += head.count


def _row_bytes(row: tuple[bytes]) -> int:
    return len(row[0])


class BucketState:
    """State of the buckets of one stage, in Spark's store; holds for the key that Spark has set."""

    def __init__(self, handle: StatefulProcessorHandle, stage: Stage) -> None:
        self._version = handle.getValueState(f"version_{stage.id}", VERSION_SCHEMA)
        self._log = handle.getListState(f"log_{stage.id}", LOG_SCHEMA)
        self._snapshot_bytes = self._delta_bytes = 0

    def version(self) -> Version:
        """Return the committed version."""
        found = self._version.get()
        counter, nonce, self._snapshot_bytes, self._delta_bytes = found or (0, 0, 0, 0)
        return Version(counter, to_unsigned(nonce))

    @property
    def log_bytes(self) -> int:
        """Bytes of the log; valid after `version`."""
        return self._snapshot_bytes + self._delta_bytes

    def wants_snapshot(self, bucket: int) -> bool:
        """Say whether the deltas of a bucket outweigh its snapshot; valid after `version`."""
        return is_due(bucket, self._snapshot_bytes, self._delta_bytes)

    def log(self) -> Iterator[bytes]:
        """Yield the entries of the log, oldest first."""
        if self._log.exists():
            for row in self._log.get():
                yield bytes(row[0])

    def store(self, result: BucketResult) -> None:
        """Write what a call changed, as part of Spark's micro-batch."""
        size = sum(map(len, result.changes))
        rows = [(entry,) for entry in result.changes]
        if result.is_snapshot or result.version.counter == 1:  # the first changes are all that there is
            if rows:
                first, *others = grouped(rows, _row_bytes)
                self._log.put(first)
                for group in others:
                    self._log.appendList(group)
            else:  # Spark does not take an empty list
                self._log.clear()
            self._snapshot_bytes, self._delta_bytes = size, 0
        elif rows:
            for group in grouped(rows, _row_bytes):
                self._log.appendList(group)
            self._delta_bytes += size
        version = result.version
        self._version.update((version.counter, to_signed(version.nonce), self._snapshot_bytes, self._delta_bytes))

    def clear(self) -> None:
        """Leave no version and no log."""
        self._version.clear()
        self._log.clear()


class BucketProcessor(StatefulProcessor):
    """Runs the buckets of one task, one after the other."""

    def __init__(self, level: Level) -> None:
        self.level = level
        self._states: dict[str, BucketState] = {}
        self._sessions: dict[str, StateSession] = {}
        self._attempt: Attempt | None = None
        self._account: Account | None = None
        self._staged: Staging | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Take hold of the state; called on the driver too, for its schema."""
        self._states = {stage.id: BucketState(handle, stage) for stage in self.level.stages if stage.has_state}

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Run one bucket's frames of a micro-batch."""
        with carried():
            try:
                yield from self._rehearse(rows) if self.level.is_rehearsal else self._run(key[0], rows)
            except BaseException:
                self._abandon()
                raise

    def close(self) -> None:
        """Finish what the task has begun."""
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        staged, self._staged = self._staged, None
        if staged is not None:
            reach("task.before_close")
            with carried():
                staged.finish()
        if self._account is not None:
            self.level.tell_account(self._account)

    def _abandon(self) -> None:
        for session in self._sessions.values():
            session.abandon()
        if self._staged is not None:
            self._staged.abort()

    def _rehearse(self, rows: Iterable[Row]) -> Iterator[Row]:
        for state in self._states.values():
            version = state.version()
            state.store(BucketResult(Version(version.counter + 1, 1), changes=[bytes(entry) for entry in state.log()]))
            state.store(BucketResult(Version(version.counter + 1, 1), changes=[b"entry"]))
        if not self.level.is_last:
            yield from rows

    def _run(self, bucket_id: int, rows: Iterable[Row]) -> Iterator[Row]:
        if self._attempt is None or self._account is None:
            self._attempt = Attempt.current()
            self._account = self.level.account(self._attempt)
        bucket = self.level.bucket_ids.index(bucket_id)
        frames = in_order(FrameRow(*row) for row in rows)
        outputs = [row for row in frames if row.kind == DONE]
        if self.level.is_last:
            _take(self._account, bucket, outputs)
        data = [row for row in frames if row.kind == DATA]
        passing = [row for row in data if row.port in self.level.later_ports]
        made = run_bucket(
            self.level.stages, bucket, data, batch=self._attempt.batch, run=partial(self._run_stage, bucket=bucket)
        )
        outputs += [self.level.row_of(output, ordinal, self._account) for ordinal, output in made]
        self.level.tell_endings()
        if self.level.is_last:
            yield from self._stage_all(outputs, self._attempt, self._account)
        else:
            yield from (Row(**dict(zip(FrameRow.__slots__, row.as_tuple(), strict=True))) for row in passing + outputs)

    def _run_stage(self, stage: Stage, rows: list[FrameRow], crossing: Crossing, *, bucket: int) -> Iterable[pb.Output]:
        """Run a stage that begins with state on a bucket's rows, or one that follows on what it receives."""
        assert self._attempt is not None and self._account is not None
        _take(self._account, bucket, rows)
        if stage.has_state:
            return self._call(stage, bucket, [row.payload for row in rows]).outputs if rows else ()
        return self._follow(stage, crossing, self._attempt, self._account)

    def _follow(self, stage: Stage, crossing: Crossing, attempt: Attempt, account: Account) -> Iterator[pb.Output]:
        channel = WorkerChannel(located(self.level.workers[stage.worker]))
        call = ProcessCall(channel, self.level.opening(stage, attempt))
        for outputs in call.run(crossing.take(stage)):
            yield from outputs
        count_steps(account.steps, call.counts)

    def _call(self, stage: Stage, bucket: int, frames: list[bytes]) -> BucketResult:
        session = self._sessions.get(stage.id)
        if session is None:
            assert self._attempt is not None
            channel = WorkerChannel(located(self.level.workers[stage.worker]))
            reach("task.before_stage")
            session = self._sessions[stage.id] = StateSession(channel, self.level.opening(stage, self._attempt))
        state = self._states[stage.id]
        version = state.version()
        result = session.run_bucket(bucket, version, frames, state.log, state.wants_snapshot(bucket))
        assert self._account is not None
        count_visits(self._account.visited, result.visits)
        count_steps(self._account.steps, result.counts)
        reach("task.after_reply")
        state.store(result)
        self._account.stores[stage.id, bucket] = result.keys, state.log_bytes
        return result

    def _stage_all(self, outputs: list[FrameRow], attempt: Attempt, account: Account) -> Iterator[Row]:
        if self._staged is None:
            self._staged = self.level.staging_writer(attempt)
        for row in outputs:
            head = FrameHead.of(row.payload)
            account.staged[head.port] += head.count
            self._staged.write(head.port, row.payload)
        # Nobody knows which bucket is a task's last: each reports how far the files have grown, and the longest counts.
        for file in self._staged.so_far():
            yield Row(**staged_columns(attempt.query, file))
