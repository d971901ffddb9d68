"""The topology document as values: the result of `load` for a correct document."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from wallaroo_runtime.topology.topic import TopicCreation
from wallaroo_runtime.topology.worker import Component, Worker

PROTOCOL_VERSION = 1  # version of the worker protocol
LEAST_TICK_MS, MOST_TICK_MS = 100, 1000
TIMER_MS = 500  # steps with timers get ticks as often as windows with this slide
STATE_KINDS = frozenset({"state_computation", "state_computation_multi", "window"})


@dataclass(frozen=True, slots=True)
class Framing:
    """The rule by which a byte stream is cut into messages. `header_bytes` is 0 unless `kind` is `worker`."""

    kind: str
    header_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Key:
    """The rule by which a message finds its state.

    Attributes:
        kind: `single`, `partition` or `message`.
        values: Keys declared in advance, as bytes.
        unknown: Effect of a message whose key is not in `values`: `create` or `dead_letter`.
    """

    kind: str
    values: tuple[bytes, ...] = ()
    unknown: str = "create"


@dataclass(frozen=True, slots=True)
class State:
    """State of a state step. Steps with the same state name share it.

    The state of a key is removed after `ttl_ms` without a message of the key; 0 keeps it forever.
    """

    name: str
    codec: str
    key: Key
    ttl_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The fields that sources and sinks of all kinds have."""

    path: str
    name: str
    kind: str
    worker: str
    on_error: str = ""

    @property
    def place(self) -> str:
        """Address, topic or format of the source or sink, for messages to people; empty for a generator."""
        match self:
            case KafkaSource() | KafkaSink():
                return self.topic
            case TcpSource() | ConnectorSource() | TcpSink():
                return f"{self.host}:{self.port}"
            case SparkSource() | SparkSink():
                return self.format
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(Endpoint):
    """A source of messages."""

    codec: str

    @property
    def gives_keys(self) -> bool:
        """Whether messages have keys from a connector, from Kafka records or from an expression."""
        return isinstance(self, ConnectorSource | KafkaSource) or (isinstance(self, SparkSource) and bool(self.key))


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSource(Source):
    """A TCP listener whose bytes are cut into messages and decoded."""

    host: str
    port: int
    framing: Framing
    max_message_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSource(Source):
    """A listener for programs that speak the connector protocol."""

    host: str
    port: int
    cookie: str
    max_credits: int
    refill_credits: int
    max_message_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorSource(Source):
    """A generator: user code makes each message from the previous one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSource(Source):
    """A source whose messages are the records of a Kafka topic.

    Attributes:
        brokers: Addresses at which the client asks for all brokers.
        start: Start of reading: `start`, `end`, an offset, or `-n` for n records before the end.
        partitions: Number and start of each partition to read; None for all partitions of the topic.
        options: Options that are passed on unchanged.
        content: `record` if messages are whole records, serialized; empty if they are the values of records.
        table: Whether the topic's records precede all other messages of a micro-batch.
        create: How to create the topic if it does not exist; None if it must exist.
    """

    topic: str
    brokers: tuple[str, ...]
    start: str
    options: Mapping[str, str]
    max_message_bytes: int
    partitions: tuple[tuple[int, str], ...] | None = None
    content: str = ""
    table: bool = False
    create: TopicCreation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSource(Source):
    """Any streaming source of Spark. `value`, `key` and `timestamp` are SQL expressions over its rows.

    Attributes:
        format: Name of the format.
        options: Options that are passed on unchanged.
        value: Expression for the message's bytes or text; `*` for all columns as one JSON object.
        schema: Schema of the rows as Spark's DDL, if the format needs one.
        key: Expression for the message's key; empty if messages have no key.
        timestamp: Expression for the message's event time; empty for the time of reading.
    """

    format: str
    options: Mapping[str, str]
    value: str
    max_message_bytes: int
    schema: str = ""
    key: str = ""
    timestamp: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The rule by which a window collects messages. Fields that its kind does not use are 0 or empty.

    Attributes:
        kind: `range`, `session` or `count`.
        range_ms: Length of a window.
        slide_ms: Time from the start of one window to the start of the next one.
        gap_ms: A session ends after this time without a message.
        delay_ms: How long a window waits for late messages.
        late: Effect of a late message: `drop`, `fire_per_message` or `place_in_oldest_window`.
        time: The time that counts: `ingest` or `event`.
        count: Number of messages in a window.
        flush_ms: A window that is not full is emitted after this time without a message.
    """

    kind: str
    range_ms: int = 0
    slide_ms: int = 0
    gap_ms: int = 0
    delay_ms: int = 0
    late: str = ""
    time: str = ""
    count: int = 0
    flush_ms: int = 0

    @property
    def step_ms(self) -> int:
        """Shortest time after which a tick can end a window: slide, gap or flush."""
        return self.slide_ms or self.gap_ms or self.flush_ms


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a pipeline: a computation of any kind, e.g. with state, or a named output of a computation.

    `state` is set for the state kinds and windows only, `window` for windows only. `visits` names the visits for which
    the step has a function, called for every key with state. `time` is `ingest` or `event` for steps with `timers` or
    a state with a ttl, else empty.
    """

    path: str
    name: str
    kind: str
    inputs: tuple[str, ...]
    codec: str
    worker: str
    state: State | None = None
    window: Window | None = None
    component: str = ""
    on_error: str = ""
    visits: tuple[str, ...] = ()
    timers: tuple[str, ...] = ()
    time: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink(Endpoint):
    """A sink of messages."""

    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSink(Sink):
    """A TCP connection to which encoded messages are sent."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSink(TcpSink):
    """A program that speaks the connector protocol and receives messages in transactions."""

    cookie: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSink(Sink):
    """A Kafka topic. The encoder returns value, key and partition.

    Attributes:
        exactly_once: Whether records are written in transactions. Else some records may be written twice after a kill.
        content: `record` if messages are whole records, serialized; empty if they are values, perhaps with keys and
            partitions.
        create: See `KafkaSource`.
    """

    topic: str
    brokers: tuple[str, ...]
    options: Mapping[str, str]
    exactly_once: bool = False
    content: str = ""
    create: TopicCreation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSink(Sink):
    """A sink that Spark writes as rows, for each micro-batch, in one of its formats.

    Attributes:
        value: SQL select list of the columns to write. It selects from the columns of `schema`.
        schema: Columns of the messages; if empty, the columns are `key` and `value`.
    """

    format: str
    options: Mapping[str, str]
    value: str
    schema: str = ""


