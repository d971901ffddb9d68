"""Calls Kafka with the package confluent_kafka (librdkafka), which starts in milliseconds, unlike Kafka's tools."""

import socket
import time
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import TimeoutError as NoAnswerError  # another class than the built-in one before Python 3.11
from contextlib import contextmanager
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, TypeVar

from wallaroo.diagnostic.diagnostic import Diagnostic, did_you_mean
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.kafka.identity import id_of

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient, ClusterMetadata

FIRST_S, CONNECT_S, ANSWER_S, RETRY_S = 1.0, 5.0, 20.0, 0.1
EARLIEST, LATEST = -2, -1
MOST_RECEIVED = (1 << 31) - 1  # of consumers: with librdkafka's limit, records of 100 MB would look like an outage
ACCESS = "correct user, password, certificate or mechanism in the options, or permit the access with the broker's ACLs"
CORRECT = "correct what it names, and try again"
T = TypeVar("T")

# Settings of Kafka's Java client, as errors of librdkafka name them, with librdkafka's settings; empty if it has none.
_COUNTERPARTS = {
    '"buffer.memory"': "queue.buffering.max.kbytes",
    '"default.api.timeout.ms"': "socket.timeout.ms",
    '"max.block.ms"': "",
    '"partitioner.class"': "partitioner",
    '"receive.buffer.bytes"': "socket.receive.buffer.bytes",
    '"send.buffer.bytes"': "socket.send.buffer.bytes",
    '"ssl.keystore.certificate.chain"': "ssl.certificate.pem",
    '"ssl.keystore.key"': "ssl.key.pem",
    '"ssl.keystore.type"': "",
    '"ssl.truststore.certificates"': "ssl.ca.pem",
    '"ssl.truststore.type"': "",
    "Java JAAS": "sasl.username and kafka.sasl.password",
}


def kafka_client(what: str) -> Any:
    """Return the package confluent_kafka.

    Args:
        what: Part or command that needs the package, for the error.

    Raises:
        RunError: R728 if it is not installed.
    """
    try:
        import confluent_kafka
    except ImportError as error:
        install = "'wallaroo-spark-runtime[kafka]'"
        raise RunError([Diagnostic.no_package(what, "confluent_kafka", error, install)], USAGE) from error
    return confluent_kafka


def option_refused(part: str, use: str, error: Exception) -> RunError:
    """Return the error for an option that librdkafka refuses (R716).

    Args:
        part: Kind and name of the source or sink that has the option.
        use: Purpose for which the source or sink uses confluent_kafka.
        error: Error of confluent_kafka.
    """
    reason = str(error.args[0].str() if hasattr(error.args[0], "str") else error)
    fix = f"give settings that librdkafka knows: {use}"
    if (instead := next((_COUNTERPARTS[each] for each in _COUNTERPARTS if each in reason), None)) is not None:
        what = f"give kafka.{instead} in its place" if instead else "leave it out"
        fix = f"{what}: it is a setting of Kafka's client in Java; {use}, with librdkafka"
    return RunError.of("R716", USAGE, what=f"an option of {part}", reason=reason, fix=fix)


