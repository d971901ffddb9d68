"""Reads one topic of Kafka in a thread, and turns the records into frames for the journal."""

import codecs
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.frame import DEAD_LETTER_PORT, PLAIN, encode_body
from wallaroo.worker._proto.worker_pb2 import DeadLetter, Origin
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.intake import Gathered
from wallaroo_runtime.gateway.source_progress import POINT_HEADER, point_headers
from wallaroo_runtime.kafka.client import silence_of, without_leader
from wallaroo_runtime.kafka.consumer import make_consumer
from wallaroo_runtime.kafka.frame import (
    FRAME_MESSAGES,
    MESSAGE_BYTES,
    ORIGIN_KEY_BYTES,
    columns_of,
    encode_headers,
    whole_value,
)
from wallaroo_runtime.kafka.offset import why_lost
from wallaroo_runtime.service._proto import service_pb2 as pb

FRAME_BYTES = 256 * 1024
AHEAD_BYTES = 4 * 1024 * 1024  # limit for bytes that are read and not yet in the journal
POLL_S = 0.2
LOOK_S, LOOK_ANSWER_S = 5.0, 5.0  # time between searches for new partitions, and deadline of the brokers' answer
AWAY_LOOK_S = 1.0
GATHER_S = 0.01  # while records come one by one, a frame has those of so many seconds; each frame costs CPU time
BEGINNING = 0  # of an added partition: if its first records are gone, they are lost records
PREVIEW_BYTES = 80  # of the value, in the dead letter of a record that is too large
_NAME = POINT_HEADER.decode()


class FrameRecords:
    """Makes frames from records of a topic. It handles keys, values and times as columns, to save CPU time.

    A run is messages of one partition with consecutive offsets. Its last message has the next offset as a header, so
    all offsets of the run are known.

    Args:
        config: The topic.
        records: The records, in the order in which they were read.
    """

    def __init__(self, config: pb.KafkaSource, records: Sequence[Any]) -> None:
        self._config, self._records = config, records
        self._read_ms = 0 if config.table else time.time_ns() // 1_000_000
        self._keys: list[bytes | None] = [record.key() for record in records]
        self._values: list[bytes | None] = [record.value() for record in records]
        self._times: list[int] = [record.timestamp()[1] for record in records]
        self._partitions: list[int] = [record.partition() for record in records]
        self._offsets: list[int] = [record.offset() for record in records]
        headers = [record.headers() for record in records]
        if config.records:
            columns = zip(self._partitions, self._offsets, self._keys, self._values, self._times, headers, strict=True)
            self._values = [
                whole_value(config.topic, *place, key=key, value=value, timestamp_ms=time_ms, headers=pairs or ())
                for *place, key, value, time_ms, pairs in columns
            ]
            self._headers = [b""] * len(records)
        else:  # leave out the record's header that has the name of the runtime's own header
            self._headers = [
                encode_headers(pair for pair in pairs if pair[0] != _NAME) if pairs else b"" for pairs in headers
            ]

    def _sizes(self) -> list[int]:
        """Return the size of each record, to compare it with the limit in the topology."""
        if self._config.records:
            return [len(value or b"") for value in self._values]
        columns = zip(self._values, self._keys, self._headers, strict=True)
        return [len(value or b"") + len(key or b"") + len(headers) for value, key, headers in columns]

    def frames(self) -> Iterator[Gathered]:
        """Yield frames with the records. A record that is larger than the topology allows becomes a dead letter."""
        begin, total, limit = 0, 0, self._config.max_message_bytes
        for at, size in enumerate(self._sizes()):
            is_large = size > limit
            total += size + MESSAGE_BYTES
            if is_large or total >= FRAME_BYTES or at - begin + 1 >= FRAME_MESSAGES:
                end = at if is_large else at + 1
                if begin < end:
                    yield self._frame(begin, end)
                if is_large:
                    yield self._letter(at, f"a record of {size:,} bytes; at most {limit:,} are taken")
                begin, total = at + 1, 0
        if begin < len(self._records):
            yield self._frame(begin, len(self._records))

    def _frame(self, begin: int, end: int) -> Gathered:
        """Return the frame with the records from index `begin` to before `end`."""
        partitions, offsets = self._partitions[begin:end], self._offsets[begin:end]
        nexts = zip(partitions, offsets, partitions[1:], offsets[1:], strict=False)
        lasts = [at for at, (of, offset, to, next) in enumerate(nexts) if to != of or next != offset + 1]
        runs = [(partitions[at], (at, offsets[at] + 1)) for at in (*lasts, end - begin - 1)]
        points = point_headers(end - begin, runs)
        headers = [own + point for own, point in zip(self._headers[begin:end], points, strict=True)]
        earliest, columns = columns_of(self._values[begin:end], self._keys[begin:end], self._times[begin:end], headers)
        flags, parts = encode_body(columns.pop("values"), **columns)
        port, reached = self._config.port, {(self._config.port, partition): last for partition, (_, last) in runs}
        size = sum(map(len, parts))
        return Gathered(port, earliest, end - begin, size, parts, flags, PLAIN, reached, self._read_ms)

    def _letter(self, at: int, error: str) -> Gathered:
        """Return a frame with the dead letter of a record that is too large: the same as `LargeRow.java` makes.

        It has the record's place in the topic, and the beginning of its value.
        """
        config, partition, offset, time_ms = self._config, self._partitions[at], self._offsets[at], self._times[at]
        key, value = (self._keys[at] or b"")[:ORIGIN_KEY_BYTES], (self._records[at].value() or b"")[:PREVIEW_BYTES]
        letter = DeadLetter(
            code="R606", path=config.path, step=config.name, port=config.port, sequence=offset, timestamp_ms=time_ms,
            error=error, preview=codecs.getincrementaldecoder("utf-8")("replace").decode(value),
            origin=Origin(source=config.name, topic=config.topic, partition=partition, offset=offset, key=key),
        )  # fmt: skip
        flags, parts = encode_body([letter.SerializeToString()])
        reached = {(config.port, partition): offset + 1}
        return Gathered(DEAD_LETTER_PORT, time_ms, 1, sum(map(len, parts)), parts, flags, PLAIN, reached)


