"""Checks topics for real-time mode, where gateways read them, and finds the offsets at which reading begins."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.kafka.client import EARLIEST, LATEST
from wallaroo_runtime.kafka.consumer import consumer_settings, make_consumer
from wallaroo_runtime.kafka.identity import RESET_REALTIME, is_other, other_topic
from wallaroo_runtime.kafka.offset import check_partitions, has_content, starting_offsets
from wallaroo_runtime.peer.configuration import TopicStart, kafka_sources
from wallaroo_runtime.run.topics import cluster_of
from wallaroo_runtime.topology.model import KafkaSource, Topology, has_records, is_table
from wallaroo_runtime.topology.secret import resolved


def kafka_starts(
    topology: Topology, known: Mapping[str, str], reset: str = "", *, to_ends: bool = False
) -> dict[str, TopicStart]:
    """Return the start of each Kafka source, by path. A gateway whose journal already has offsets ignores the starts.

    Args:
        known: Id of the topic that the checkpoint has read, by path of the source.
        reset: Where reading continues if a topic was created again or records are gone: `start` or `end`. If empty,
            such an event ends the run.
        to_ends: Whether reading ends at the current ends of the topics.

    Raises:
        RunError: R672, R673, R716, R728 or R738 of the first source or sink that cannot be used.
    """
    starts = {source.path: topic_start(source, known, reset) for source in kafka_sources(topology)}
    if to_ends:
        starts = {
            s.path: starts[s.path]._replace(ends=cluster_of(s).offsets(s.topic, starts[s.path].offsets, LATEST))
            for s in kafka_sources(topology)
        }
    return starts


def topic_start(source: KafkaSource, known: Mapping[str, str], reset: str = "") -> TopicStart:
    """Return where and how reading of one source's topic begins.

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
    make_consumer(
        ",".join(source.brokers), consumer_settings(resolved(source.options), records=has_records(source)), source.name
    ).close()
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


def has_committed(source: KafkaSource, group: str) -> bool:
    """Return whether a consumer group has committed offsets of a source's topic.

    Raises:
        RunError: R672 if no broker answers; R728 if the client is not installed.
    """
    return cluster_of(source).has_committed(group, source.topic)
