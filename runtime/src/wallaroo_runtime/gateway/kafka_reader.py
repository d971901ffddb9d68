"""Reads one topic of Kafka in a thread, and turns the records into frames for the journal."""

import codecs
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.frame import DEAD_LETTER_PORT, PLAIN, encode_body
from wallaroo.worker._proto.worker_pb2 import DeadLetter, Origin
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.intake import Gathered
from wallaroo_runtime.gateway.source_progress import POINT_HEADER, point_headers
from wallaroo_runtime.kafka.client import silence_of
from wallaroo_runtime.kafka.consumer import make_consumer
from wallaroo_runtime.kafka.frame import FRAME_MESSAGES, MESSAGE_BYTES, columns_of, encode_headers, whole_value
from wallaroo_runtime.kafka.offset import why_lost
from wallaroo_runtime.service._proto import service_pb2 as pb

FRAME_BYTES = 256 * 1024
AHEAD_BYTES = 4 * 1024 * 1024  # limit for bytes that are read and not yet in the journal
POLL_S = 0.2
LOOK_S, LOOK_ANSWER_S = 5.0, 5.0  # time between searches for new partitions, and deadline of the brokers' answer
AWAY_LOOK_S = 1.0
GATHER_S = 0.01  # while records come one by one, a frame has those of so many seconds; each frame costs CPU time
BEGINNING = -2
PREVIEW_BYTES, KEY_BYTES = 80, 200  # of the value and key in the dead letter of a record that is too large
_NAME = POINT_HEADER.decode()


class FrameRecords:
    """Collects records until they fill one frame.

    A run is messages of one partition with consecutive offsets. Its last message has the next offset as a header, so
    all offsets of the run are known.
    """

    def __init__(self, config: pb.KafkaSource) -> None:
        self._config = config
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._times: list[int] = []
        self._headers: list[bytes] = []
        self._runs: list[tuple[int, tuple[int, int]]] = []  # partition, index of the last message, next offset
        self._partition = self._next = -1  # partition and next offset of the current run
        self._size = 0

    @property
    def is_full(self) -> bool:
        """True if the frame should get no more records."""
        return self._size >= FRAME_BYTES or len(self._values) >= FRAME_MESSAGES

    def add(self, record: Any) -> Gathered | None:
        """Add a record, or return a frame with its dead letter if it is larger than the topology allows."""
        partition, offset, key = record.partition(), record.offset(), record.key()
        value, time_ms, headers = record.value(), record.timestamp()[1], record.headers() or ()
        encoded = b""
        if self._config.records:
            value = whole_value(
                self._config.topic, partition, offset, key=key, value=value, timestamp_ms=time_ms, headers=headers
            )
        elif headers:  # leave out the record's header that has the name of the runtime's own header
            encoded = encode_headers(pair for pair in headers if pair[0] != _NAME)
        size, limit = len(value or b""), self._config.max_message_bytes
        size += 0 if self._config.records else len(key or b"") + len(encoded)
        if size > limit:
            return self._letter(record, f"a record of {size:,} bytes; at most {limit:,} are taken")
        if offset != self._next or partition != self._partition:
            self._end_run()
            self._partition = partition
        self._next = offset + 1
        self._keys.append(key)
        self._values.append(value)
        self._times.append(time_ms)
        self._headers.append(encoded)
        self._size += size + MESSAGE_BYTES
        return None

    def _letter(self, record: Any, error: str) -> Gathered:
        """Return a frame with a dead letter: the place of its record and its beginning, as `LargeRow.java` makes it."""
        config, partition, offset, time_ms = self._config, record.partition(), record.offset(), record.timestamp()[1]
        key, value = (record.key() or b"")[:KEY_BYTES], (record.value() or b"")[:PREVIEW_BYTES]
        letter = DeadLetter(
            code="R606", path=config.path, step=config.name, port=config.port, sequence=offset, timestamp_ms=time_ms,
            error=error, preview=codecs.getincrementaldecoder("utf-8")("replace").decode(value),
            origin=Origin(source=config.name, topic=config.topic, partition=partition, offset=offset, key=key),
        )  # fmt: skip
        flags, parts = encode_body([letter.SerializeToString()])
        reached = {(config.port, partition): offset + 1}
        return Gathered(DEAD_LETTER_PORT, time_ms, 1, sum(map(len, parts)), parts, flags, PLAIN, reached)

    def _end_run(self) -> None:
        if self._values:
            self._runs.append((self._partition, (len(self._values) - 1, self._next)))

    def frame(self) -> Gathered | None:
        """Return a frame with the added records; None if none was added. After this call nothing can be added."""
        count = len(self._values)
        if not count:
            return None
        self._end_run()
        points = point_headers(count, self._runs)
        headers = [own + point for own, point in zip(self._headers, points, strict=True)]
        earliest, columns = columns_of(self._values, self._keys, self._times, headers)
        flags, parts = encode_body(columns.pop("values"), **columns)
        port, reached = self._config.port, {(self._config.port, partition): end for partition, (_, end) in self._runs}
        return Gathered(port, earliest, count, sum(map(len, parts)), parts, flags, PLAIN, reached)


