"""Makes the requests with which a driver configures gateway and egress."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.kafka.consumer import consumer_settings
from wallaroo_runtime.peer.limits import JOURNAL_FSYNC, Bounds
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.credential import is_loopback
from wallaroo_runtime.topology.model import (
    ConnectorSink,
    ConnectorSource,
    GeneratorSource,
    KafkaSource,
    Source,
    TcpSource,
    Topology,
    has_records,
)
from wallaroo_runtime.topology.secret import resolved, value_of

FSYNC_INTERVAL_MS = 50
Listener = TcpSource | ConnectorSource
GatewaySource = TcpSource | ConnectorSource | GeneratorSource


class TopicStart(NamedTuple):
    """The offsets of a Kafka topic from which the gateway reads, and at which it may end.

    Attributes:
        offsets: First offset to read, by partition.
        topic_id: Id of the topic; empty if the brokers give none.
        reset: Where reading continues if the topic was created again or records are gone: `start` or `end`. If empty,
            such an event ends the run.
        ends: Offset at which reading may end, by partition; empty if reading goes on.
    """

    offsets: Mapping[int, int]
    topic_id: str = ""
    reset: str = ""
    ends: Mapping[int, int] = MappingProxyType({})


Starts = Mapping[str, TopicStart]  # start by path of the Kafka source
UNSET = Bounds()


def needs_worker(source: Source) -> bool:
    """Say whether a worker cuts or generates the messages of a source. Then the worker must run before the gateway."""
    return isinstance(source, GeneratorSource) or (isinstance(source, TcpSource) and source.framing.kind == "worker")


def gateway_sources(topology: Topology) -> Iterator[GatewaySource]:
    """Yield the sources that a gateway serves."""
    return (source for source in topology.sources() if isinstance(source, GatewaySource))


def listeners(topology: Topology) -> Iterator[Listener]:
    """Yield the sources for which a gateway listens at a TCP port."""
    return (source for source in topology.sources() if isinstance(source, Listener))


def open_sources(topology: Topology) -> Iterator[Diagnostic]:
    """Yield a warning (R713) for each source that other machines may reach."""
    for source in listeners(topology):
        if not is_loopback(source.host):
            yield Diagnostic.of(
                "R713",
                what=f'source "{source.name}"',
                address=source.place,
                deed="send messages",
                fix="give a loopback address with --in",
            )


def gateway_request(
    topology: Topology,
    plan: Plan,
    sources: Iterable[GatewaySource],
    bounds: Bounds = UNSET,
    *,
    targets: Mapping[str, str] | None = None,
    starts: Starts | None = None,
) -> pb.AttachJournalRequest:
    """Return the request that configures a gateway. The caller adds the identity of the driver.

    Args:
        plan: Plan with the ports of the sources.
        sources: Sources that the gateway serves.
        targets: gRPC targets of workers by their names, for sources that a worker cuts or makes; None if there are no
            such sources.
        starts: Where the gateway begins to read the Kafka sources; None if Spark reads these sources.
    """
    request = pb.AttachJournalRequest(
        fsync=bounds.journal_fsync or JOURNAL_FSYNC,
        fsync_interval_ms=FSYNC_INTERVAL_MS,
        backlog_bytes=bounds.journal_bytes,
        tick_ms=topology.tick_ms(),
        visits=topology.visits(),
    )
    for source in sources:
        known = {"port": plan.ports[source.path], "path": source.path, "name": source.name}
        asked = {"worker": source.worker, "target": (targets or {}).get(source.worker, "")}
        if isinstance(source, GeneratorSource):
            request.generators.add(**known, **asked)
            continue
        listener = {"host": source.host, "tcp_port": source.port, "max_message_bytes": source.max_message_bytes}
        message = request.sources.add(**known, **listener, framing=framing_of(source))
        if isinstance(source, ConnectorSource):
            message.connector.cookie = value_of(source.cookie)
            message.connector.max_credits = source.max_credits
            message.connector.refill_credits = source.refill_credits
        elif needs_worker(source):
            message.header_bytes = source.framing.header_bytes
            message.worker, message.target = asked["worker"], asked["target"]
    if starts is not None:
        request.kafka.extend(_kafka_message(source, plan, starts[source.path]) for source in topology.kafka_sources())
    return request


def _kafka_message(source: KafkaSource, plan: Plan, start: TopicStart) -> pb.KafkaSource:
    records = has_records(source)
    return pb.KafkaSource(
        port=plan.ports[source.path],
        path=source.path,
        name=source.name,
        brokers=source.brokers,
        topic=source.topic,
        settings=consumer_settings(resolved(source.options)),
        records=records,
        table=source.table,
        max_message_bytes=source.max_message_bytes,
        starts=dict(start.offsets),
        chosen=source.partitions is not None,
        topic_id=start.topic_id,
        reset=start.reset,
        ends=dict(start.ends),
    )


def framing_of(source: Listener) -> str:
    """Return the name of a source's framing in the protocol between driver, gateway and egress."""
    return source.framing.kind if isinstance(source, TcpSource) else source.kind


def egress_request(
    topology: Topology, plan: Plan, bounds: Bounds = UNSET, *, sets_aside: bool = False
) -> pb.AttachOutboxRequest:
    """Return the request that configures the egress. The caller adds the identity of the driver.

    Args:
        sets_aside: Whether records that a broker refuses for good become dead letters.
    """
    request = pb.AttachOutboxRequest(backlog_bytes=bounds.max_outbox_bytes)
    for sink in topology.tcp_sinks():
        cookie = value_of(sink.cookie) if isinstance(sink, ConnectorSink) else None
        address = {"host": sink.host, "tcp_port": sink.port}
        request.sinks.add(port=plan.ports[sink.path], name=sink.name, **address, cookie=cookie)
    for topic in topology.kafka_sinks():
        host, _, port = topic.brokers[0].rpartition(":")
        address = {"host": host.strip("[]"), "tcp_port": int(port)}
        kafka = pb.KafkaTopic(
            application=topology.name,
            brokers=topic.brokers,
            topic=topic.topic,
            options=resolved(topic.options),
            records=has_records(topic),
            sets_aside=topic.path if sets_aside else "",
            exactly_once=topic.exactly_once,
        )
        request.sinks.add(port=plan.ports[topic.path], name=topic.name, **address, kafka=kafka)
    for source in listeners(topology):
        known = {"port": plan.ports[source.path], "path": source.path, "name": source.name}
        request.sources.add(**known, framing=framing_of(source))
    return request
