"""Builds an application from groups of Goka: topics are its sources and sinks, and each group is a step."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from wallaroo.check import check
from wallaroo.component import application as model
from wallaroo.component.application import Component
from wallaroo.component.component import ComponentMethods
from wallaroo.component.signature import shown_name
from wallaroo.declare.declaration import Declaration
from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.error import Place, WallarooParameterError
from wallaroo.diagnostic.location import Location, called_from, declared_at
from wallaroo.emit.state_shape import codec_text
from wallaroo.endpoint.kafka import KafkaSinkConfig, KafkaSourceConfig
from wallaroo.endpoint.kafka_option import MESSAGE_SIZE
from wallaroo.endpoint.spark import SparkSinkConfig
from wallaroo.goka.client import chosen_brokers
from wallaroo.goka.computation import GroupComputation, NothingEncoder
from wallaroo.goka.edge import Edge
from wallaroo.goka.graph import GroupGraph
from wallaroo.goka.join import JoinDecoder, JoinedRecord
from wallaroo.goka.lookup import Lookups
from wallaroo.goka.partitioner import FNV1A, PARTITIONERS
from wallaroo.goka.state import GroupState
from wallaroo.message.kafka_record import MAX_RECORD_BYTES, RECORD, connection_settings

COMPACTED = {"cleanup.policy": "compact"}


def application(
    brokers: Sequence[str],
    *groups: GroupGraph,
    name: str = "",
    on_error: str = "fail",
    start: str = "end",
    partitioner: str = FNV1A,
    replicas: int = 1,
    options: Mapping[str, str] | None = None,
) -> model.Application:
    """Build the application of groups, for `application_setup`.

    Each group is a pipeline: a Kafka source per input, loop and joined table, a step with the group's callbacks and
    state, and a Kafka sink per output, table and loop. The sinks write in transactions. Topics of tables and loops are
    created if they do not exist.

    Args:
        brokers: HOST:PORT of some brokers.
        groups: Results of `define_group`; at least one.
        name: Name of the application; empty takes the names of the groups.
        on_error: Policy if a callback fails: "fail" stops the application, as Goka's processors; "dead_letter" puts
            the message aside.
        start: Where inputs are read in the first run of the application: "end" as Goka, "start", or as for
            `KafkaSourceConfig`. Joined tables are always read from their start.
        partitioner: Partitioner of all written records: "fnv1a" as Goka, "murmur2" as Kafka's Java clients.
        replicas: Replication factor of the topics that are created.
        options: Settings of Kafka's client for all sources and sinks. Settings for the connection to the brokers have
            librdkafka's names, e.g. {"kafka.security.protocol": "SSL", "kafka.ssl.ca.location": "/etc/ca.pem"}.
            "kafka.max.request.size" is the largest size in bytes of a record that a callback writes, 1048588 by
            default.

    Raises:
        WallarooParameterError: Some arguments are wrong; the error lists all of them.

    Example:
        >>> from wallaroo import goka
        >>> def count(ctx, message):
        ...     ctx.set_value((ctx.value() or 0) + 1)
        >>> edges = goka.input("clicks", goka.String(), count), goka.persist(goka.Int64())
        >>> graph = goka.define_group("my-group", *edges)
        >>> goka.application(["127.0.0.1:9092"], graph).name
        'my-group'

    Source: Goka, `goka.NewProcessor`.
    """
    application = _Groups(brokers, start, partitioner, replicas, options)
    place = Place("goka.application", "/pipelines", called_from(), application.findings)
    application.check_arguments(place, brokers, groups)
    policy = check.policy(place, on_error)
    for number, graph in enumerate(each for each in groups if isinstance(each, GroupGraph)):
        application.add(number, graph)
    title = name or " + ".join(each.group for each in groups if isinstance(each, GroupGraph)) or "no group"
    check.name(place, "application", title)
    check.settle_times(application.pipelines)
    if application.findings:
        raise WallarooParameterError(application.findings)
    return model.Application(title, application.pipelines, application.components, on_error=policy)


class _Groups(Declaration):
    """One call of `application`: declares the pipelines of the groups, and collects findings."""

    def __init__(
        self, brokers: Any, start: str, partitioner: str, replicas: int, options: Mapping[str, str] | None
    ) -> None:
        super().__init__()
        self.pipelines: list[model.Pipeline] = []
        self._start, self._partitioner, self._replicas = start, partitioner, replicas
        self._options = dict(options or {})
        self._names = [brokers] if isinstance(brokers, str) else chosen_brokers(brokers)
        self._brokers = [_host_and_port(each) for each in self._names]

    def check_arguments(self, place: Place, brokers: Any, groups: Sequence[Any]) -> None:
        """Record T207 for invalid arguments."""
        if isinstance(brokers, str):
            place.wrong("brokers", shown(brokers), "a list of HOST:PORT")
        wrong = [each for each in groups if not isinstance(each, GroupGraph)]
        if wrong or not groups:
            place.wrong("groups", shown(wrong[0] if wrong else groups), "what goka.define_group returns")
        check.choice(place, "partitioner", self._partitioner, PARTITIONERS)

    def add(self, number: int, graph: GroupGraph) -> None:
        """Declare the pipeline of a group: its sources, its step and its sinks."""
        place = Place("goka.application", f"/pipelines/{number}", graph.location, self.findings)
        pipeline = model.Pipeline(check.name(place, "group", graph.group), number, graph.location)
        self.pipelines.append(pipeline)
        self._sources(pipeline, graph)
        self._step(pipeline, place, graph)
        by_name = {step.name: step.path for step in pipeline.steps if step.kind == "output"}
        for edge in _written(graph):
            pointer = f"/pipelines/{number}/sinks/{len(pipeline.sinks)}"
            at = Place(f"goka.{edge.kind}", pointer, edge.location, self.findings)
            self.sink(pipeline, at, self._sink(edge, graph), edge.topic, (by_name[edge.topic],))
        if not by_name:
            # An application must have a sink. A group without outputs gets Spark's sink `noop`.
            nothing = SparkSinkConfig("noop", {}, NothingEncoder())
            self.sink(pipeline, place, nothing, graph.group, (pipeline.steps[0].path,))

    def note(self, path: str, value: object, location: Location | None = None) -> None:
        """Record name and place of the user's code for a part. For a group's step this is the first callback."""
        if isinstance(value, GroupGraph):
            value = value.input_streams[0].callback
            self.components.append(Component(path, shown_name(value), Location(*declared_at(value))))
        else:
            # Other parts are classes of this package. They count as declared where the program names a topic or group.
            target = value if isinstance(value, type) else type(value)
            self.components.append(Component(path, shown_name(target), location or Location()))

    def _sources(self, pipeline: model.Pipeline, graph: GroupGraph) -> None:
        loop = [graph.loop_stream] if graph.loop_stream is not None else []
        for edge in (*graph.input_streams, *loop, *graph.joint_tables):
            pointer = f"/pipelines/{pipeline.number}/sources/{len(pipeline.sources)}"
            place = Place(f"goka.{edge.kind}", pointer, edge.location, self.findings)
            used = {source.name for line in self.pipelines for source in line.sources}
            name = edge.topic if edge.topic not in used else f"{edge.kind} {edge.topic} of {graph.group}"
            self.source(pipeline, place, self._source(edge, graph), name)

    def _source(self, edge: Edge, graph: GroupGraph) -> KafkaSourceConfig:
        is_table, is_loop = edge in graph.joint_tables, edge is graph.loop_stream
        # Old messages of a loop belong to the inputs of another run. A table consists of all records ever written.
        start = "start" if is_table else "end" if is_loop else self._start
        create = self._create(graph, {}) if is_loop else None
        config = KafkaSourceConfig(
            edge.topic, self._brokers, "Warn", JoinDecoder() if is_table else None, start=start, options=self._options,
            content=RECORD, table=is_table, create=create,
        )  # fmt: skip
        config.location = edge.location
        return config

    def _sink(self, edge: Edge, graph: GroupGraph) -> KafkaSinkConfig:
        create = None
        if edge is graph.group_table or edge is graph.loop_stream:
            create = self._create(graph, COMPACTED if edge is graph.group_table else {})
        config = KafkaSinkConfig(
            edge.topic, self._brokers, "Warn", 0, 0, None, exactly_once=True, content=RECORD, create=create
        )
        config.location = edge.location
        config.topic_options.options = {"kafka.partitioner": self._partitioner, **self._options}
        return config

    def _create(self, graph: GroupGraph, options: Mapping[str, str]) -> dict[str, Any]:
        """Return the settings of a new topic for a table or loop. It gets as many partitions as the first input."""
        creation: dict[str, Any] = {"like": graph.input_streams[0].topic, "replicas": self._replicas}
        return creation | ({"options": dict(options)} if options else {})

    def _step(self, pipeline: model.Pipeline, place: Place, graph: GroupGraph) -> None:
        place.pointer += "/steps/0"
        tables = [edge.topic for edge in graph.lookup_tables]
        options = connection_settings(self._options)
        lookups = Lookups(self._names, tables, self._partitioner, options) if tables else None
        most = str(self._options.get(MESSAGE_SIZE, ""))  # the client refuses a value that is not a number
        run = GroupComputation(graph, lookups, int(most) if most.isdecimal() else MAX_RECORD_BYTES)
        names = tuple(edge.topic for edge in _written(graph))
        inputs = tuple(source.path for source in pipeline.sources)
        if graph.group_table is None and not graph.joint_tables:
            call = ComponentMethods("computation_multi", graph.group, run.without_state, names)
            self.step(pipeline, place, graph, call, inputs, None, "")
            return
        visits = tuple(edge.topic for edge in graph.visitors)
        call = ComponentMethods("state_computation_multi", graph.group, run.with_state, names, visits, run.visit)
        if graph.group_table is not None and graph.group_table.ttl is not None:
            call.ttl_ms = -(-graph.group_table.ttl // timedelta(milliseconds=1))
        state = model.State(
            graph.group,
            GroupState,
            GroupState,
            is_by_message=True,
            is_absent=lambda state: bool(state.is_empty),
            show=run.shown,
            shape={edge.topic: codec_text(edge.codec) for edge in (graph.group_table, *graph.joint_tables) if edge},
            expiring=model.ExpiringPart(prolongs=lambda record: type(record) is not JoinedRecord, is_in=_has_value),
        )
        step = self.step(pipeline, place, graph, call, inputs, state, "")
        self.note(step.path + "/state", GroupState, graph.location)


def _written(graph: GroupGraph) -> list[Edge]:
    """Return the edges whose topics a group writes."""
    own = (graph.group_table, graph.loop_stream)
    return [*graph.output_streams, *(edge for edge in own if edge is not None)]


def _has_value(state: GroupState) -> bool:
    return state.value is not None


def _host_and_port(broker: Any) -> tuple[Any, Any]:
    host, _, port = str(broker).rpartition(":")
    return (host.removeprefix("[").removesuffix("]"), port) if host else (broker, "")