class KafkaReader:
    """Reads a topic in a thread, from the first records that the journal does not have.

    Args:
        config: The topic.
        points: Next offset of each known partition; an added partition begins at `BEGINNING`.
        wake: Called in the reading thread when a frame was read.

    Attributes:
        frames: Frames that were read, for the event loop.
        findings: Findings that the event loop must report.
        passed: Offset at which each partition was read to its end. Aborted records and markers may precede it.
        outage: Why Kafka gives no records of some partitions now; None if it does.
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
        self._room, self._stopping = threading.Event(), threading.Event()
        self._reached: dict[int, int] = {}  # as `passed`; records before it may not be in `frames`
        self._lost: list[str] = []
        self._is_missing = False  # whether the last search found no partitions, or some without a leader
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
        """Note that the journal has a frame of this reader. So the reader may read further records."""
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
                more = consumer.consume(FRAME_MESSAGES, 0)
                self._take([first, *more], consumer)
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
        new = {} if self.config.chosen else {number: BEGINNING for number in numbers if number not in self._next}
        if new:
            self._next |= new
            self._assign(consumer, new)

    def _partitions(self, consumer: Any) -> list[int]:
        """Return the partitions of the topic; empty if none are found.

        If two searches in a row find no partitions, or partitions without a leader, report an outage.
        """
        from confluent_kafka import KafkaException

        numbers: list[int] = []
        try:
            topic = consumer.list_topics(self.config.topic, LOOK_ANSWER_S).topics.get(self.config.topic)
            if topic is not None and topic.error is None:
                numbers = list(topic.partitions)
                leaders = {number: partition.leader for number, partition in topic.partitions.items()}
                reason = without_leader(self.config.topic, leaders, self._next if self.config.chosen else None)
            else:
                reason = f"it has no topic {self.config.topic}"
        except KafkaException as error:
            reason = error.args[0].str()
            self._lost.append(reason)
        if not reason:
            self.outage = None
        elif self._is_missing:  # a topic that is new or has just lost its leader may be missing for a moment
            self._tell_outage(reason)
        self._is_missing = bool(reason)
        return numbers

    def _take(self, messages: Sequence[Any], consumer: Any) -> None:
        """Handle messages of the client in order: make frames of records, and react to errors."""
        begin = 0
        for at, error in enumerate([message.error() for message in messages]):
            if error is not None:
                self._put(messages[begin:at])
                self._heed(error, messages[at], consumer)
                begin = at + 1
        self._put(messages[begin:])

    def _end(self, partition: int) -> None:
        """Note that a partition was read to its end."""
        self._ended.add(partition)
        if not self.has_caught_up and self._ended >= (self._ends or self._next).keys():
            self.has_caught_up = True
            self._wake()

    def _heed(self, error: Any, message: Any, consumer: Any) -> None:
        if error.code() == error._PARTITION_EOF:
            self._reached[message.partition()] = message.offset()
            self._end(message.partition())
        elif error.code() == error._AUTO_OFFSET_RESET:
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
        """Return in words why the records from an offset on are lost; empty if the brokers do not answer."""
        from confluent_kafka import KafkaException, TopicPartition

        with contextlib.suppress(KafkaException):
            topic_partition = TopicPartition(self.config.topic, partition)
            return why_lost(offset, *consumer.get_watermark_offsets(topic_partition, LOOK_ANSWER_S))
        return ""

    def _put(self, records: Sequence[Any]) -> None:
        """Make frames of records, for the event loop."""
        for frame in FrameRecords(self.config, records).frames():
            self._put_bytes += frame.size
            self.frames.append(frame)
            self._wake()
            self._next.update((partition, point) for (_, partition), point in frame.points.items())
            if not self._is_missing:
                self.outage = None
        for partition in [each for each, end in self._ends.items() if self._next.get(each, BEGINNING) >= end]:
            self._end(partition)
        self.passed.update(self._reached)
        self._reached.clear()

    def _tell_outage(self, reason: str) -> None:
        if self.outage is None:
            brokers = ",".join(self.config.brokers)
            self.outage = Diagnostic.of("R791", source=self.config.name, brokers=brokers, reason=reason)
            self.findings.append(self.outage)
            self._wake()
