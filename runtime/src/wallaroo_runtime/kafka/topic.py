"""Topics of a cluster: creates, lists and describes them."""

import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import TimeoutError as NoAnswerError  # another class than the built-in one before Python 3.11
from dataclasses import dataclass
from typing import Any, NamedTuple

from wallaroo.message.kafka_record import MAX_RECORD_BYTES
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.kafka.client import ANSWER_S, EARLIEST, LATEST, Cluster

MAX_PARTITIONS = 10_000
LEAST_MAX_BYTES = 1000  # the least value that the client accepts for this limit
KNOWN_S = 0.05  # between two checks for a new topic
AUTO_CREATE = "auto.create.topics.enable"
NOT_CREATED = "writes it, and the brokers create none"
ANY_TIME = (1 << 63) - 1
SET_CLOCKS = "brokers whose clocks agree with this machine's, or larger message.timestamp.*.max.ms of the topic"


@dataclass(frozen=True, slots=True)
class KafkaPartition:
    """A partition of a topic.

    Attributes:
        number: Number from 0.
        leader: Number of the broker that leads it; -1 if there is none at present.
        begin: Offset of the first record.
        end: Offset that the next record gets; records that compaction has removed are counted.
    """

    number: int
    leader: int
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic with its partitions.

    Attributes:
        settings: Settings that differ from the brokers' defaults.
    """

    name: str
    partitions: tuple[KafkaPartition, ...]
    settings: Mapping[str, str]

    @property
    def records(self) -> int:
        """Number of offsets from the first record to the end."""
        return sum(partition.end - partition.begin for partition in self.partitions)


class RecordLimits(NamedTuple):
    """The limits that a topic sets for its records.

    Attributes:
        max_bytes: Largest size of a record, with the overhead of its batch.
        needs_key: Whether the topic is compacted.
        before_ms: How many milliseconds before the present the time of a record may be.
        after_ms: How many milliseconds after the present the time of a record may be.
    """

    max_bytes: int = MAX_RECORD_BYTES
    needs_key: bool = False
    before_ms: int = ANY_TIME
    after_ms: int = ANY_TIME

    def refusal_of_time(self, timestamp_ms: int, now_ms: int) -> str:
        """Return why a topic refuses a record with this time; empty if the topic accepts the time.

        Example:
            >>> RecordLimits(after_ms=3_600_000).refusal_of_time(9_000_000, now_ms=0)
            'its time is 9000 s in the future, message.timestamp.after.max.ms is 3600000'
        """
        ahead = timestamp_ms - now_ms
        name, most, where = ("after", self.after_ms, "future") if ahead > 0 else ("before", self.before_ms, "past")
        if abs(ahead) <= most:
            return ""
        return f"its time is {abs(ahead) // 1000} s in the {where}, message.timestamp.{name}.max.ms is {most}"


def record_limits(settings: Mapping[str, Any], topic: str) -> RecordLimits:
    """Return a topic's limits for records. If the brokers do not report them, return Kafka's defaults."""
    from confluent_kafka.admin import RESOURCE_TOPIC

    if not (config := _config(settings, RESOURCE_TOPIC, topic)):
        return RecordLimits()
    # Brokers before 3.6 have one setting for both limits. Topics whose times the brokers set have no such limits.
    keeps = config["message.timestamp.type"].value == "CreateTime"
    old = config.get("message.timestamp.difference.max.ms")
    past, future = (config.get(f"message.timestamp.{way}.max.ms", old) for way in ("before", "after"))
    return RecordLimits(
        int(config["max.message.bytes"].value),
        "compact" in config["cleanup.policy"].value,
        int(past.value) if past is not None and keeps else ANY_TIME,
        int(future.value) if future is not None and keeps else ANY_TIME,
    )


def _config(settings: Mapping[str, Any], kind: Any, name: str) -> dict[str, Any]:
    """Return the settings of a topic or broker; empty if the brokers do not answer, or the user may only write."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient, ConfigResource

    resource = ConfigResource(kind, name)
    try:
        admin = AdminClient(dict(settings))  # the answer comes only while the client exists
        return dict(admin.describe_configs([resource], request_timeout=ANSWER_S)[resource].result(2 * ANSWER_S))
    except (KafkaException, NoAnswerError):
        return {}


def check_written(cluster: Cluster, topic: str) -> None:
    """Refuse a sink's topic that does not exist, if it is certain that brokers create no topics on demand.

    Raises:
        RunError: R673 if the topic is refused; R672 if the brokers do not answer.
    """
    from confluent_kafka.admin import RESOURCE_BROKER

    metadata = cluster.metadata()
    if topic not in metadata.topics:
        config = _config(cluster.settings, RESOURCE_BROKER, str(min(metadata.brokers)))
        if AUTO_CREATE in config and config[AUTO_CREATE].value == "false":
            raise RunError.of("R673", topic=topic, brokers=cluster.name, reason=f"{cluster.what} {NOT_CREATED}")


