"""Takes output in real-time mode: appends new messages to the live log, in order, and drops repeated messages."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator

from wallaroo.message.frame import DEAD_LETTER_PORT, FRAMED, HEADER_BYTES, Frame, read_body, split_frames
from wallaroo_runtime.egress.latency import LatencyMeter, now_ms
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import AttachmentStore
from wallaroo_runtime.service.chunk import ChunkJoiner
from wallaroo_runtime.storage.outbox.live import OUTPUT, Entry
from wallaroo_runtime.storage.outbox.live_deduplication import OutOfOrderError, Place, StreamRun
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.live_state import AttemptWriter
from wallaroo_runtime.storage.outbox.position import begin_position


class Deliveries:
    """Decides which attempt of a task may deliver output in real-time mode, and appends its output to the live log.

    Args:
        ports: Returns the ports (numbers in the topology) of the sinks.
        wake: Called with the port of a sink that has new output.

    Attributes:
        latencies: Measures latencies of messages until all sinks have taken their output.
    """

    def __init__(
        self, live: LiveLog, store: AttachmentStore, ports: Callable[[], Collection[int]], wake: Callable[[int], None]
    ):
        self.live, self.store, self._ports, self._wake = live, store, ports, wake
        self.lock, self.latencies = threading.Lock(), LatencyMeter()
        self._latest: dict[int, AttemptReceiver] = {}

    def open(self, writer: AttemptWriter) -> "AttemptReceiver":
        """Return the receiver for the output of a task attempt. From now on earlier attempts are refused.

        Raises:
            RunError: R644 if the driver is not the latest; R750 if the partition has a later attempt.
        """
        with self.lock:
            self.store.check(writer.epoch)
            latest = self.live.state.writers.get(writer.partition)
            if latest is not None and (writer.epoch, writer.attempt) < (latest.epoch, latest.attempt):
                raise self.superseded(writer)
            self.live.open(writer)
            self._latest[writer.partition] = stream = AttemptReceiver(self, writer)
            return stream

    def close(self) -> None:
        """Take no more output, and close the log."""
        with self.lock:
            self._latest = {}
            self.live.close()

    def check(self, stream: "AttemptReceiver") -> None:
        """Refuse output of an attempt that is not the latest one of its partition. The caller holds the lock.

        Raises:
            RunError: R644 if the driver is not the latest; R750 if the partition has a later attempt.
        """
        self.store.check(stream.writer.epoch)
        if self._latest.get(stream.writer.partition) is not stream:
            raise self.superseded(stream.writer)

    def superseded(self, writer: AttemptWriter) -> RunError:
        """Return the error for an attempt whose partition has a later attempt (R750)."""
        latest = self.live.state.writers[writer.partition]
        return RunError.of(
            "R750",
            address=self.store.address,
            attempt=writer.attempt,
            partition=writer.partition,
            batch=writer.batch,
            latest=latest.attempt,
        )

    def append(self, entry: Entry) -> None:
        """Append output to the live log, and wake its sink. The caller holds the lock."""
        is_sink = entry.port != DEAD_LETTER_PORT
        if is_sink and not self.live.state.messages[entry.port]:
            begin_position(self.live.directory.parent, entry.port)
        self.live.append(entry)
        if is_sink:
            self._wake(entry.port)

    def check_port(self, port: int) -> None:
        """Refuse output for a port that no sink has.

        Raises:
            RunError: R648 if no sink has the port.
        """
        if port != DEAD_LETTER_PORT and port not in self._ports():
            raise self.store.refused(reason=f"port {port} is of no sink that takes output of a running micro-batch")


class AttemptReceiver:
    """Receives the output of one attempt of a task.

    Args:
        writer: The attempt.

    Attributes:
        writer: The attempt.
        taken: Number of the last delivery that is wholly in the live log.
    """

    def __init__(self, deliveries: Deliveries, writer: AttemptWriter) -> None:
        self._deliveries, self._live, self.writer = deliveries, deliveries.live, writer
        self.taken = self._number = self._committed = 0
        self._run, self._joiner = StreamRun(), ChunkJoiner()
        self._place: Place = (-1, -1)
        self._ends: dict[int, int] = {}  # number of messages by port, of ports with new output since `arrive`
        self._published_ms = 0  # time of the last new output; 0 if there is none

    def take(self, delivery: pb.Delivery) -> None:
        """Take the next delivery: append its new messages to the live log.

        Raises:
            RunError: R644 or R750 if another attempt delivers; R648 if this attempt breaks the protocol; R751 if its
                output is out of order.
            OSError: The disk failed.
        """
        self._check(delivery)
        self._number = delivery.number
        try:
            data = self._joiner.take(delivery.chunk)
            frames = list(_frames(data, delivery.port)) if data else []
        except ValueError as error:
            raise self._refused(reason=f"what came is no frame; {error}") from error
        if data is None:
            return
        with self._deliveries.lock:
            self._deliveries.check(self)
            for frame, content in frames:
                if delivery.port == DEAD_LETTER_PORT:
                    self._take_letters(delivery.bucket, frame)
                else:
                    self._take_results((delivery.port, delivery.bucket), frame, content)
        self.taken = delivery.number

    def _check(self, delivery: pb.Delivery) -> None:
        place = (delivery.port, delivery.bucket)
        if delivery.number != self._number + 1:
            raise self._refused(reason=f"delivery {delivery.number} comes after {self._number}")
        if not self._joiner.is_whole and place != self._place:
            raise self._refused(reason="a delivery ended within a frame")
        if place != self._place:
            self._deliveries.check_port(delivery.port)
        self._place = place

    def arrive(self, arrived: Iterable[pb.Arrived], computed_ms: int) -> None:
        """Start the clocks for the latencies of messages whose output is complete, but not for repeated output.

        The engine had this output at the time `computed_ms`.
        """
        if self._published_ms:
            times = {each.time_ms: each.messages for each in arrived}
            self._deliveries.latencies.publish(self._ends, times, self._published_ms, computed_ms)
            self._ends, self._published_ms = {}, 0

    def commit(self, sequence: int) -> None:
        """Note that Spark has committed all messages before `sequence`. Forget dead letters before the previous commit.

        Input before the previous commit is never repeated. Input after it is repeated if a loss of power removes
        Spark's newest commit.

        Raises:
            RunError: R644 or R750 if another attempt delivers.
        """
        with self._deliveries.lock:
            self._deliveries.check(self)
            self._live.state.forget_letters(self.writer.partition, self._committed)
            self._run.forget_letters(self._committed)
        self._committed = sequence

    def end(self) -> None:
        """Check, when no more output comes, that the last frame is whole.

        Raises:
            RunError: R648 if the output ended within a frame.
        """
        if not self._joiner.is_whole:
            raise self._refused(reason="a stream ended within a frame")

    def _take_results(self, place: Place, frame: Frame, content: bytes) -> None:
        header, known = frame.header, self._live.state.marks.get(place, (-1, 0))
        try:
            skip, mark = self._run.take(place, frame.sequences or range(header.count), header.sequence, known)
        except OutOfOrderError as error:
            raise RunError.of("R751", port=place[0], bucket=place[1], reason=error) from error
        self._live.dropped += skip
        if skip < header.count:
            port, bucket = place
            entry = Entry(OUTPUT, port, bucket, self.writer.partition, skip, *mark, content)
            self._append(entry)
            self._ends[port] = self._live.state.messages[port]

    def _take_letters(self, bucket: int, frame: Frame) -> None:
        state, partition = self._live.state, self.writer.partition
        content, count = self._run.take_letters(bucket, frame, state.letters[partition])
        self._live.dropped += frame.header.count - count
        if count:
            at = state.letter_bytes[partition]
            self._append(Entry(OUTPUT, DEAD_LETTER_PORT, bucket, partition, sequence=at, content=content))

    def _append(self, entry: Entry) -> None:
        self._deliveries.append(entry)
        self._published_ms = now_ms()

    def _refused(self, reason: str) -> RunError:
        return self._deliveries.store.refused(reason)


def _frames(data: bytes, port: int) -> Iterator[tuple[Frame, bytes]]:
    """Yield each frame of a delivery, with its bytes. Leave out frames without messages.

    Raises:
        ValueError: A frame is damaged, or of another port.
    """
    for header, start, end in split_frames(data):
        if header.port != port or header.encoding == FRAMED:
            reason = f"a frame of port {header.port} and encoding {header.encoding} came for port {port}"
            raise ValueError(reason)
        if header.count:
            yield read_body(header, data, start + HEADER_BYTES), data[start:end]
