"""Creates topics, checks all topics, and finds the offsets at which a gateway begins to read them (real-time mode)."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from wallaroo.diagnostic.diagnostic import Diagnostic, Kind
from wallaroo.message.kafka_record import connection_settings
from wallaroo_runtime.errors import RunError, count
from wallaroo_runtime.kafka.client import EARLIEST, LATEST, Cluster
from wallaroo_runtime.kafka.consumer import consumer_settings, make_consumer
from wallaroo_runtime.kafka.identity import RESET_REALTIME, is_other, other_topic
from wallaroo_runtime.kafka.offset import check_partitions, has_content, starting_offsets
from wallaroo_runtime.kafka.topic import check_written, ensure_topic
from wallaroo_runtime.peer.configuration import TopicStart
from wallaroo_runtime.run.snapshot import STARTING, Reporter
from wallaroo_runtime.topology.model import KafkaSink, KafkaSource, Topology, is_table, place_of
from wallaroo_runtime.topology.secret import resolved
from wallaroo_runtime.topology.topic import TopicCreation

AGAIN_S, TELL_S = 0.5, 10.0
T = TypeVar("T")
Wanted = dict[str, tuple[KafkaSource | KafkaSink, TopicCreation]]  # topics to create, by name


def until_answered(ask: Callable[[], T], reporter: Reporter) -> T:
    """Return the result of `ask`, which calls Kafka. While no broker answers, report this and repeat the call.

    A signal interrupts the wait, because the run starts.

    Raises:
        RunError: The error of `ask` if it is not an outage.
    """
    told, tell_at = "", 0.0
    while True:
        try:
            result = ask()
        except RunError as error:
            if error.kind is not Kind.OUTAGE:
                raise
            if not told:
                reporter.doing(STARTING, "waiting for Kafka")
            if str(error) != told or time.monotonic() >= tell_at:
                told, tell_at = str(error), time.monotonic() + TELL_S
                reporter.warn(error.diagnostics[0])
        else:
            if told:
                reporter.doing(STARTING, "Kafka answers")
            return result
        time.sleep(AGAIN_S)


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


def _create(wanted: Wanted) -> Iterator[tuple[str, int]]:
    """Create topics of one cluster, and yield the name and number of partitions of each created topic."""
    clusters = {name: cluster_of(part, f' that creates topic "{name}"') for name, (part, _) in wanted.items()}
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
    """Return the Kafka cluster of a source or sink. Its errors name the source or sink, followed by `use`."""
    return Cluster(part.brokers, connection_settings(resolved(part.options)), place_of(part) + use)


def kafka_starts(
    topology: Topology, known: Mapping[str, str], reset: str = "", *, to_ends: bool = False
) -> dict[str, TopicStart]:
    """Return for each Kafka source, by path, the offsets at which a gateway begins to read.

    A gateway whose journal already has offsets ignores them.

    Args:
        known: Id of the topic that the checkpoint has read, by path of the source.
        reset: Where reading continues if a topic was created again or records are gone: `start` or `end`. If empty,
            such an event ends the run.
        to_ends: Whether reading ends at the current ends of the topics.

    Raises:
        RunError: R672, R673, R716, R728 or R738 of the first source or sink that cannot be used.
    """
    starts = {source.path: topic_start(source, known, reset) for source in topology.kafka_sources()}
    if to_ends:
        starts = {
            s.path: starts[s.path]._replace(ends=cluster_of(s).offsets(s.topic, starts[s.path].offsets, LATEST))
            for s in topology.kafka_sources()
        }
    return starts


def topic_start(source: KafkaSource, known: Mapping[str, str], reset: str = "") -> TopicStart:
    """Return the offset at which a gateway begins to read each partition of a topic, and the topic's id.

    Args:
        known: As for `kafka_starts`.
        reset: As for `kafka_starts`.

    Raises:
        RunError: As `kafka_starts`.
    """
    before, now = known.get(source.path, ""), topic_id(source)
    if is_other(before, now):
        if not reset:
            raise other_topic(source.name, source.topic, before, now, RESET_REALTIME)
        chosen = source.partitions
        source = replace(source, start=reset, partitions=chosen and tuple((number, reset) for number, _ in chosen))
    return TopicStart(first_offsets(source), now, reset)


def topic_id(source: KafkaSource) -> str:
    """Return the id of a source's topic; empty if the brokers give none.

    Raises:
        RunError: R672, R673 or R728 if the topic cannot be looked up.
    """
    cluster = cluster_of(source)
    cluster.partitions(source.topic)
    return cluster.topic_id(source.topic)


def first_offsets(source: KafkaSource) -> dict[int, int]:
    """Return the first offset to read of each partition of a source.

    Raises:
        RunError: As `kafka_starts`.
    """
    make_consumer(",".join(source.brokers), consumer_settings(resolved(source.options)), source.name).close()
    cluster = cluster_of(source)
    known = cluster.partitions(source.topic)
    chosen = dict(source.partitions) if source.partitions is not None else dict.fromkeys(known, source.start)
    check_partitions(source.topic, source.brokers[0], known, chosen)
    starts = starting_offsets(cluster, source.topic, chosen)
    return starts | cluster.offsets(source.topic, [number for number, at in starts.items() if at == EARLIEST], EARLIEST)


def tables_left(topology: Topology) -> Iterator[Diagnostic]:
    """Yield a warning (R779) for each table of a new checkpoint whose topic has records already.

    Goka would read its states from that topic. This runtime only writes to the topic, so new values replace the
    records.

    Raises:
        RunError: R672 if no broker answers.
    """
    for sink in filter(is_table, topology.kafka_sinks()):
        if has_content(cluster_of(sink), sink.topic):
            yield Diagnostic.of("R779", topic=sink.topic, brokers=sink.brokers[0])
