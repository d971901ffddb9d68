"""Calls Kafka with the extra confluent_kafka, which starts in milliseconds. Kafka's own tools need seconds."""

import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.kafka.identity import id_of

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient, ClusterMetadata

CONNECT_S, ANSWER_S, RETRY_S = 5.0, 20.0, 0.1
EARLIEST, LATEST = -2, -1
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
        raise RunError.of("R728", USAGE, what=what, package="confluent_kafka", error=error, install=install) from error
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
    """A Kafka cluster that a command line or an application names.

    Args:
        brokers: HOST:PORT of some brokers.
        what: Part or command that needs the cluster, for errors.

    Raises:
        RunError: R672 if no broker accepts a connection; R728 if confluent_kafka is not installed.
    """

    def __init__(self, brokers: Sequence[str], options: Mapping[str, str], what: str = "wallaroo topics") -> None:
        self.kafka = kafka_client(what)
        codes = self.kafka.KafkaError
        self.without_leader = codes.NOT_LEADER_FOR_PARTITION, codes.LEADER_NOT_AVAILABLE  # for a moment, if it is new
        self.what, self.name = what, ",".join(brokers)
        check_answer(brokers, what)
        # The client's log on stderr repeats its errors.
        self.settings: dict[str, Any] = {"bootstrap.servers": self.name, "log_level": 0, **options}

    @contextmanager
    def translated(self, fix: str = "correct what it names, and try again") -> Iterator[None]:
        """Turn an error of Kafka in the block into the error of `refused`. `fix` is the remedy of R727."""
        try:
            yield
        except self.kafka.KafkaException as error:
            raise self.refused(error.args[0], fix) from error

    def refused(self, error: "KafkaError", fix: str) -> RunError:
        """Return the `RunError` for an error of Kafka: R672 if no broker answers, else R727."""
        codes = self.kafka.KafkaError
        if error.code() in (codes._TRANSPORT, codes._ALL_BROKERS_DOWN, codes._TIMED_OUT, codes._RESOLVE):
            return RunError.of("R672", what=self.what, brokers=self.name, reason=error.str())
        if error.code() == codes.INVALID_RECORD:
            fix = "give each record a key, if the topic is compacted"
        return RunError.of("R727", USAGE, what=self.what, brokers=self.name, reason=error.str(), fix=fix)

    def admin(self) -> "AdminClient":
        """Return a client that creates and describes topics."""
        from confluent_kafka.admin import AdminClient

        with self.translated():
            return AdminClient(self.settings)

    def metadata(self) -> "ClusterMetadata":
        """Return the brokers' metadata of all topics."""
        admin = self.admin()
        with self.translated():
            return admin.list_topics(timeout=ANSWER_S)

    def partitions(self, topic: str) -> list[int]:
        """Return the numbers of a topic's partitions.

        Raises:
            RunError: R673 if there is no such topic.
        """
        # A request with the topic's name would create the topic at brokers that create topics on demand.
        metadata = self.metadata().topics.get(topic)
        if metadata is None:
            raise RunError.of("R673", USAGE, topic=topic, brokers=self.name, reason="it does not exist")
        return sorted(metadata.partitions)

    def offsets(self, topic: str, partitions: Iterable[int], kind: int) -> dict[int, int]:
        """Return the first (`EARLIEST`) or the next (`LATEST`) offset of partitions, as `all_offsets`."""
        return {
            number: at for (_, number), at in self.all_offsets(((topic, each) for each in partitions), kind).items()
        }

    def all_offsets(self, partitions: Iterable[tuple[str, int]], kind: int) -> dict[tuple[str, int], int]:
        """Return offsets of partitions of topics. Retry until the leaders of a new topic's partitions are known.

        Raises:
            RunError: R672 if no broker answers; R727 if a broker refuses.
        """
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec

        spec = OffsetSpec.latest() if kind == LATEST else OffsetSpec.earliest()
        asked: dict[Any, Any] = {TopicPartition(*partition): spec for partition in partitions}
        if not asked:
            return {}
        admin = self.admin()

        def answered() -> dict[tuple[str, int], int]:
            answers = admin.list_offsets(asked, request_timeout=ANSWER_S)
            return {(at.topic, at.partition): int(each.result(ANSWER_S).offset) for at, each in answers.items()}

        with self.translated():
            return self.retried(answered, *self.without_leader, self.kafka.KafkaError.UNKNOWN_TOPIC_OR_PART)

    def topic_id(self, topic: str) -> str:
        """Return the id of a topic; empty if the brokers have no ids.

        Raises:
            RunError: R672 if no broker answers; R727 if a broker refuses.
        """
        from confluent_kafka import TopicCollection

        admin = self.admin()
        with self.translated():
            asked = admin.describe_topics(TopicCollection([topic]), request_timeout=ANSWER_S)
            return id_of(str(asked[topic].result(ANSWER_S).topic_id))

    def has_committed(self, group: str, topic: str) -> bool:
        """Say whether a consumer group has committed offsets for a topic.

        Raises:
            RunError: R672 if no broker answers; R727 if a broker refuses.
        """
        from confluent_kafka import ConsumerGroupTopicPartitions

        admin, codes = self.admin(), self.kafka.KafkaError

        def answered() -> Any:
            asked = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=ANSWER_S)
            return asked[group].result(ANSWER_S).topic_partitions

        # Brokers have no coordinator before their first consumer group.
        later = (codes.NOT_COORDINATOR, codes.COORDINATOR_NOT_AVAILABLE, codes.COORDINATOR_LOAD_IN_PROGRESS)
        with self.translated():
            return any(each.topic == topic and each.offset >= 0 for each in self.retried(answered, *later))

    def retried(self, call: Callable[[], T], *passing: int) -> T:
        """Return the result of a call. Repeat the call for some time while it fails with a code of `passing`."""
        deadline = time.monotonic() + ANSWER_S
        while True:
            try:
                return call()
            except self.kafka.KafkaException as error:
                if error.args[0].code() not in passing or time.monotonic() > deadline:
                    raise
            time.sleep(RETRY_S)


def check_answer(brokers: Sequence[str], what: str) -> None:
    """Refuse brokers if none accepts a connection: the client would try for a long time and report little.

    Args:
        brokers: HOST:PORT of each broker.
        what: Part that needs the brokers, e.g. `sink "out"`.

    Raises:
        RunError: R672 if no broker accepts a connection.
    """
    if reason := silence_of(brokers):
        raise RunError.of("R672", what=what, brokers=",".join(brokers), reason=reason)


def silence_of(brokers: Sequence[str]) -> str:
    """Return in words why no broker accepts a connection; empty if at least one broker does."""
    texts = {
        broker: getattr(error, "strerror", None) or str(error) for broker, error in connection_errors(brokers).items()
    }
    return "; ".join(f"{broker}: {text}" if len(texts) > 1 else text for broker, text in texts.items())


def connection_errors(brokers: Sequence[str]) -> dict[str, Exception]:
    """Return the error of each broker if no broker accepts a connection; empty if at least one does."""
    errors: dict[str, Exception] = {}
    for broker in brokers:
        host, _, port = broker.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S).close()
        except (OSError, ValueError, OverflowError) as error:
            errors[broker] = error
        else:
            return {}
    return errors