def has_records(part: Source | Sink) -> bool:
    """Say whether the messages of a source or sink are whole Kafka records."""
    return isinstance(part, KafkaSource | KafkaSink) and part.content == "record"


def is_table(sink: Sink) -> TypeGuard[KafkaSink]:
    """Say whether a sink is the table of a Goka group: a compacted topic with the newest value of each key."""
    return isinstance(sink, KafkaSink) and sink.create is not None and sink.create.is_compact


Part = Source | Step | Sink


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Sources, steps and sinks that were declared together."""

    name: str
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """A stream application whose document is correct.

    Attributes:
        name: Name of the application.
        workers: The programs that host the user's code.
        pipelines: The pipelines in the order of their declaration.
        document: The JSON document from which this was read. Do not change it.
        on_error: The policy for errors in user code, for parts without a policy of their own; may be empty.
    """

    name: str
    workers: tuple[Worker, ...]
    pipelines: tuple[Pipeline, ...]
    document: Mapping[str, Any] = field(repr=False, compare=False)
    on_error: str = ""

    def sources(self) -> Iterator[Source]:
        """Yield the sources of all pipelines, in document order."""
        return (source for pipeline in self.pipelines for source in pipeline.sources)

    def steps(self) -> Iterator[Step]:
        """Yield the steps of all pipelines, in document order."""
        return (step for pipeline in self.pipelines for step in pipeline.steps)

    def state_steps(self) -> Iterator[Step]:
        """Yield the steps with state, in document order."""
        return (step for step in self.steps() if step.state is not None)

    def states(self) -> dict[str, Step]:
        """Return the first step of each state, by the name of the state."""
        steps: dict[str, Step] = {}
        for step in self.steps():
            if step.state is not None:
                steps.setdefault(step.state.name, step)
        return steps

    def visits(self) -> list[str]:
        """Return the sorted names of all visits: calls of a step's function for every key that has state."""
        return sorted({name for step in self.steps() for name in step.visits})

    def tick_ms(self) -> int:
        """Return the time between ticks: half of the shortest slide, gap, flush or ttl. 0 if no step needs ticks."""
        spans = [step.window.step_ms for step in self.steps() if step.window is not None]
        spans += [step.state.ttl_ms for step in self.steps() if step.state and step.state.ttl_ms]
        spans += [TIMER_MS for step in self.steps() if step.timers]
        return max(LEAST_TICK_MS, min(MOST_TICK_MS, min(spans) // 2)) if spans else 0

    def kafka_sources(self) -> Iterator[KafkaSource]:
        """Yield the sources that are Kafka topics."""
        return (source for source in self.sources() if isinstance(source, KafkaSource))

    def sinks(self) -> Iterator[Sink]:
        """Yield the sinks of all pipelines, in document order."""
        return (sink for pipeline in self.pipelines for sink in pipeline.sinks)

    def tcp_sinks(self) -> Iterator[TcpSink]:
        """Yield the sinks to which the egress connects by TCP itself."""
        return (sink for sink in self.sinks() if isinstance(sink, TcpSink))

    def kafka_sinks(self) -> Iterator[KafkaSink]:
        """Yield the sinks that are Kafka topics."""
        return (sink for sink in self.sinks() if isinstance(sink, KafkaSink))

    def spark_sinks(self) -> Iterator[SparkSink]:
        """Yield the sinks that Spark writes."""
        return (sink for sink in self.sinks() if isinstance(sink, SparkSink))

    def parts(self) -> Iterator[Part]:
        """Yield all sources, then all steps, then all sinks: each after its inputs."""
        yield from self.sources()
        yield from self.steps()
        yield from self.sinks()

    def worker(self, name: str) -> Worker:
        """Return the worker with a name. It exists if a source, step or sink names it."""
        return next(worker for worker in self.workers if worker.name == name)

    def is_library(self, worker: str) -> bool:
        """Say whether a worker is a library: some step names a component that the worker registered."""
        return any(step.component for step in self.steps() if step.worker == worker)

    def component(self, worker: str, path: str) -> Component | None:
        """Return the record of the user code at `path` of a worker; None if the front-end recorded none."""
        return self.worker(worker).component(path)


def place_of(part: Source | Sink) -> str:
    """Return the kind and name of a source or sink, for errors."""
    return f'{"source" if isinstance(part, Source) else "sink"} "{part.name}"'
