"""Runs the micro-batches of a plan, with dictionaries in place of Spark's stores."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from wallaroo.message.frame import CONTROL_PORTS, DEAD_LETTER_PORT, TICK_PORT, read_header
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.memory.calls import StateSession, run_data
from wallaroo_runtime.memory.crossing import Crossing, controls_of, frames_of_ports, messages_by_port
from wallaroo_runtime.memory.store import LogStore
from wallaroo_runtime.plan import NodeKind, Plan, Stage
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.storage.outbox.letter_tail import letters_of
from wallaroo_runtime.topology.error_policy import ErrorPolicy, stop_at_dead_letter
from wallaroo_runtime.worker.client import CallClient
from wallaroo_runtime.worker.step_count import VisitCounts, add_up

FIRST_OF_TABLE = -(1 << 31)  # ordinals of tables' frames begin here, before ticks and all other frames of sequence 0
FRAMES_PER_BUCKET = 1 << 16  # each bucket has this many ordinals for its outputs


@dataclass(frozen=True, slots=True)
class FrameRow:
    """A frame that a shuffle carries to a bucket.

    Attributes:
        ordinal: Order of the frames that have the same sequence. A tick precedes the messages of its sequence.
        payload: Bytes of the frame.
    """

    bucket: int
    sequence: int
    ordinal: int
    port: int
    payload: bytes


def in_order(rows: Iterable[FrameRow]) -> list[FrameRow]:
    """Return the rows of one bucket in the order in which stages made them. A shuffle may change this order.

    Frames of several tasks may have the same sequence and ordinal, and so may ticks and visits. Such frames are sorted
    by time and then by their bytes, so that a repeated micro-batch has the same order.
    """
    return sorted(rows, key=lambda row: (row.sequence, row.ordinal, read_header(row.payload).timestamp_ms, row.payload))


@dataclass(slots=True)
class BatchResult:
    """The results of a micro-batch: outputs for sinks, and dead letters.

    Attributes:
        frames: Frames of each sink, by its port, in the order in which they were made.
        fired: Number of timers that ran.
    """

    frames: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    letters: list[bytes] = field(default_factory=list)
    visits: VisitCounts = field(default_factory=dict)
    fired: int = 0

    def take(self, output: pb.Output) -> None:
        """Add an output to the results: a frame of a sink, or a dead letter."""
        if output.port == DEAD_LETTER_PORT:
            self.letters.append(output.frame)
        else:
            self.frames[output.port].append(output.frame)


class Engine:
    """Runs micro-batches of a plan with its workers, and keeps their states.

    Args:
        clients: Client of each worker, by its name.
        policy: Policy that decides which dead letters stop a micro-batch.
        shuffle: Changes the order of the rows of a shuffle, which must not change results; None keeps the order.
        tables: Ports of sources that are tables. A task with messages of tables has no messages of other sources.

    Attributes:
        batches: Number of committed micro-batches.
    """

    def __init__(
        self,
        plan: Plan,
        clients: Mapping[str, CallClient],
        policy: ErrorPolicy,
        *,
        store: LogStore | None = None,
        shuffle: Callable[[list[FrameRow]], None] | None = None,
        tables: Collection[int] = (),
    ) -> None:
        self.plan, self.store = plan, LogStore() if store is None else store
        self.batches, self._tables = 0, frozenset(tables)
        self._clients, self._policy, self._shuffle = clients, policy, shuffle
        self._stages = {stage.id: stage_message(stage) for stage in plan.stages}
        self._later = plan.later_ports

    @property
    def has_ticks(self) -> bool:
        """Whether a step or window needs ticks."""
        return TICK_PORT in self._later[0]

    def run(self, tasks: Sequence[Sequence[bytes]]) -> BatchResult:
        """Run one micro-batch.

        Args:
            tasks: For each task of level 0 its calls. A call is the bytes of one or more whole frames.

        Returns:
            The results of the micro-batch, which is committed.

        Raises:
            RunError: R611 if a dead letter stops the application, or an error of a worker. Then nothing is committed.
        """
        batch = BatchResult()
        try:
            rows = [row for number, calls in enumerate(tasks) for row in self._begin(number, calls, batch)]
            for depth in range(1, len(self.plan.levels)):
                rows = self._level(depth, rows, batch)
            if self._policy.may_fail:
                stop_at_dead_letter(letters_of(batch.letters), self._policy)
        except BaseException:
            self.store.roll_back()
            raise
        self.store.commit()
        self.batches += 1
        return batch

    def _opening(self, stage: Stage, partition: int) -> pb.Opening:
        return pb.Opening(
            application=self.plan.application,
            query="memory",
            stage=self._stages[stage.id],
            batch=self.batches,
            partition=partition,
            attempt=self.batches,
        )

    def _begin(self, task: int, calls: Sequence[bytes], batch: BatchResult) -> Iterator[FrameRow]:
        """Run the stages with the sources (level 0) for one task, and yield the rows for the first shuffle."""
        stages = self.plan.levels[0]
        is_table = self._tables.issuperset(chain.from_iterable(map(messages_by_port, calls)))
        crossing, ordinal = Crossing(stages), FIRST_OF_TABLE if is_table else 0
        for stage in stages:
            ports = {node.port for node in stage.entries if node.kind is NodeKind.SOURCE}
            mine = (b"".join(frames_of_ports(data, ports)) for data in calls)
            frames = chain(filter(None, mine), crossing.take(stage))
            for outputs in self._process(stage, task, frames):
                for output in crossing.keep(outputs):
                    yield from self._to_bucket(output, ordinal, batch)
                    ordinal += 1
        if controls := CONTROL_PORTS & self._later[0]:
            yield from self._controls(calls, controls)

    def _controls(self, calls: Sequence[bytes], ports: Collection[int]) -> Iterator[FrameRow]:
        """For each tick and visit in `calls`, yield one row per bucket."""
        for data in calls:
            for sequence, frame in controls_of(data, ports):
                port = read_header(frame).port
                yield from (FrameRow(bucket, sequence, -1, port, frame) for bucket in range(self.plan.bucket_count))

    def _process(self, stage: Stage, partition: int, frames: Iterable[bytes]) -> Iterator[list[pb.Output]]:
        return run_data(self._clients[stage.worker], self._opening(stage, partition), frames)

    def _to_bucket(self, output: pb.Output, ordinal: int, batch: BatchResult) -> Iterator[FrameRow]:
        """Yield an output as a row if its receiver is a bucket. Else add it to the results of the micro-batch."""
        if output.bucket < 0:
            batch.take(output)
        else:
            sequence = read_header(output.frame).sequence
            yield FrameRow(output.bucket, sequence, ordinal, output.port, output.frame)

    def _level(self, depth: int, rows: list[FrameRow], batch: BatchResult) -> list[FrameRow]:
        """Run the stages of level `depth` for each bucket, and return the rows for the next shuffle."""
        if self._shuffle is not None:
            self._shuffle(rows)
        buckets: dict[int, list[FrameRow]] = defaultdict(list)
        for row in rows:
            buckets[row.bucket].append(row)
        following = [row for row in rows if row.port in self._later[depth]]
        stages = self.plan.levels[depth]
        sessions = {
            stage.id: StateSession(self._clients[stage.worker], self._opening(stage, 0))
            for stage in stages
            if stage.has_state
        }
        try:
            for bucket in sorted(buckets):
                following += self._bucket(stages, bucket, in_order(buckets[bucket]), sessions, batch)
        except BaseException:
            for session in sessions.values():
                session.abandon()
            raise
        for session in sessions.values():
            session.close()
        return following

    def _bucket(
        self,
        stages: Sequence[Stage],
        bucket: int,
        rows: Sequence[FrameRow],
        sessions: Mapping[str, StateSession],
        batch: BatchResult,
    ) -> Iterator[FrameRow]:
        """Run the stages of one level for one bucket, and yield the rows for the next shuffle.

        A stage with state gets the rows for its ports. A stage without state gets the messages of earlier stages.
        """
        crossing, ordinal = Crossing(stages), bucket * FRAMES_PER_BUCKET
        for stage in stages:
            frames = [row.payload for row in rows if row.port in stage.entry_ports]
            outputs: Iterable[pb.Output] = ()
            if not stage.has_state:
                outputs = chain.from_iterable(self._process(stage, bucket, crossing.take(stage)))
            elif frames:
                outputs = self._state(sessions[stage.id], stage, bucket, frames, batch)
            for output in crossing.keep(outputs):
                yield from self._to_bucket(output, ordinal, batch)
                ordinal += 1
        crossing.check(self.batches)

    def _state(
        self, session: StateSession, stage: Stage, bucket: int, frames: list[bytes], batch: BatchResult
    ) -> list[pb.Output]:
        log = self.store.log(stage.id, bucket)
        wants_snapshot = self.store.wants_snapshot(bucket, log)
        result = session.run_bucket(bucket, log.version, frames, lambda: log.entries, wants_snapshot)
        for each in result.visits:
            add_up(batch.visits, {each.id: {"keys": each.keys, "failed": each.failed}})
        batch.fired += result.fired
        self.store.put(stage.id, bucket, log.after(result))
        return result.outputs
