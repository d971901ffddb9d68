"""Writes the records of one Kafka sink, and finds out whether an error of Kafka is an outage or a lasting refusal."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

from wallaroo.diagnostic.fault import reach
from wallaroo.message.kafka_record import has_time, too_large
from wallaroo_runtime.kafka.client import option_refused, silence_of
from wallaroo_runtime.kafka.producer import DEFAULTS, FIXED, LIMIT, keeps_order, producer_settings, reader_settings
from wallaroo_runtime.kafka.topic import SET_CLOCKS, RecordLimits, batch_settings, record_limits
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.position import SinkPosition
from wallaroo_runtime.storage.outbox.sink_record import RecordColumns, SinkRecord

ANSWER_S, POLL_S = 15.0, 0.05
LOOK_S, LOOK_ANSWER_S = 0.5, 5.0  # time between two checks for an outage during a call, and deadline of the answer
POLL_RECORDS = 500
RECORD_BYTES = 100  # more than the size of a record without key and value
LARGE = "a record of"  # the reason of a refusal begins with this if a record is too large
ANY_PARTITION = 1 << 31
UNKNOWN = -1  # number of a record that is not known
# Errors that stay after a retry.
OF_TIME, OF_SIZE = "INVALID_TIMESTAMP", "MSG_SIZE_TOO_LARGE"
OF_RECORD = (
    *(OF_SIZE, "INVALID_RECORD", OF_TIME, "_UNKNOWN_PARTITION"),
    *("UNSUPPORTED_FOR_MESSAGE_FORMAT", "_INVALID_ARG"),
)
LASTING = (
    *OF_RECORD,
    "RECORD_LIST_TOO_LARGE",
    *("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED"),
    *("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "_UNSUPPORTED_FEATURE", "UNSUPPORTED_VERSION", "_AUTHENTICATION"),
    *("SASL_AUTHENTICATION_FAILED", "INVALID_TRANSACTION_TIMEOUT"),
)
FENCED = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "TRANSACTION_COORDINATOR_FENCED")
NO_TOPIC = ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC")
CREATE_TOPIC = "the topic, e.g. with `wallaroo topics create`"  # ends the outage


class Unavailable(OSError):
    """Kafka cannot be used now. It may have written some of the last records.

    Attributes:
        fix: What the user must provide; empty for brokers that answer.
    """

    def __init__(self, reason: str, fix: str = "") -> None:
        super().__init__(reason)
        self.fix = fix


class KafkaRefusal(Exception):
    """Kafka refuses some records, or the whole session, and a retry does not help.

    Attributes:
        is_fenced: Whether the reason is another session of the same name.
        is_too_large: Whether the first refused record is too large.
        numbers: Reason for each refused record, by its number from 0; empty if the refused record is not known.
    """

    def __init__(
        self, why: str, *, is_fenced: bool = False, is_too_large: bool = False, numbers: Mapping[int, str] | None = None
    ) -> None:
        super().__init__(why)
        self.is_fenced, self.is_too_large, self.numbers = is_fenced, is_too_large, numbers or {}


class RecordPart(NamedTuple):
    """Some consecutive records of one call of `write`.

    Attributes:
        begin: Number of the first record within the call.
        is_plain: Whether the records have only keys and values, and the topic surely takes them.
    """

    begin: int
    columns: RecordColumns
    is_plain: bool


class ProducerSession:
    """A producer for one sink, used until the first outage. The next session may write some records again.

    Args:
        target: `brokers`, `topic` and `options` of the sink.
        sink: Name of the sink, for errors.

    Attributes:
        position: Position that Kafka has for this sink; None if Kafka has no position.

    Raises:
        Unavailable: No broker answers now.
        KafkaRefusal: Kafka refuses the session, and a retry does not mend that.
        RunError: R716 if the client does not accept an option.
    """

    def __init__(self, client: Any, target: pb.KafkaTopic, sink: str) -> None:
        self._client, self._topic, self._failed = client, target.topic, list[tuple[int, Any]]()
        self._brokers, self._lost, self._are_whole = list(target.brokers), list[Any](), target.records
        self._check_answer()
        self._settings = producer_settings(target.brokers, target.options)
        self._limits = record_limits(reader_settings(self._settings), target.topic)
        self._limit, self._knows_limits = self._limits.max_bytes, self._limits != RecordLimits()
        with suppress(ValueError):  # the client itself refuses a value that is not a number
            given = int(self._settings.get(LIMIT, self._limit))
            self._limit = min(self._limit, given) if self._knows_limits else given
            self._settings |= batch_settings(self._limit)
        self.position: SinkPosition | None = None
        self._partitions = 0  # number of partitions of the topic; 0 until a record needs it
        self._alone = set[int]()  # numbers of records that are in a batch of their own
        self._delivered = self._noting()
        try:
            self._open()
        except (client.KafkaException, TypeError, ValueError) as error:
            part, use = f'sink "{sink}"', "confluent_kafka writes"
            raise option_refused(part, use, error) from error

    def _open(self) -> None:
        self._producer = self._made({"enable.idempotence": keeps_order(self._settings), **self._settings})

    def _made(self, settings: Mapping[str, Any]) -> Any:
        callbacks = {"on_delivery": partial(self._delivered, UNKNOWN), "error_cb": self._noting_loss()}
        return self._client.Producer({**DEFAULTS, **settings, **FIXED, **callbacks})

    @contextmanager
    def _judged(self) -> Any:
        """Turn Kafka's errors in the `with` block into `Unavailable` or `KafkaRefusal`."""
        try:
            yield
        except self._client.KafkaException as error:
            errors = [error.args[0]]
            try:
                self._producer.flush(0 if self._refused() else LOOK_S)  # takes the reports of records
            except self._client.KafkaException as fatal:
                errors.append(fatal.args[0])
            # A record's own error says more than the error of the transaction.
            raise self._judge([*(failed for _, failed in self._failed), *errors]) from error

    def _judge(self, errors: list[Any]) -> Unavailable | KafkaRefusal:
        def first(*names: str) -> Any:
            return next((error for error in errors if error.name() in names), None)

        if error := first(*FENCED):
            return KafkaRefusal(error.str(), is_fenced=True)
        # `_check` refuses the times of the data by the clock of this machine, if the user may read the topic's limits.
        if (of_time := first(OF_TIME)) and (not self._are_whole or self._knows_limits):
            now = time.strftime("this machine's clock says %Y-%m-%d %H:%M:%S UTC", time.gmtime())
            return Unavailable(f"topic {self._topic} refuses the time of a record; {of_time.str()}; {now}", SET_CLOCKS)
        if error := first(*LASTING):
            numbers = self._refused()
            if UNKNOWN in numbers or (len(numbers) > 1 and not numbers <= self._alone) or error.name() not in OF_RECORD:
                numbers = set()  # a batch was refused because of an unknown record in it
            reason = error.str() + (" (a wrong time in the data, or wrong clocks)" if of_time else "")
            return KafkaRefusal(reason, is_too_large=error.name() == OF_SIZE, numbers=dict.fromkeys(numbers, reason))
        if first(*NO_TOPIC):
            return Unavailable(f"it has no topic {self._topic}", CREATE_TOPIC)
        return Unavailable(errors[0].str())

    def _check_answer(self) -> None:
        if reason := silence_of(self._brokers):
            raise Unavailable(reason)

    def look(self) -> None:
        """Check for an outage. The client notices it even if there is nothing to write.

        Raises:
            Unavailable: All connections were lost, and no broker accepts a new connection, or none answers.
        """
        self._producer.poll(0)
        if self._lost:
            self._lost.clear()  # brokers also close connections that were idle for long
            self._check_answer()
            with self._judged():
                self._producer.list_topics(self._topic, LOOK_ANSWER_S)

    def write(self, records: Iterable[RecordColumns], end: SinkPosition, without: Collection[int] = ()) -> None:
        """Write records to the topic, and return when Kafka has them.

        Args:
            records: All records up to `end`, in parts.
            end: Position after the records.
            without: Numbers of records to leave out.

        Raises:
            Unavailable: Kafka takes no records now; it may have some of these records.
            KafkaRefusal: Kafka refuses some of the records.
        """
        parts, left_out = list(self._parts(records)), without or None
        self._check(parts, without)
        self._alone.clear()
        while True:
            self._failed.clear()
            try:
                with self._judged():
                    return self._write(parts, end, left_out)
            except KafkaRefusal as error:
                suspects = self._refused() - self._alone
                if error.is_fenced:
                    raise
                self._undo()
                if left_out is not None and (error.numbers or not suspects):
                    raise
                self._alone |= suspects if left_out is not None else set()
                left_out = without

    def _refused(self) -> set[int]:
        """Return the numbers of the records for which brokers refused a whole batch; `UNKNOWN` if one has no number."""
        return {number for number, failed in self._failed if failed.name() in OF_RECORD}

    def _check(self, parts: Sequence[RecordPart], without: Collection[int]) -> None:
        """Find records that the topic's limits exclude, before the records are written.

        Raises:
            KafkaRefusal: There are such records.
            Unavailable: The topic has other limits now.
        """
        reasons, is_too_large = dict[int, str](), False
        for part in parts:
            for number, record in () if part.is_plain else enumerate(part.columns.records(), part.begin):
                if number not in without and (reason := self._refusal(record)):
                    is_too_large |= not reasons and reason.startswith(LARGE)
                    reasons[number] = reason
        if reasons:
            if record_limits(reader_settings(self._settings), self._topic) != self._limits:
                raise Unavailable("")  # the topic was changed: a new session reads its limits; there is no outage
            raise KafkaRefusal(reasons[min(reasons)], is_too_large=is_too_large, numbers=reasons)

    def _write(self, parts: Sequence[RecordPart], _: SinkPosition, without: Collection[int] | None) -> None:
        self._produce_all(parts, without)
        reach("egress.kafka_produced")
        while self._producer.flush(LOOK_S):
            self.look()
        if self._failed:
            raise self._client.KafkaException(self._failed[0][1])

    def _undo(self) -> None:
        """End a failed write, so that no record of it is in flight."""
        self._producer.flush(ANSWER_S)

    def _produce_all(self, parts: Sequence[RecordPart], without: Collection[int] | None) -> None:
        """Give the records to the client, except those whose numbers are in `without`.

        If it is None, records of plain parts are given without their numbers, which costs less. Then it is not known
        which of these records Kafka refuses.
        """
        for part in parts:
            self._producer.poll(0)
            if without is None and part.is_plain:
                self._queue_plain(part.columns)
                continue
            for number, record in enumerate(part.columns.records(), part.begin):
                if number in self._alone:
                    self._producer.flush(ANSWER_S)
                if number not in (without or ()):
                    self._produce(record, number)
                if number in self._alone or number == 0 and without is not None:
                    self._producer.flush(ANSWER_S)  # a broker that refuses a batch does not name the record

    def _parts(self, records: Iterable[RecordColumns]) -> Iterator[RecordPart]:
        """Yield the records in small parts: the client must be polled after each part."""
        begin = 0
        for columns in records:
            size = len(columns.values)
            for at in range(0, size, POLL_RECORDS):
                part = columns.part(at, at + POLL_RECORDS)
                yield RecordPart(begin + at, part, self._is_plain(part))
            begin += size

    def _is_plain(self, part: RecordColumns) -> bool:
        """Return whether records have only keys and values, and are within the topic's limits."""
        values, keys, partitions, headers, times = part
        size = sum(map(len, filter(None, keys))) + sum(map(len, filter(None, values)))
        is_taken = size + RECORD_BYTES * len(values) <= self._limit
        lacks_key = self._limits.needs_key and (not keys or None in keys)
        return is_taken and not lacks_key and not any(headers) and not any(times) and set(partitions) <= {None}

    def _produce(self, record: SinkRecord, number: int) -> None:
        more: dict[str, Any] = {} if record.partition is None else {"partition": record.partition}
        if record.headers:
            more["headers"] = list(record.headers)
        if has_time(record.timestamp_ms):
            more["timestamp"] = record.timestamp_ms
        try:
            self._queue(record, on_delivery=partial(self._delivered, number), **more)
        except self._client.KafkaException as error:
            self._failed.append((number, error.args[0]))
            raise

    def _queue_plain(self, part: RecordColumns) -> None:
        """Give records with only key and value to the client, without a callback for each: that halves the CPU time."""
        produce, topic = self._producer.produce, self._topic
        for value, key in zip(part.values, part.keys or repeat(None), strict=False):
            try:
                produce(topic, value, key)
            except BufferError:
                self._queue(SinkRecord(key, value, None))

    def _queue(self, record: SinkRecord, **more: Any) -> None:
        """Give a record to the client, and wait until the client has room for it."""
        while True:
            try:
                self._producer.produce(self._topic, record.value, record.key, **more)
            except BufferError:
                self._producer.poll(POLL_S)
            else:
                return
            if self._failed:
                raise self._client.KafkaException(self._failed[0][1])

    def _refusal(self, record: SinkRecord) -> str:
        """Return why the topic can never take a record; empty if it can. Brokers would refuse the whole batch."""
        if size := too_large(self._limit, record.key, record.value, record.headers):
            return f"{LARGE} {size} bytes; {self._limit} bytes are possible, with key, headers and batch"
        if record.partition is not None and record.partition >= self._partitions:
            self._partitions = self._count_partitions()
            if record.partition >= self._partitions:
                return f"it has no partition {record.partition}, but 0 to {self._partitions - 1}"
        if self._limits.needs_key and record.key is None:
            return "it is compacted, and the record has no key"
        if has_time(record.timestamp_ms):
            return self._limits.refusal_of_time(record.timestamp_ms, time.time_ns() // 1_000_000)
        return ""

    def _count_partitions(self) -> int:
        """Return the topic's number of partitions; if it is unknown, a high number, so that the brokers check."""
        with suppress(self._client.KafkaException):
            metadata = self._producer.list_topics(self._topic, ANSWER_S).topics.get(self._topic)
            if metadata is not None and metadata.error is None and metadata.partitions:
                return len(metadata.partitions)
        return ANY_PARTITION

    def _noting(self) -> Callable[[int, Any, Any], None]:
        """Return a callback for failed records. It does not refer to this session, because the client keeps it."""
        failed, codes = self._failed, self._client.KafkaError
        # The other records of a refused batch, and purged records, get these errors.
        followers = {codes._PURGE_QUEUE, getattr(codes, "_INVALID_DIFFERENT_RECORD", codes._PURGE_QUEUE)}

        def delivered(number: int, error: Any, _: Any) -> None:
            if error is not None and error.code() not in followers:
                failed.append((number, error))

        return delivered

    def _noting_loss(self) -> Callable[[Any], None]:
        """Return a callback for the loss of all connections. It does not refer to this session, either."""
        lost, code = self._lost, self._client.KafkaError._ALL_BROKERS_DOWN

        def failed(error: Any) -> None:
            if error.code() == code:
                lost.append(error)

        return failed

    def close(self) -> None:
        """Close the producer, and drop the records that are not written."""
        with suppress(self._client.KafkaException):  # the same error as led to this call, which was reported
            self._producer.purge()
            self._producer.poll(0)
        del self._producer  # otherwise the producer's threads would keep trying