class Cluster:
    """Asks Kafka's brokers for topics, partitions and offsets, and turns Kafka's errors into errors for the user.

    Args:
        brokers: HOST:PORT of some brokers.
        what: Part or command that needs the cluster, for errors.

    Raises:
        RunError: R672 if no broker accepts a connection; R728 if confluent_kafka is not installed.
    """

    def __init__(self, brokers: Sequence[str], options: Mapping[str, str], what: str = "wallaroo topics") -> None:
        self.kafka = kafka_client(what)
        codes = self.kafka.KafkaError
        # For a moment, new topics have no leaders, and brokers without a consumer group have no coordinator.
        self.passing = (
            *(codes.NOT_LEADER_FOR_PARTITION, codes.LEADER_NOT_AVAILABLE, codes.NOT_COORDINATOR),
            *(codes.COORDINATOR_NOT_AVAILABLE, codes.COORDINATOR_LOAD_IN_PROGRESS),
        )
        self._silent = codes._TRANSPORT, codes._ALL_BROKERS_DOWN, codes._TIMED_OUT, codes._RESOLVE
        self._access = codes._AUTHENTICATION, codes._SSL
        self._noted: deque[KafkaError] = deque(maxlen=100)  # errors of connections
        self.what, self.name = what, ",".join(brokers)
        check_answer(brokers, what)
        # The client's log on stderr repeats its errors.
        own = {"bootstrap.servers": self.name, "log_level": 0, "error_cb": self._noted.append}
        self.settings: dict[str, Any] = {**own, **options}

    @contextmanager
    def translated(self, fix: str = CORRECT) -> Iterator[None]:
        """Turn Kafka's errors in the `with` block into the errors of `refused`; `fix` is the remedy of R727."""
        self._noted.clear()
        try:
            yield
        except self.kafka.KafkaException as error:
            raise self.refused(error.args[0], fix) from error
        except NoAnswerError as error:
            raise self._unanswered(reason="no answer in time") from error

    def refused(self, error: "KafkaError", fix: str) -> RunError:
        """Return the `RunError` for an error of Kafka: R672 if no broker answers, else R727 with the remedy `fix`."""
        codes = self.kafka.KafkaError
        is_silent = error.code() in self._silent
        if is_silent:  # a connection's error has the reason
            error = next((each for each in self._noted if each.code() in self._access), next(iter(self._noted), error))
        if error.code() in self._access:
            fix = ACCESS
        elif is_silent or error.code() in self.passing:
            return self._unanswered(error.str())
        elif error.code() == codes.INVALID_RECORD:
            fix = "give each record a key, if the topic is compacted"
        return RunError.of("R727", USAGE, what=self.what, brokers=self.name, reason=error.str(), fix=fix)

    def _unanswered(self, reason: str) -> RunError:
        return RunError.of("R672", what=self.what, brokers=self.name, reason=reason)

    def admin(self) -> "AdminClient":
        """Return a client that creates and describes topics."""
        from confluent_kafka.admin import AdminClient

        with self.translated():
            return AdminClient(self.settings)

    @contextmanager
    def asking(self) -> "Iterator[AdminClient]":
        """Yield a client that creates and describes topics. Turn its errors in the `with` block into `RunError`."""
        admin = self.admin()
        with self.translated():
            try:
                yield admin
            except self.kafka.KafkaException:
                admin.poll(0)  # notes errors of connections
                raise

    def metadata(self) -> "ClusterMetadata":
        """Return the brokers' metadata of all topics.

        Raises:
            RunError: R672 if no broker answers; R727 if a broker refuses.
        """
        patience = chain((FIRST_S,), repeat(CONNECT_S))  # the first call ends soon, since brokers may refuse access
        with self.asking() as admin:

            def answered() -> "ClusterMetadata":
                try:
                    return admin.list_topics(timeout=next(patience))  # signals wait for the end of a call
                except self.kafka.KafkaException:
                    admin.poll(0)  # notes errors of connections
                    raise

            metadata = self.retried(answered, *self._silent)
        if not metadata.brokers:  # a broker that starts or stops may answer so
            raise self._unanswered(reason="the cluster has no brokers now")
        return metadata

    def partitions(self, topic: str) -> list[int]:
        """Return the numbers of a topic's partitions.

        Raises:
            RunError: R673 if there is no such topic.
        """
        # A request with the topic's name would create the topic at brokers that create topics on demand.
        known = self.metadata().topics
        metadata = known.get(topic)
        if metadata is None:
            reason = "it does not exist" + did_you_mean(topic, known)
            raise RunError.of("R673", USAGE, topic=topic, brokers=self.name, reason=reason)
        return sorted(metadata.partitions)

    def offsets(self, topic: str, partitions: Iterable[int], kind: int) -> dict[int, int]:
        """Return the first offset of partitions (`EARLIEST`), or the offset that the next record gets (`LATEST`)."""
        return {
            number: at for (_, number), at in self.all_offsets(((topic, each) for each in partitions), kind).items()
        }

    def all_offsets(self, partitions: Iterable[tuple[str, int]], kind: int) -> dict[tuple[str, int], int]:
        """Return offsets like `offsets`, for partitions of several topics. Retry while a new topic has no leaders yet.

        Raises:
            RunError: R672 if no broker answers; R727 if a broker refuses.
        """
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec

        spec = OffsetSpec.latest() if kind == LATEST else OffsetSpec.earliest()
        asked: dict[Any, Any] = {TopicPartition(*partition): spec for partition in partitions}
        if not asked:
            return {}
        with self.asking() as admin:

            def answered() -> dict[tuple[str, int], int]:
                answers = admin.list_offsets(asked, request_timeout=ANSWER_S)
                return {(at.topic, at.partition): int(each.result(ANSWER_S).offset) for at, each in answers.items()}

            return self.retried(answered, *self.passing, self.kafka.KafkaError.UNKNOWN_TOPIC_OR_PART)

    def topic_id(self, topic: str) -> str:
        """Return the id of a topic; empty if the brokers have no ids.

        Raises:
            RunError: R672 if no broker answers; R727 if a broker refuses.
        """
        from confluent_kafka import TopicCollection

        with self.asking() as admin:
            asked = admin.describe_topics(TopicCollection([topic]), request_timeout=ANSWER_S)
            return id_of(str(asked[topic].result(ANSWER_S).topic_id))

    def has_committed(self, group: str, topic: str) -> bool:
        """Return whether a consumer group has committed offsets for a topic.

        Raises:
            RunError: R672 if no broker answers; R727 if a broker refuses.
        """
        from confluent_kafka import ConsumerGroupTopicPartitions

        asked = [ConsumerGroupTopicPartitions(group)]
        with self.asking() as admin:

            def answered() -> Any:
                answers = admin.list_consumer_group_offsets(asked, request_timeout=ANSWER_S)
                return answers[group].result(ANSWER_S).topic_partitions

            committed = self.retried(answered, *self.passing)
        return any(each.topic == topic and each.offset >= 0 for each in committed)

    def retried(self, call: Callable[[], T], *passing: int) -> T:
        """Return the result of a call. While it fails with one of the codes `passing`, repeat it for some time.

        Do not repeat it if a broker refuses access.
        """
        deadline = time.monotonic() + ANSWER_S
        while True:
            try:
                return call()
            except self.kafka.KafkaException as error:
                is_final = error.args[0].code() not in passing or self._refuses_access()
                if is_final or time.monotonic() > deadline:
                    raise
            time.sleep(RETRY_S)

    def _refuses_access(self) -> bool:
        """Return whether the last connection failed because of a wrong password, certificate or mechanism."""
        down = self.kafka.KafkaError._ALL_BROKERS_DOWN  # noted after the error of each connection
        last = next((each.code() for each in reversed(self._noted) if each.code() != down), None)
        return last in self._access