def batch_settings(limit: int) -> dict[str, Any]:
    """Return settings of a producer that keep each batch within the topic's limit. Only a single record may exceed it.

    Brokers refuse a batch that is too large, even if each of its records is small enough.

    Example:
        >>> batch_settings(5000), batch_settings(500)
        ({'message.max.bytes': 5000}, {'message.max.bytes': 1000, 'batch.num.messages': 1})
    """
    alone = {"batch.num.messages": 1} if limit < LEAST_MAX_BYTES else {}
    return {"message.max.bytes": max(limit, LEAST_MAX_BYTES)} | alone


def list_topics(cluster: Cluster, *, internal: bool = False) -> list[Topic]:
    """Return all topics, sorted by name. Kafka's own topics (`__...`) are included if `internal`."""
    topics = cluster.metadata().topics
    return _topics(cluster, sorted(name for name in topics if internal or not name.startswith("__")))


def describe_topic(cluster: Cluster, name: str) -> Topic:
    """Return a topic with its partitions and settings.

    Raises:
        RunError: R673 if there is no such topic.
    """
    cluster.partitions(name)
    return _topics(cluster, [name])[0]


def create_topic(cluster: Cluster, name: str, partitions: int, replicas: int, settings: Mapping[str, str]) -> None:
    """Create a topic, and wait until the brokers list it.

    Raises:
        RunError: R727 if the topic exists, or Kafka refuses its name or a setting.
    """
    if not ensure_topic(cluster, name, partitions, replicas, settings):
        reason = f'topic "{name}" exists already'
        fix = f"use it (`wallaroo topics describe {name}`), or give another name"
        raise RunError.of("R727", USAGE, what=cluster.what, brokers=cluster.name, reason=reason, fix=fix)


def ensure_topic(cluster: Cluster, name: str, partitions: int, replicas: int, settings: Mapping[str, str]) -> bool:
    """Create a topic unless it exists. Return whether the topic was created.

    Raises:
        RunError: R727 if Kafka refuses the name or a setting, R672 if no broker answers.
    """
    if name in cluster.metadata().topics:
        return False
    from confluent_kafka.admin import NewTopic

    topic = NewTopic(name, partitions, replicas, config=dict(settings))
    with cluster.asking() as admin:
        try:
            admin.create_topics([topic], operation_timeout=ANSWER_S)[name].result(2 * ANSWER_S)
        except cluster.kafka.KafkaException as error:
            if error.args[0].code() == cluster.kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                return False  # another run was faster
            raise
    _wait_known(cluster, name, partitions)
    return True


def _wait_known(cluster: Cluster, name: str, partitions: int) -> None:
    """Wait until the brokers list a new topic. They list it a moment after they have confirmed its creation."""
    deadline = time.monotonic() + ANSWER_S
    while (metadata := cluster.metadata().topics.get(name)) is None or len(metadata.partitions) < partitions:
        if time.monotonic() > deadline:
            reason = f'topic "{name}" was created, and is not to be seen {ANSWER_S:g} s later'
            raise RunError.of("R672", what=cluster.what, brokers=cluster.name, reason=reason)
        time.sleep(KNOWN_S)


def _topics(cluster: Cluster, names: Iterable[str]) -> list[Topic]:
    metadata = cluster.metadata().topics
    known = {name: metadata[name].partitions for name in names if name in metadata}
    places = [(name, number) for name, parts in known.items() for number in parts]
    ends = [cluster.all_offsets(places, kind) for kind in (EARLIEST, LATEST)]
    settings = _settings(cluster, list(known))
    return [
        Topic(
            name,
            tuple(
                KafkaPartition(number, parts[number].leader, ends[0][name, number], ends[1][name, number])
                for number in sorted(parts)
            ),
            settings[name],
        )
        for name, parts in known.items()
    ]


def _settings(cluster: Cluster, names: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the settings of topics that differ from the brokers' defaults."""
    from confluent_kafka.admin import ConfigResource, ConfigSource

    asked = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
    chosen = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    with cluster.asking() as admin:
        answers = admin.describe_configs(asked, request_timeout=ANSWER_S) if names else {}
        return {
            topic.name: {name: entry.value for name, entry in sorted(answer.result().items()) if entry.source == chosen}
            for topic, answer in answers.items()
        }
