"""Reads Kafka with Spark's own connector: checks topics, and finds the offsets at which reading begins."""

import json
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, cast

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.kafka_record import PREFIX
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.kafka.client import CORRECT, EARLIEST, LATEST, check_answer, without_leader
from wallaroo_runtime.kafka.identity import IS_RESET, REPEATED, RESET, id_of, is_other, other_topic
from wallaroo_runtime.kafka.java import java_options
from wallaroo_runtime.kafka.offset import check_partitions, lost_records, starting_offsets
from wallaroo_runtime.kafka.topic import AUTO_CREATE, NOT_CREATED
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.table import SILENCE, row_of
from wallaroo_runtime.spark.machine.hadoop import HadoopDirectory, spark_path
from wallaroo_runtime.spark.offset_log import past_progress
from wallaroo_runtime.spark.source.kafka_connector import uses_kafka
from wallaroo_runtime.storage.progress import plan_elsewhere
from wallaroo_runtime.topology.model import KafkaSink, KafkaSource, Sink, SparkSink, Topology, place_of
from wallaroo_runtime.topology.secret import resolved

FORMAT = "kafka"
OFFSETS_PER_BATCH = 500_000
# After each poll, Spark asks for the ends of the topic on the connection of the client's fetch. At the end of the topic
# the answer waits until the fetch ends, after fetch.max.wait.ms (default: 500). Then the client drops the records that
# were fetched but not polled (by default all but 500) and fetches them again.
CONSUMER = {
    "kafka.isolation.level": "read_committed",
    "kafka.fetch.max.wait.ms": "5",
    "kafka.max.poll.records": "100000",
    "kafka.max.partition.fetch.bytes": str(4 * 1024 * 1024),
}
# While no broker answers, the query waits for about an hour. In a task the client's consumer waits as long for records
# (Spark's default: two minutes) and after each poll for the topic's ends (the client's default: one minute). If the
# task fails, a local run ends. The driver asks for the ends before each micro-batch. Its client waits for 30 s and then
# Spark tries again with a new one, because a client does not notice that the leader it asked has left (KAFKA-20673).
# If a topic is gone, brokers answer at once. The pause before the next try is longer than `TopicWatch` needs to notice
# that the topic was created again.
HOUR_MS, SHORT_MS = 3_600_000, 30_000
API_TIMEOUT, PROVIDERS = "kafka.default.api.timeout.ms", "kafka.config.providers"
PATIENCE = {
    "kafkaConsumer.pollTimeoutMs": str(HOUR_MS),
    API_TIMEOUT: f"${{wallaroo:{HOUR_MS},{SHORT_MS}}}",
    PROVIDERS: "wallaroo",
    f"{PROVIDERS}.wallaroo.class": "org.wallaroo.spark.microbatch.ClientPatience",
    "fetchOffset.numRetries": "70",
    "fetchOffset.retryIntervalMs": "20000",
}
ANSWER_S = 20
NONE_KNOWN: Mapping[str, str] = {}
FAIL_ON_LOSS = "failOnDataLoss"
NO_GROUP = "GroupIdNotFoundException"


def read_kafka(session: SparkSession, source: KafkaSource) -> DataFrame:
    """Return the records of a topic as a stream. A new checkpoint begins at the start that the topology names."""
    return session.readStream.format(FORMAT).options(**read_options(session, source)).load()


def read_topic(session: SparkSession, source: KafkaSource) -> DataFrame:
    """Return the records that a topic has now, as a DataFrame that does not grow."""
    return session.read.format(FORMAT).options(**read_options(session, source)).load()


def read_options(session: SparkSession, source: KafkaSource) -> dict[str, str]:
    """Return the options with which Spark's Kafka source reads a topic.

    Raises:
        RunError: R672 if no broker answers, R673 if the topic is unknown, R716 if an option is wrong.
    """
    partitions = dict(source.partitions) if source.partitions is not None else None
    chosen = {"subscribe": source.topic}
    if partitions is not None:
        chosen = {"assign": json.dumps({source.topic: sorted(partitions)})}
    starts = set(partitions.values()) if partitions else {source.start}
    beginning = "earliest"
    if not starts <= {"start"}:  # find the offsets now, since Spark would find the end only at the first micro-batch
        beginning = json.dumps({source.topic: _offsets(session, source, partitions)})
    defaults = {**CONSUMER, **PATIENCE}
    if not source.table:
        defaults |= {"maxOffsetsPerTrigger": str(OFFSETS_PER_BATCH)}
    fixed = {"kafka.bootstrap.servers": ",".join(source.brokers), "includeHeaders": "true"}
    own = java_options(resolved(source.options), f'source "{source.name}"')
    if PROVIDERS in own:
        own[PROVIDERS] = f"{defaults[PROVIDERS]},{own[PROVIDERS]}"
    return {**defaults, **own, **fixed, **chosen, "startingOffsets": beginning}


