"""Level 0: reads ranges of the journal and runs them through the stages without state."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import pyarrow as pa

from wallaroo.diagnostic.fault import reach
from wallaroo.message.frame import HEADER_BYTES, read_frame, read_header
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.plan import NodeKind, Stage
from wallaroo_runtime.plan.bucket_stages import FIRST_OF_TABLE
from wallaroo_runtime.plan.crossing import CONTROL_PORTS, Crossing, controls_of, frames_of_ports
from wallaroo_runtime.spark.account import Account
from wallaroo_runtime.spark.failure.translate import carried
from wallaroo_runtime.spark.task.executor import located
from wallaroo_runtime.spark.task.level import Attempt, Level
from wallaroo_runtime.spark.task.origin import Origins
from wallaroo_runtime.spark.task.row import DATA, REHEARSAL, FrameHead, FrameRow, frame_batch, staged_batch
from wallaroo_runtime.spark.task.row_source import RecordSource
from wallaroo_runtime.topology.model import KafkaSource
from wallaroo_runtime.worker.audit import messages_by_port
from wallaroo_runtime.worker.channel import WorkerChannel
from wallaroo_runtime.worker.process import ProcessCall
from wallaroo_runtime.worker.session import grouped
from wallaroo_runtime.worker.step_count import count_steps

Inputs = Callable[[Stage], Iterable[bytes]]


class StatelessLevel:
    """The function of `mapInArrow` for level 0, over ranges of the journal.

    Args:
        level: Level 0.
        has_messages: Whether the journals have more than ticks and visits: a source that Spark does not read.
    """

    def __init__(self, level: Level, *, has_messages: bool = True) -> None:
        self.level, self._has_messages = level, has_messages
        self._controls, self._first = CONTROL_PORTS & level.later_ports, 0
        self._keeps_controls = False
        self._kept: list[tuple[int, bytes]] = []  # ticks and visits, with their sequences

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run one partition."""
        with carried():
            attempt = Attempt.current()
            account = self.level.account(attempt)
            inputs = self._inputs(batches, account)
            if self.level.is_rehearsal:
                yield from self._rehearse()
            elif self.level.is_last:
                yield from self._stage(inputs, attempt, account)
            else:
                yield from self._shuffle(inputs, attempt, account)
            self.level.tell_account(account)
            self.level.tell_endings()

    def _rehearse(self) -> Iterator[pa.RecordBatch]:
        if not self.level.is_last:
            yield frame_batch([FrameRow(column, 0, 0, REHEARSAL, 0, b"") for column in self.level.bucket_ids])

    def _shuffle(self, inputs: Inputs, attempt: Attempt, account: Account) -> Iterator[pa.RecordBatch]:
        # Frames of several stages may begin with the same message: they keep the order of the stages.
        first = self._first
        for outputs in self._outputs(inputs, attempt, account):
            rows = [self.level.row_of(output, ordinal, account) for ordinal, output in enumerate(outputs, first)]
            first += len(outputs)
            yield from map(frame_batch, grouped(rows, lambda row: len(row.payload)))
        for kept in self._kept:
            yield frame_batch(self._to_all(*kept, account))

    def _to_all(self, sequence: int, frame: bytes, account: Account) -> list[FrameRow]:
        """Return a tick or visit for each bucket."""
        return [FrameRow(column, sequence, -1, DATA, account.task, frame) for column in self.level.bucket_ids]

    def _stage(self, inputs: Inputs, attempt: Attempt, account: Account) -> Iterator[pa.RecordBatch]:
        staged = self.level.staging_writer(attempt)
        try:
            for outputs in self._outputs(inputs, attempt, account):
                for output in outputs:
                    account.staged[output.port] += FrameHead.of(output.frame).count
                    staged.write(output.port, output.frame)
            files = staged.finish()
        except BaseException:
            staged.abort()
            raise
        if files:
            yield staged_batch(attempt.query, files)

    def _outputs(self, inputs: Inputs, attempt: Attempt, account: Account) -> Iterator[list[pb.Output]]:
        reach("task.before_stage")
        self._keeps_controls, self._kept = False, []
        crossing = Crossing(self.level.stages)
        for stage in self.level.stages:
            channel = WorkerChannel(located(self.level.workers[stage.worker]))
            frames = chain(inputs(stage), crossing.take(stage))
            call = ProcessCall(channel, self.level.opening(stage, attempt))
            for outputs in call.run(frames):
                yield crossing.keep(outputs)
            count_steps(account.steps, call.counts)
        crossing.check(attempt.batch)

    def _inputs(self, batches: Iterator[pa.RecordBatch], account: Account) -> Inputs:
        """Return what gives the frames that come in at a stage."""
        ranges = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
        return lambda stage: self._read(ranges, stage, account)

    def _read(self, ranges: list[tuple[int, str, int, int]], stage: Stage, account: Account) -> Iterator[bytes]:
        ports = frozenset(node.port for node in stage.entries if node.kind is NodeKind.SOURCE)
        if not ports:
            return
        # Each stage that has sources reads everything; the first one keeps what goes to all buckets.
        keeps = self._controls if not self._keeps_controls else frozenset()
        self._keeps_controls = True
        for place, journal, begin, end in ranges:
            for data in self.level.read(place, int(journal, 16), begin, end):
                found = messages_by_port(data)
                mine = data if found.keys() <= ports else b"".join(frames_of_ports(data, ports))
                if keeps & found.keys():
                    self._kept.extend(controls_of(data, keeps, precede_all=not self._has_messages))
                if mine:
                    account.read += sum(found[port] for port in ports)
                    account.arrived.update(_arrivals(mine))
                    yield mine