def check_answer(brokers: Sequence[str], what: str) -> None:
    """Raise an error if no broker accepts a connection. The client itself would try for long and report little.

    Args:
        brokers: HOST:PORT of each broker.
        what: Part that needs the brokers, e.g. `sink "out"`.

    Raises:
        RunError: R672 if no broker accepts a connection.
    """
    if reason := silence_of(brokers):
        raise RunError.of("R672", what=what, brokers=",".join(brokers), reason=reason)


def without_leader(topic: str, leaders: Mapping[int, int], chosen: Container[int] | None) -> str:
    """Return in words which partitions have no leader, so that nobody can read them; empty if all have one.

    Args:
        leaders: The node that leads each partition; -1 if none does.
        chosen: The partitions that are read; None for all.

    Example:
        >>> without_leader("orders", {0: 1, 1: -1, 2: -1}, None)
        'partitions 1, 2 of topic orders have no leader'
    """
    numbers = [number for number, node in sorted(leaders.items()) if node < 0 and (chosen is None or number in chosen)]
    if not numbers:
        return ""
    several = len(numbers) > 1
    what = f"partition{'s' * several} {', '.join(map(str, numbers))} of topic {topic}"
    return f"{what} {'have' if several else 'has'} no leader"


def silence_of(brokers: Sequence[str]) -> str:
    """Return in words why no broker accepts a connection; empty if at least one broker does."""
    errors: dict[str, str] = {}
    for broker in brokers:
        host, _, port = broker.rpartition("://")[2].rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S).close()
        except (OSError, ValueError, OverflowError) as error:
            errors[broker] = getattr(error, "strerror", None) or str(error)
        else:
            return ""
    return "; ".join(f"{broker}: {text}" if len(errors) > 1 else text for broker, text in errors.items())