def _offsets(session: SparkSession, source: KafkaSource, partitions: Mapping[int, str] | None) -> dict[str, int]:
    with KafkaAdmin(session, source) as admin:
        starts = partitions or dict.fromkeys(admin.partitions(source.topic), source.start)
        starts_of = starting_offsets(admin, source.topic, starts)
        fixed = {number: offset for number, offset in starts_of.items() if offset >= 0}
        if lost := [*lost_records(admin, source.name, source.topic, fixed)]:
            raise RunError(lost)
    return {str(number): offset for number, offset in starts_of.items()}


def check_connector(session: SparkSession | None, topology: Topology) -> None:
    """Refuse an application that needs Spark's Kafka connector if the running Spark was started without it.

    Raises:
        RunError: R795 if the connector is missing.
    """
    if session is None or not uses_kafka(topology):
        return
    jvm = cast(Any, session.sparkContext._jvm)
    settings = cast(Any, session)._jsparkSession.sessionState().conf()
    try:
        jvm.org.apache.spark.sql.execution.datasources.DataSource.lookupDataSource(FORMAT, settings)
    except (PySparkException, Py4JJavaError) as error:
        raise RunError.of("R795", application=topology.name) from error


def check_kafka(
    session: SparkSession,
    topology: Topology,
    before: Mapping[str, str] = NONE_KNOWN,
    checkpoint: str = "",
    warn: Callable[[Diagnostic], None] | None = None,
    *,
    repeats: bool = False,
) -> dict[str, str]:
    """Refuse to start if a broker cannot be reached, a topic is unknown, or a topic was created again.

    Args:
        before: Maps the path of each source to the id of the topic that the checkpoint has read.
        checkpoint: Spark's own checkpoint; empty if there is none.
        warn: Gets findings about lost records, and about topics that were created again, which are then read from
            their start. None ends the run instead, except for lost records of sources with `failOnDataLoss` false.
        repeats: Whether the next micro-batch is published already, so that the outbox has its offsets.

    Returns:
        A mapping from the path of each Kafka source to the id of its topic now. The id is empty if brokers give none.

    Raises:
        RunError: R672 if no broker answers, R673 if a topic is unknown, R738 if a topic was created again, R792 if
            topics have lost records, R795 without Spark's connector. Only R792 is raised for all sources at once.
    """
    check_connector(session, topology)
    topic_ids, begins = dict[str, str](), dict[str, dict[int, int]]()
    for source in topology.kafka_sources():
        with KafkaAdmin(session, source) as admin:
            known, topic_ids[source.path] = admin.partitions(source.topic), admin.topic_id(source.topic)
            was, now = before.get(source.path, ""), topic_ids[source.path]
            offsets = admin.offsets(source.topic, known if is_other(was, now) else (), EARLIEST)
        if offsets:
            fix = REPEATED if repeats else RESET if warn is None else IS_RESET
            other = other_topic(source.name, source.topic, was, now, fix)
            if repeats or warn is None:
                raise other
            warn(other.diagnostics[0])
            begins[source.topic] = offsets
        check_partitions(source.topic, source.brokers[0], known, (number for number, _ in source.partitions or ()))
    for sink in filter(None, map(spark_topic, topology.sinks())):
        with KafkaAdmin(session, sink) as admin:
            admin.check_written(sink.topic)
    lost = records_lost(session, topology, checkpoint, begins) if checkpoint else []
    if begins:
        plan_elsewhere(HadoopDirectory(session, spark_path(checkpoint)), begins)
    if warn is not None:
        for _, finding in lost:
            warn(finding)
    elif ending := [finding for source, finding in lost if not passes_lost(source)]:
        raise RunError(ending)
    return topic_ids


def spark_topic(sink: Sink) -> KafkaSink | None:
    """Convert a sink of Spark's format kafka to a Kafka sink, whose topic a start checks.

    Return None for other sinks, and if the rows name their topics.
    """
    if not isinstance(sink, SparkSink) or sink.format != FORMAT or not (topic := sink.options.get("topic")):
        return None
    brokers = resolved(sink.options).get(PREFIX + "bootstrap.servers", "").split(",")
    names = {name: getattr(sink, name) for name in ("path", "name", "kind", "worker", "inputs", "options")}
    return KafkaSink(**names, topic=topic, brokers=tuple(brokers))