def _arrivals(frames: bytes) -> Counter[int]:
    """Count messages by the time of their arrival; that of a connector's, which have columns, is the data's own."""
    found: Counter[int] = Counter()
    offset = 0
    while offset < len(frames):
        header = read_header(frames, offset)
        if not header.flags:
            found[header.timestamp_ms] += header.count
        offset += HEADER_BYTES + header.body_bytes
    return found


def _counted(frames: Iterable[bytes], account: Account, *, is_kafka: bool) -> Iterator[bytes]:
    """Yield frames of a source that Spark reads, and count their messages.

    Args:
        is_kafka: Whether their times are those at which they came; others may be of the data.
    """
    for frame in frames:
        account.records += FrameHead.of(frame).count
        if is_kafka:
            account.arrived.update(arrivals_of_records(frame, time.time_ns() // 1_000_000))
        yield frame


def arrivals_of_records(frame: bytes, now_ms: int) -> Counter[int]:
    """Count records by their time, coarser the older they are, to 3 %: a topic with old records has many times."""
    arrived = Counter[int]()
    for at, count in Counter(read_frame(frame).times()).items():
        step = 1 << max(0, abs(now_ms - at).bit_length() - 6)
        arrived[at - at % step] += count
    return arrived


class RecordLevel(StatelessLevel):
    """The function of `mapInArrow` for level 0, over rows of a source that Spark reads."""

    def __init__(self, level: Level, source: RecordSource) -> None:
        super().__init__(level)
        self.source = source
        self._origins: Origins | None = None
        self._first = FIRST_OF_TABLE if source.is_table else 0

    def _inputs(self, batches: Iterator[pa.RecordBatch], account: Account) -> Inputs:
        source = self.source.source
        origins = self._origins = Origins(source) if isinstance(source, KafkaSource) else None

        def read(stage: Stage) -> Iterable[bytes]:
            if all(node.port != self.source.port for node in stage.entries):
                return ()
            frames = self.source.frames(batches if origins is None else origins.read(batches), account.batch)
            is_kafka = origins is not None and not self.source.is_table
            counted = _counted(frames, account, is_kafka=is_kafka)
            return counted if origins is None else origins.send(counted)

        return read

    def _outputs(self, inputs: Inputs, attempt: Attempt, account: Account) -> Iterator[list[pb.Output]]:
        for outputs in super()._outputs(inputs, attempt, account):
            if self._origins is not None:
                self._origins.put(outputs)
            yield outputs
