"""A transactional producer of Kafka, and the position that is committed with its records."""

import json
import queue
import threading
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from functools import partial
from typing import Any

from wallaroo.diagnostic.fault import reach
from wallaroo.message.kafka_record import has_time, too_large
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.kafka.client import silence_of
from wallaroo_runtime.kafka.topic import batch_settings, record_limits
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.position import Delivered
from wallaroo_runtime.storage.outbox.sink_record import SinkRecord

ANSWER_S, COMMIT_S, POLL_S = 15.0, 30.0, 0.05
LOOK_S = 0.5  # between two looks for an outage while a call is under way
POLL_RECORDS = 1000
GRACE_S = 5.0
PREFIX = "kafka."
# Names of settings in Kafka's own client, which Spark's sink has, and in this one.
LIMIT = "message.max.bytes"
RENAMED = {"max.request.size": LIMIT}
# Errors that trying again does not mend.
OF_RECORD = (
    *("MSG_SIZE_TOO_LARGE", "INVALID_RECORD", "INVALID_TIMESTAMP", "_UNKNOWN_PARTITION"),
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


class Unavailable(OSError):
    """Kafka does not take a transaction now; a new session asks it what became of the last one.

    Attributes:
        has_topic: Whether it may have the topic.
    """

    def __init__(self, reason: str, *, has_topic: bool = True) -> None:
        super().__init__(reason)
        self.has_topic = has_topic


class Lasting(Exception):
    """Kafka does not take these records, however often they are sent.

    Attributes:
        is_fenced: Whether the reason is another session of the same name.
        size: Of a record that is too large; 0: the reason is another one.
        numbers: Of the records that are refused for what they are, from 0; empty: it is not due to records.
    """

    def __init__(self, reason: str, *, is_fenced: bool, size: int = 0, numbers: Sequence[int] = ()) -> None:
        super().__init__(reason)
        self.is_fenced, self.size, self.numbers = is_fenced, size, numbers


def within(seconds: float, call: Callable[..., Any], *arguments: Any, look: Callable[[], None] = lambda: None) -> None:
    """Call a function of the client that has a timeout as its last parameter, and wait no longer than that.

    `look` is called again and again meanwhile; what it raises ends the wait.

    librdkafka may forget its own timeout: send_offsets_to_transaction has waited for ever where the connection to the
    broker broke at that moment. A call that does not return keeps its thread and its producer; the next session's
    takes the place of that one.

    Raises:
        Unavailable: It did not return.
    """
    outcome: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def work() -> None:
        try:
            call(*arguments, seconds)
        except Exception as error:
            outcome.put(error)
        else:
            outcome.put(None)

    threading.Thread(target=work, name="kafka-call", daemon=True).start()
    deadline = time.monotonic() + seconds + GRACE_S
    while (left := deadline - time.monotonic()) > 0:
        try:
            failed = outcome.get(timeout=min(LOOK_S, left))
        except queue.Empty:
            look()
            continue
        if failed is not None:
            raise failed
        return
    reason = f"the client did not answer within {seconds:g} s"
    raise Unavailable(reason)


class Session:
    """A producer whose transactions no other one of its name can mix with, and a reader of its position.

    Args:
        target: `brokers`, `topic` and `options` of the sink.
        name: Transactional id and consumer group.
        sink: Name of the sink, for errors.

    Attributes:
        position: What was committed last; None: Kafka has none.

    Raises:
        Unavailable: No broker takes transactions now.
        Lasting: None ever will.
        RunError: R716, an option is none of this client.
    """

    def __init__(self, client: Any, target: pb.KafkaTopic, name: str, sink: str) -> None:
        self._client, self._topic, self._failed = client, target.topic, list[tuple[int, Any]]()
        self._brokers, self._lost = list(target.brokers), list[Any]()
        self._check_answer()
        settings = settings_of(target, sink)
        self._limits = record_limits(_of_reader(settings), target.topic)
        self._limit = self._limits.max_bytes
        with suppress(ValueError):  # what is no number, the client refuses
            self._limit = min(self._limit, int(settings.get(LIMIT, self._limit)))
            settings |= batch_settings(self._limit)
        own = {"transactional.id": name, "enable.idempotence": True, "delivery.report.only.error": True}
        own["error_cb"] = self._noting_loss()
        try:
            self._producer = client.Producer({"partitioner": "murmur2_random", "linger.ms": 5, **settings, **own})
            self._reader = client.Consumer({**_of_reader(settings), "group.id": name, "enable.auto.commit": False})
        except client.KafkaException as error:
            fix = "give settings that librdkafka knows: with exactly_once, confluent_kafka writes"
            what = f'an option of sink "{sink}"'
            raise RunError.of("R716", USAGE, what=what, reason=error.args[0].str(), fix=fix) from error
        self._delivered = self._noting()
        with self._judged():
            # Ends what a producer of this name has left; from now on Kafka takes nothing of that one.
            within(ANSWER_S, self._producer.init_transactions)
            self._group = self._reader.consumer_group_metadata()
            (found,) = self._reader.committed([client.TopicPartition(self._topic, 0)], ANSWER_S)
        self.position = None if found.offset < 0 else Delivered(**json.loads(found.metadata), sender=name)

    @contextmanager
    def _judged(self) -> Any:
        """Turn errors of Kafka into `Unavailable` or `Lasting`."""
        try:
            yield
        except self._client.KafkaException as error:
            raise self._judge([error.args[0], *(failed for _, failed in self._failed)]) from error

    def _judge(self, errors: list[Any]) -> Unavailable | Lasting:
        of_record = self._codes(OF_RECORD)
        numbers = {number for number, error in self._failed if error.code() in of_record}
        if len(numbers) > 1:  # a broker refuses a batch for one record: which, is then not known
            numbers = set()
        for names in (FENCED, LASTING):
            known = self._codes(names)
            for error in errors:
                if error.code() in known:
                    of = sorted(numbers) if error.code() in of_record else ()
                    return Lasting(error.str(), is_fenced=names is FENCED, numbers=of)
        missing = self._codes(NO_TOPIC)
        if any(error.code() in missing for error in errors):
            return Unavailable(f"it has no topic {self._topic}", has_topic=False)
        # A record's own error says more than that of the transaction.
        return Unavailable(errors[-1].str())

    def _codes(self, names: Iterable[str]) -> set[int]:
        codes = self._client.KafkaError
        return {getattr(codes, name) for name in names if hasattr(codes, name)}

    def _check_answer(self) -> None:
        if reason := silence_of(self._brokers):
            raise Unavailable(reason)

    def look(self) -> None:
        """Notice an outage, which the client reports in its own threads, whether there is something to write or not.

        Raises:
            Unavailable: All connections were lost, and no broker takes one.
        """
        self._producer.poll(0)
        if self._lost:
            self._lost.clear()  # brokers also close what was not used for long
            self._check_answer()

    def write(self, records: Iterable[SinkRecord], end: Delivered, without: Container[int] = ()) -> None:
        """Write records, and the position after them, or nothing.

        Args:
            records: All up to the position.
            end: The position.
            without: Numbers of records that are passed over.

        Raises:
            Unavailable: It is not known whether they are there.
            Lasting: They are not.
        """
        self._failed.clear()
        try:
            with self._judged():
                self._producer.begin_transaction()
                self._produce_all(records, without)
                reach("egress.kafka_produced")
                place = self._client.TopicPartition(self._topic, 0, end.messages, metadata=_text(end))
                within(ANSWER_S, self._producer.send_offsets_to_transaction, [place], self._group, look=self.look)
                reach("egress.kafka_positioned")
                within(COMMIT_S, self._producer.commit_transaction, look=self.look)
        except Lasting:
            with suppress(
                self._client.KafkaException, Unavailable
            ):  # else readers of committed records would wait for its timeout
                within(ANSWER_S, self._producer.abort_transaction)
            raise

    def _produce_all(self, records: Iterable[SinkRecord], without: Container[int]) -> None:
        for number, record in enumerate(records):
            if number not in without:
                self._produce(record, number)
            if number % POLL_RECORDS == 0:
                self._producer.poll(0)

    def _produce(self, record: SinkRecord, number: int) -> None:
        more: dict[str, Any] = {} if record.partition is None else {"partition": record.partition}
        if record.headers:
            more["headers"] = list(record.headers)
        if has_time(record.timestamp_ms):
            more["timestamp"] = record.timestamp_ms
        if size := too_large(self._limit, record.key, record.value, record.headers):
            reason = f"{self._limit} bytes are possible, with key, headers and batch"
            raise Lasting(reason, is_fenced=False, size=size, numbers=[number])
        if reason := self._refusal(record):  # a broker would refuse a whole batch for it
            raise Lasting(reason, is_fenced=False, numbers=[number])
        while True:
            try:
                noting = partial(self._delivered, number)
                self._producer.produce(self._topic, record.value, record.key, on_delivery=noting, **more)
            except BufferError:
                self._producer.poll(POLL_S)
            except self._client.KafkaException as error:
                self._failed.append((number, error.args[0]))
                raise
            else:
                return
            if self._failed:
                raise self._client.KafkaException(self._failed[0][1])

    def _refusal(self, record: SinkRecord) -> str:
        if self._limits.needs_key and record.key is None:
            return "it is compacted, and the record has no key"
        if has_time(record.timestamp_ms):
            return self._limits.refusal_of_time(record.timestamp_ms, time.time_ns() // 1_000_000)
        return ""

    def _noting(self) -> Callable[[int, Any, Any], None]:
        """Return what notes the records that failed by themselves; it does not keep the producer alive."""
        failed, codes = self._failed, self._client.KafkaError
        # What other records of a batch get, and what is thrown away.
        followers = {codes._PURGE_QUEUE, getattr(codes, "_INVALID_DIFFERENT_RECORD", codes._PURGE_QUEUE)}

        def delivered(number: int, error: Any, _: Any) -> None:
            if error is not None and error.code() not in followers:
                failed.append((number, error))

        return delivered

    def _noting_loss(self) -> Callable[[Any], None]:
        """Return what notes that no connection is left; it does not keep the producer alive."""
        lost, code = self._lost, self._client.KafkaError._ALL_BROKERS_DOWN

        def failed(error: Any) -> None:
            if error.code() == code:
                lost.append(error)

        return failed

    def close(self) -> None:
        """Let go; what is not committed is undone by the next session."""
        with suppress(self._client.KafkaException):  # why it could not go on; that has been reported
            self._producer.purge()
            self._producer.poll(0)
        del self._producer  # else it would try to go on, and be fenced by the next one
        with suppress(self._client.KafkaException):
            self._reader.close()


def settings_of(target: pb.KafkaTopic, sink: str) -> dict[str, Any]:
    """Return settings of the client for what a sink's options say.

    Raises:
        RunError: R716, an option is none of Kafka's.

    Example:
        >>> settings_of(pb.KafkaTopic(brokers=["k:9092"], options={"kafka.max.request.size": "9000"}), "out")
        {'bootstrap.servers': 'k:9092', 'log_level': 0, 'message.max.bytes': '9000'}
    """
    settings: dict[str, Any] = {"bootstrap.servers": ",".join(target.brokers), "log_level": 0}
    for option, value in sorted(target.options.items()):
        name = option.removeprefix(PREFIX)
        if name == option:
            what, fix = f'option {option} of sink "{sink}"', "leave it out: with exactly_once, Spark does not write"
            raise RunError.of("R716", USAGE, what=what, reason=f"it does not begin with {PREFIX}", fix=fix)
        settings[RENAMED.get(name, name)] = value
    return settings


def _of_reader(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings by which a consumer reaches the same brokers."""
    kinds = ("bootstrap.", "log_level", "security.", "sasl.", "ssl.", "enable.ssl.", "client.", "socket.", "broker.")
    return {name: value for name, value in settings.items() if name.startswith(kinds)}


def _text(position: Delivered) -> str:
    value = asdict(position)
    del value["sender"]
    return json.dumps(value)