def passes_lost(source: KafkaSource) -> bool:
    """Say whether a source goes on reading after its topic has lost records."""
    return source.options.get(FAIL_ON_LOSS, "").lower() == "false"


def records_lost(
    session: SparkSession, topology: Topology, checkpoint: str, others: Container[str] = ()
) -> list[tuple[KafkaSource, Diagnostic]]:
    """Return errors about records that topics have lost since the last micro-batch, each with its source.

    A partition that was added since must have its records from offset 0 on.

    Args:
        others: Topics that were created again, which are left out.

    Raises:
        RunError: R672 if no broker answers, R673 if a topic is unknown.
    """
    past, lost_here = past_progress(session, checkpoint).topics, list[tuple[KafkaSource, Diagnostic]]()
    for source in topology.kafka_sources():
        if source.topic not in others and (ends := past.get(source.topic)):
            with KafkaAdmin(session, source) as admin:
                known = {*admin.partitions(source.topic), *ends}
                chosen = known if source.partitions is None else dict(source.partitions).keys() & ends.keys()
                position = {number: ends.get(number, 0) for number in chosen}
                lost = lost_records(admin, source.name, source.topic, position)
                lost_here += [(source, finding) for finding in lost]
    return lost_here


def topic_id(session: SparkSession, source: KafkaSource) -> str:
    """Return the id of a source's topic; empty if the brokers give none.

    Raises:
        RunError: R672 if no broker answers, Java has ended, or a partition has no leader; R673 if the topic is unknown.
    """
    try:
        with KafkaAdmin(session, source) as admin:
            return admin.topic_id_with_leaders(source)
    except (Py4JError, ConnectionError) as error:
        raise RunError.of(
            "R672", what=place_of(source), brokers=",".join(source.brokers), reason="Java has ended"
        ) from error


