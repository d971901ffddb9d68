"""Creates the topics that an application wants created, before it reads or writes them, and checks all topics."""

from collections.abc import Callable, Iterator
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.kafka_record import connection_settings
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.errors import RunError, count
from wallaroo_runtime.kafka.client import Cluster
from wallaroo_runtime.kafka.topic import check_written, ensure_topic
from wallaroo_runtime.topology.model import KafkaSink, KafkaSource, Topology, place_of
from wallaroo_runtime.topology.secret import resolved
from wallaroo_runtime.topology.topic import TopicCreation

Warn = Callable[[Diagnostic], None]
Wanted = dict[str, tuple[KafkaSource | KafkaSink, TopicCreation]]  # topics to create, by name


def create_topics(topology: Topology, note: Callable[[str], None]) -> None:
    """Create the topics that do not exist. Existing topics stay as they are.

    Args:
        note: Gets a line for each topic that was created.

    Raises:
        RunError: R672 if no broker answers; R673 if a topic must get the settings of another topic, which is missing;
            R727 if Kafka refuses a topic; R728 if the client is not installed.
    """
    groups: dict[tuple[str, ...], Wanted] = {}
    for part in (*topology.sinks(), *topology.sources()):
        if isinstance(part, KafkaSource | KafkaSink) and part.create is not None:
            groups.setdefault(part.brokers, {}).setdefault(part.topic, (part, part.create))
    for wanted in groups.values():
        for name, partitions in _create(wanted):
            note(f'topic "{name}" created, {count(partitions, "partition")}')


def check_sinks(topology: Topology) -> None:
    """Refuse sinks whose topics do not exist and are not created by the first write.

    Raises:
        RunError: R672 if no broker answers; R673 if a topic is missing; R728 if the client is not installed.
    """
    for sink in topology.kafka_sinks():
        check_written(cluster_of(sink), sink.topic)


def check_topics(session: Any, topology: Topology, checkpoint: Checkpoint, reset: str, warn: Warn) -> dict[str, str]:
    """Refuse topics that Spark cannot continue to read, and return the ids of topics by path of the source.

    Args:
        reset: `start` to warn and continue if records are gone or a topic was created again; empty if that ends the
            run.

    Raises:
        RunError: As `check_kafka`.
    """
    from wallaroo_runtime.spark.source.kafka import check_kafka  # late import: this imports pyspark

    folder = f"{checkpoint.directory}/{checkpoint.manifest.spark}"
    known, repeats = checkpoint.topic_ids, checkpoint.repeated >= 0
    return check_kafka(session, topology, known, folder, warn if reset else None, repeats=repeats)


def _create(wanted: Wanted) -> Iterator[tuple[str, int]]:
    """Create topics of one cluster, and yield the name and number of partitions of each created topic."""
    clusters = {name: cluster_of(part, " with create") for name, (part, _) in wanted.items()}
    left = list(wanted)
    while left:
        known = {name: len(topic.partitions) for name, topic in clusters[left[0]].metadata().topics.items()}
        ready = [name for name in left if not (like := wanted[name][1].like) or like in known or name in known]
        if not ready:
            part, create = wanted[left[0]]
            reason = f'topic "{part.topic}" shall be like it'
            raise RunError.of("R673", topic=create.like, brokers=clusters[part.topic].name, reason=reason)
        for name in ready:
            create = wanted[name][1]
            partitions = known.get(create.like, create.partitions)
            if name not in known and ensure_topic(clusters[name], name, partitions, create.replicas, create.options):
                yield name, partitions
        left = [name for name in left if name not in ready]


def cluster_of(part: KafkaSource | KafkaSink, use: str = "") -> Cluster:
    """Return the cluster of a source or sink; `use` is added to its name in errors."""
    return Cluster(part.brokers, connection_settings(resolved(part.options)), place_of(part) + use)