class KafkaReader:
    """Reads a topic, from the offsets up to which the journal has its records.

    Args:
        config: The topic.
        points: Next offset of each known partition; `BEGINNING` means its first record.
        wake: Called in the reading thread when a frame was read.

    Attributes:
        frames: Frames that were read, for the event loop.
        findings: Findings that the event loop must report.
        passed: Offset at which each partition was read to its end. Aborted records and markers may precede it.
        has_caught_up: Whether each partition was read to its end once since the start. The last records may still be in
            `frames`. If the configuration has ends of partitions, the reader stops there.
        error: Exception that ended the thread.
    """

    def __init__(self, config: pb.KafkaSource, points: Mapping[int, int], wake: Callable[[], None]) -> None:
        self.config, self._wake = config, wake
        self._next = dict(points)
        self.frames: deque[Gathered] = deque()
        self.findings: deque[Diagnostic] = deque()
        self.passed: dict[int, int] = {}
        self.has_caught_up = False
        self.outage: Diagnostic | None = None
        self.error: Exception | None = None
        self._put_bytes = self._taken_bytes = 0  # the thread changes `_put_bytes`, the event loop `_taken_bytes`
        self._rows = FrameRecords(config)
        self._room, self._stopping = threading.Event(), threading.Event()
        self._reached: dict[int, int] = {}  # as `passed`; records before it may not be in `frames`
        self._lost: list[str] = []
        self._is_missing = False  # whether the last search for partitions found none
        self._ended: set[int] = set()
        self._ends = dict(config.ends)
        self._gone: set[int] = set()  # partitions whose next records no longer exist
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread, unless it was started."""
        if self._thread is not None:
            return
        self._thread = threading.Thread(target=self._run, name=f"kafka-{self.config.port}", daemon=True)
        self._thread.start()

    def took(self, frame: Gathered) -> None:
        """Note that the journal has a frame of this reader."""
        self._taken_bytes += frame.size
        self._room.set()

    def close(self, wait_s: float) -> None:
        """End the thread, and wait for it. The next start reads again all records that are not in the journal."""
        self._stopping.set()
        self._room.set()
        if self._thread is not None:
            self._thread.join(wait_s)

    def _run(self) -> None:
        try:
            consumer = make_consumer(
                ",".join(self.config.brokers), self.config.settings, self.config.name, self._note_loss
            )
            try:
                self._read(consumer)
            finally:
                consumer.close()
        except Exception as error:
            self.error = error
            self._wake()

    def _note_loss(self, error: Any) -> None:
        if error.code() == error._ALL_BROKERS_DOWN:
            self._lost.append(error.str())

    def _read(self, consumer: Any) -> None:
        self._assign(consumer, self._next)
        look_at = time.monotonic()
        while not (self._stopping.is_set() or (self._ends and self.has_caught_up)):
            now = time.monotonic()
            if now >= look_at:
                self._look(consumer)
                look_at = time.monotonic() + (AWAY_LOOK_S if self.outage or self._lost else LOOK_S)
            if self._put_bytes - self._taken_bytes >= AHEAD_BYTES:
                self._room.wait(POLL_S)
                self._room.clear()
                continue
            first = consumer.poll(POLL_S)
            if first is not None:
                self._take(first, consumer)
                more = consumer.consume(FRAME_MESSAGES, 0)
                for message in more:
                    self._take(message, consumer)
                self._put()
                if len(more) < FRAME_MESSAGES:
                    self._stopping.wait(GATHER_S)
            if self._gone:
                self._begin_again(consumer)

    def _begin_again(self, consumer: Any) -> None:
        """Move partitions whose next records no longer exist to their current beginning or end."""
        from confluent_kafka import KafkaException, TopicPartition

        places = {number: TopicPartition(self.config.topic, number) for number in sorted(self._gone)}
        with contextlib.suppress(KafkaException):  # brokers do not answer: try again
            bounds = {number: consumer.get_watermark_offsets(at, LOOK_ANSWER_S) for number, at in places.items()}
            consumer.incremental_unassign([*places.values()])
            points = {number: ends[self.config.reset == "end"] for number, ends in bounds.items()}
            self._assign(consumer, points)
            self._next |= points
            self._put()
            self.passed.clear()
            self._gone.clear()

    def _assign(self, consumer: Any, points: Mapping[int, int]) -> None:
        from confluent_kafka import TopicPartition

        topic = self.config.topic
        consumer.incremental_assign([TopicPartition(topic, number, point) for number, point in points.items()])

    def _look(self, consumer: Any) -> None:
        """Look for lost brokers, a missing topic, and new partitions."""
        if self._lost or self.outage:
            self._lost.clear()  # brokers also close connections that were idle for long
            if reason := silence_of(self.config.brokers):
                self._tell_outage(reason)
                return
        numbers = self._partitions(consumer)
        if not numbers:
            return
        self.outage, self._is_missing = None, False
        new = {} if self.config.chosen else {number: BEGINNING for number in numbers if number not in self._next}
        if new:
            self._next |= new
            self._assign(consumer, new)

    def _partitions(self, consumer: Any) -> list[int]:
        """Return the partitions of the topic; empty if none are found, which is an outage at the second time."""
        from confluent_kafka import KafkaException

        try:
            topic = consumer.list_topics(self.config.topic, LOOK_ANSWER_S).topics.get(self.config.topic)
            if topic is not None and topic.error is None:
                return list(topic.partitions)
            reason = f"it has no topic {self.config.topic}"
        except KafkaException as error:
            reason = error.args[0].str()
            self._lost.append(reason)
        if self._is_missing:  # a topic that is new or has just lost its leader may be missing for a moment
            self._tell_outage(reason)
        self._is_missing = True
        return []

    def _take(self, message: Any, consumer: Any) -> None:
        error = message.error()
        if error is not None:
            self._heed(error, message, consumer)
            return
        if (letter := self._rows.add(message)) is not None:
            self._put(letter)
        self._next[message.partition()] = message.offset() + 1
        self.outage = None
        if self._rows.is_full:
            self._put()
        end = self._ends.get(message.partition())
        if end is not None and message.offset() + 1 >= end:
            self._end(message.partition())

    def _end(self, partition: int) -> None:
        """Note that a partition was read to its end."""
        self._ended.add(partition)
        if not self.has_caught_up and self._ended >= (self._ends or self._next).keys():
            self._put()
            self.has_caught_up = True
            self._wake()

    def _heed(self, error: Any, message: Any, consumer: Any) -> None:
        if error.code() == error._PARTITION_EOF:
            self._reached[message.partition()] = message.offset()
            self._end(message.partition())
        elif error.code() == error._AUTO_OFFSET_RESET:
            self._put()
            partition = message.partition()
            offset = self._next.get(partition, message.offset())
            lost = Diagnostic.of(
                "R792", source=self.config.name, topic=self.config.topic, partition=partition, offset=offset,
                reason=self._why_lost(consumer, partition, offset) or error.str(),
            )  # fmt: skip
            if not self.config.reset:
                raise RunError([lost])
            self._gone.add(partition)
            self.findings.append(lost)
        else:
            self._tell_outage(error.str())

    def _why_lost(self, consumer: Any, partition: int, offset: int) -> str:
        """Return the number of lost records, in words; empty if the brokers do not answer."""
        from confluent_kafka import KafkaException, TopicPartition

        with contextlib.suppress(KafkaException):
            topic_partition = TopicPartition(self.config.topic, partition)
            return why_lost(offset, *consumer.get_watermark_offsets(topic_partition, LOOK_ANSWER_S))
        return ""

    def _put(self, letter: Gathered | None = None) -> None:
        for frame in filter(None, (self._rows.frame(), letter)):
            self._rows = FrameRecords(self.config)
            self._put_bytes += frame.size
            self.frames.append(frame)
            self._wake()
        self.passed.update(self._reached)
        self._reached.clear()

    def _tell_outage(self, reason: str) -> None:
        if self.outage is None:
            brokers = ",".join(self.config.brokers)
            self.outage = Diagnostic.of("R791", source=self.config.name, brokers=brokers, reason=reason)
            self.findings.append(self.outage)
            self._wake()