class KafkaAdmin(AbstractContextManager["KafkaAdmin"]):
    """Asks a broker about topics and groups, with the Kafka client in the jars of Spark's connector."""

    def __init__(self, session: SparkSession, part: KafkaSource | KafkaSink) -> None:
        check_answer(part.brokers, place_of(part))
        self._part = part
        self._jvm = cast(Any, session.sparkContext._jvm)
        options = java_options(resolved(part.options), place_of(part))
        settings = {name.removeprefix(PREFIX): value for name, value in options.items() if name.startswith(PREFIX)}
        settings |= dict.fromkeys(("default.api.timeout.ms", "request.timeout.ms"), str(ANSWER_S * 1000))
        settings["bootstrap.servers"] = ",".join(part.brokers)
        try:
            self._client: Any = self._jvm.org.apache.kafka.clients.admin.AdminClient.create(self._map(settings.items()))
        except Py4JJavaError as error:
            cause = error.java_exception.getCause() or error.java_exception
            what, reason = f"an option of {place_of(part)}", str(cause.getMessage())
            fix = "correct the options of Kafka's client in Java, which Spark uses"
            raise RunError.of("R716", USAGE, what=what, reason=reason, fix=fix) from error

    def __exit__(self, *error: object) -> None:
        self._client.close()

    def _map(self, items: Iterable[tuple[Any, Any]]) -> Any:
        values = self._jvm.java.util.HashMap()
        for name, value in items:
            values.put(name, value)
        return values

    def _only(self, item: Any) -> Any:
        return self._jvm.java.util.Collections.singleton(item)

    def partitions(self, topic: str) -> list[int]:
        """Return the numbers of a topic's partitions.

        Raises:
            RunError: R673 if the topic is unknown, R672 if no broker answers.
        """
        return sorted(partition.partition() for partition in self._described(topic).partitions())

    def topic_id_with_leaders(self, source: KafkaSource) -> str:
        """Return the id of a source's topic, as `topic_id` does, if each partition that the source reads has a leader.

        Raises:
            RunError: R672 if a partition has no leader or no broker answers, R673 if the topic is unknown.
        """
        described = self._described(source.topic)
        nodes = {each.partition(): each.leader() for each in described.partitions()}
        leaders = {number: -1 if node is None else node.id() for number, node in nodes.items()}
        chosen = None if source.partitions is None else dict(source.partitions)
        if reason := without_leader(source.topic, leaders, chosen):
            raise RunError.of("R672", what=place_of(source), brokers=",".join(source.brokers), reason=reason)
        return id_of(str(described.topicId().toString()))

    def topic_id(self, topic: str) -> str:
        """Return the id of a topic; empty if the brokers give none.

        Raises:
            RunError: R673 if the topic is unknown, R672 if no broker answers.
        """
        return id_of(str(self._described(topic).topicId().toString()))

    def _described(self, topic: str) -> Any:
        return self._get(self._client.describeTopics(self._only(topic)).allTopicNames()).get(topic)

    def check_written(self, topic: str) -> None:
        """Refuse a missing topic of a sink, unless the broker creates topics for clients that write.

        Raises:
            RunError: R673 if the topic is refused, R672 if no broker answers.
        """
        if topic in self._get(self._client.listTopics().names()):
            return
        broker = self._get(self._client.describeCluster().nodes()).iterator().next().idString()
        kinds = getattr(self._jvm.org.apache.kafka.common.config, "ConfigResource$Type")
        resource = self._jvm.org.apache.kafka.common.config.ConfigResource(kinds.BROKER, broker)
        try:
            answers = self._get(self._client.describeConfigs(self._only(resource)).all())
        except RunError:  # a client that may write need not have the right to ask this
            return
        creates = answers.get(resource).get(AUTO_CREATE)
        if creates is not None and creates.value() == "false":
            brokers = ",".join(self._part.brokers)
            raise RunError.of("R673", topic=topic, brokers=brokers, reason=f"{place_of(self._part)} {NOT_CREATED}")

    def offsets(self, topic: str, partitions: Iterable[int], kind: int) -> dict[int, int]:
        """Return the first offset of each partition (`EARLIEST`), or the offset after its last record (`LATEST`)."""
        specs = self._jvm.org.apache.kafka.clients.admin.OffsetSpec
        spec = specs.latest() if kind == LATEST else specs.earliest()
        keys = {number: self._jvm.org.apache.kafka.common.TopicPartition(topic, number) for number in partitions}
        if not keys:
            return {}
        answer = self._get(self._client.listOffsets(self._map((key, spec) for key in keys.values())).all())
        return {number: int(answer.get(key).offset()) for number, key in keys.items()}

    def members(self, group: str) -> int:
        """Return the present number of members of a consumer group."""
        groups = self._client.describeConsumerGroups(self._only(group)).describedGroups()
        description = self._get(groups.get(group), NO_GROUP)
        return 0 if description is None else int(description.members().size())

    def committed(self, group: str, topic: str) -> dict[int, tuple[int, str]]:
        """Return the offsets that a consumer group has committed, by partition, each with its metadata."""
        committed = (
            self._get(self._client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata(), NO_GROUP) or {}
        )
        pairs = ((partition, committed.get(partition)) for partition in committed)
        return {
            int(partition.partition()): (int(position.offset()), str(position.metadata()))
            for partition, position in pairs
            if partition.topic() == topic and position is not None
        }

    def commit(self, group: str, topic: str, offsets: Mapping[int, int], metadata: str) -> None:
        """Commit offsets for a consumer group that has no members."""
        common, consumer = self._jvm.org.apache.kafka.common, self._jvm.org.apache.kafka.clients.consumer
        pairs = (
            (common.TopicPartition(topic, number), consumer.OffsetAndMetadata(offset, metadata))
            for number, offset in offsets.items()
        )
        self._get(self._client.alterConsumerGroupOffsets(group, self._map(pairs)).all())

    def _get(self, future: Any, absent: str = "") -> Any:
        """Wait for an answer of Kafka, and return it; None if the answer is the error with the name `absent`."""
        seconds = self._jvm.java.util.concurrent.TimeUnit.SECONDS
        try:
            return future.get(ANSWER_S, seconds)
        except Py4JJavaError as error:
            cause = error.java_exception.getCause() or error.java_exception
            name, text = cause.getClass().getSimpleName(), cause.getMessage() or "no answer in time"
            if name == absent:
                return None
            if name == "UnknownTopicOrPartitionException":
                topic, broker = self._part.topic, self._part.brokers[0]
                raise RunError.of("R673", topic=topic, brokers=broker, reason="it does not exist") from error
            what, brokers, reason = place_of(self._part), ",".join(self._part.brokers), f"{name}: {text}"
            match = row_of(causes_of(error))
            if name == "TimeoutException" or (match is not None and match[0] is SILENCE):
                raise RunError.of("R672", what=what, brokers=brokers, reason=reason) from error
            fix = match[0].fix if match else CORRECT
            raise RunError.of("R727", USAGE, what=what, brokers=brokers, reason=reason, fix=fix) from error
