"""The topology document as values: the result of `load` when nothing is wrong with it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from wallaroo_runtime.topology.topic import TopicCreation
from wallaroo_runtime.topology.worker import Component, Worker

PROTOCOL_VERSION = 1  # of the worker protocol
LEAST_TICK_MS, MOST_TICK_MS = 100, 1000
TIMER_MS = 500  # steps with timers get ticks as windows with a slide of so long do
STATE_KINDS = frozenset({"state_computation", "state_computation_multi", "window"})


@dataclass(frozen=True, slots=True)
class Framing:
    """How a byte stream is cut into messages; `header_bytes` is 0 unless `kind` is `worker`."""

    kind: str
    header_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Key:
    """How a message finds its state.

    Attributes:
        kind: `single`, `partition` or `message`.
        values: Keys declared up front, as their bytes.
        unknown: What a key outside `values` does: `create` or `dead_letter`.
    """

    kind: str
    values: tuple[bytes, ...] = ()
    unknown: str = "create"


@dataclass(frozen=True, slots=True)
class State:
    """State of a state step; steps with one name share it. A key's is gone after `ttl_ms` without message; 0: never."""

    name: str
    codec: str
    key: Key
    ttl_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The parts that sources and sinks share; each kind has a class of its own."""

    path: str
    name: str
    kind: str
    worker: str
    on_error: str = ""

    @property
    def place(self) -> str:
        """Where its messages come from or go, for people: an address, a topic or a format; empty for a generator."""
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
    """Where messages come from."""

    codec: str

    @property
    def gives_keys(self) -> bool:
        """Whether its messages have keys: those of a connector or of records, or those of an expression."""
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
    """Messages that user code makes, each from the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSource(Source):
    """A Kafka topic.

    Attributes:
        brokers: Addresses from which the client learns of all brokers.
        start: Where reading begins: `start`, `end`, an offset, or `-n` for n before the end.
        partitions: Number and start of each partition that is read; None: all of the topic.
        options: Passed on as they are.
        content: `record`: messages are whole records, serialized; empty: their values.
        table: Whether its records precede all others of a micro-batch.
        create: How the topic is created if it does not exist; None: it must.
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
    """Any streaming source of Spark; expressions are SQL over its rows.

    Attributes:
        format: Name of the format.
        options: Passed on as they are.
        value: Expression for the message's bytes or text; `*`: all columns as one JSON object.
        schema: Of the rows, as Spark's DDL, where the format needs one.
        key: Expression for the message's key; empty: messages have none.
        timestamp: Expression for the message's event time; empty: when it is read.
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
    """The messages that an aggregation takes together; fields that only other kinds have are 0 or empty.

    Attributes:
        kind: `range`, `session` or `count`.
        range_ms: Length of a window.
        slide_ms: From the begin of one window to that of the next.
        gap_ms: A session ends when no message came for so long.
        delay_ms: How long a window waits for late messages.
        late: What a late message does: `drop`, `fire_per_message` or `place_in_oldest_window`.
        time: Which time counts: `ingest` or `event`.
        count: How many messages make a window.
        flush_ms: Without a message for so long, a window that is not full is emitted.
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
        """Shortest time until a tick has something to end: slide, gap or flush."""
        return self.slide_ms or self.gap_ms or self.flush_ms


@dataclass(frozen=True, slots=True)
class Step:
    """A computation, or an output of one.

    `state` is set exactly for the state kinds and windows, `window` for windows; `visits` are the visits that it takes.
    `time`, `ingest` or `event`, is set for timed steps: those that set `timers`, and those whose state has a ttl.
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
    """Where messages go."""

    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TcpSink(Sink):
    """A TCP connection to which encoded messages are sent."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorSink(TcpSink):
    """A program that speaks the connector protocol and takes messages in transactions."""

    cookie: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSink(Sink):
    """A Kafka topic; the encoder gives value, key and partition.

    Attributes:
        exactly_once: Whether it is written in transactions; else after a kill some records may come again.
        content: `record`: messages are whole records, serialized; empty: values, perhaps with keys and partitions.
        create: As of a `KafkaSource`.
    """

    topic: str
    brokers: tuple[str, ...]
    options: Mapping[str, str]
    exactly_once: bool = False
    content: str = ""
    create: TopicCreation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSink(Sink):
    """The rows that Spark writes of a micro-batch; `value` is a select list over the columns of `schema`, if any."""

    format: str
    options: Mapping[str, str]
    value: str
    schema: str = ""


def has_records(part: Source | Sink) -> bool:
    """Say whether messages of a source or sink are whole records of Kafka."""
    return isinstance(part, KafkaSource | KafkaSink) and part.content == "record"


def is_table(sink: Sink) -> TypeGuard[KafkaSink]:
    """Say whether a sink is the table of a group."""
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
    """A stream application that was found correct.

    Attributes:
        name: Name of the application.
        workers: The programs that host the user's code.
        pipelines: In the order of their declaration.
        document: The JSON document that this was read from; it must not be changed.
        on_error: What happens when user code fails, as for sources, steps and sinks: a policy, or empty.
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
        """Return for each state name the first step that has it."""
        steps: dict[str, Step] = {}
        for step in self.steps():
            if step.state is not None:
                steps.setdefault(step.state.name, step)
        return steps

    def visits(self) -> list[str]:
        """Return the names of the visits that state computations take, each once."""
        return sorted({name for step in self.steps() for name in step.visits})

    def tick_ms(self) -> int:
        """Return how often ticks are needed: twice in the shortest slide, gap, flush or ttl; 0: never."""
        spans = [step.window.step_ms for step in self.steps() if step.window is not None]
        spans += [step.state.ttl_ms for step in self.steps() if step.state and step.state.ttl_ms]
        spans += [TIMER_MS for step in self.steps() if step.timers]
        return max(LEAST_TICK_MS, min(MOST_TICK_MS, min(spans) // 2)) if spans else 0

    def sinks(self) -> Iterator[Sink]:
        """Yield the sinks of all pipelines, in document order."""
        return (sink for pipeline in self.pipelines for sink in pipeline.sinks)

    def tcp_sinks(self) -> Iterator[TcpSink]:
        """Yield the sinks that the egress reaches by TCP alone."""
        return (sink for sink in self.sinks() if isinstance(sink, TcpSink))

    def kafka_sinks(self) -> Iterator[KafkaSink]:
        """Yield the topics that are written."""
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
        """Return the worker of that name; it exists when a source, step or sink names it."""
        return next(worker for worker in self.workers if worker.name == name)

    def is_library(self, worker: str) -> bool:
        """Say whether a worker hosts components for other programs: a step names one that it registered."""
        return any(step.component for step in self.steps() if step.worker == worker)

    def component(self, worker: str, path: str) -> Component | None:
        """Return the user's code of `path`, or None when the front-end recorded none."""
        return self.worker(worker).component(path)


def place_of(part: Source | Sink) -> str:
    """Return how errors name a source or sink."""
    return f'{"source" if isinstance(part, Source) else "sink"} "{part.name}"'
