"""The application that a program declares: pipelines, each with sources, steps and sinks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from wallaroo.diagnostic.location import Location
from wallaroo.message.serialization import Serializer

CREATE, DEAD_LETTER = "create", "dead_letter"
# Policies for failing user code. An empty text means the application's policy, or the default if it has none.
POLICIES = (DEAD_LETTER, "fail")


@dataclass(frozen=True, slots=True)
class RemoteComponent:
    """A computation of another program. If it is passed to `to`, that program runs it as a step of this application.

    Attributes:
        worker: Name of the worker that hosts it.
        target: File, module or package of the other program, as this program writes it.
        name: Name under which the other program offers the component.
        kind: Kind of the step, e.g. `computation`.
        input: Codec of its input messages.
        output: Codec of its output messages.
        outputs: Codecs of the messages for its named outputs.
    """

    worker: str
    target: str
    name: str
    kind: str
    input: str
    output: str
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Component:
    """The user's function or class for a source, step, sink or state, and where it is declared.

    Attributes:
        path: Path of the part in the topology, e.g. `0/steps/1` or `0/steps/1/state`.
        symbol: Name of the function or class.
        location: Place of its declaration.
    """

    path: str
    symbol: str
    location: Location


@dataclass(slots=True)
class Generator:
    """The functions of a generator, which makes each message from the previous one, and returns None at the end."""

    initial_value: Callable[[], Any]
    apply: Callable[[Any], Any]


@dataclass(slots=True)
class Source:
    """A source of messages, as a program declares it.

    Attributes:
        kind: `tcp`, `kafka`, `spark`, `connector` or `generator`.
        fields: Properties of this kind in the topology document, in schema order.
        decode: The decoder's function from payload to message; None for a generator.
        header_length: For TCP: number of bytes before each payload.
        payload_length: For TCP: the decoder's function from header to length of the payload.
        event_time: Returns a payload's time in milliseconds since 1970, if payloads contain a time. An error of this
            function counts as an error of the decoder.
        gives_time: Whether the messages of the source have an event time; otherwise their arrival time counts.
        codec: Codec of messages that go from here to another worker.
    """

    path: str
    name: str
    kind: str
    fields: dict[str, Any]
    decode: Callable[[bytes], Any] | None
    on_error: str = ""
    header_length: int = 0
    payload_length: Callable[[bytes], Any] | None = None
    event_time: Callable[[bytes], int] | None = None
    generator: Generator | None = None
    gives_time: bool = False
    codec: str = "native"


@dataclass(frozen=True, slots=True)
class ExpiringPart:
    """The part of a state that the time to live removes, e.g. the value in a Goka table. The rest of the state stays.

    The step's visitor runs with an empty name, and removes the part.

    Attributes:
        prolongs: Returns whether a message prolongs the life of the part. Other messages do not change when it ends.
        is_in: Returns whether a state has the part.
    """

    prolongs: Callable[[Any], bool]
    is_in: Callable[[Any], bool]


@dataclass(slots=True)
class State:
    """The declaration of the state that a state computation or a window has for each key.

    Attributes:
        build: Makes the state of a key.
        partition: Returns the key of a message. None if there is only one state, or messages have keys already.
        keys: Keys declared up front, as the program wrote them.
        unknown: Policy for messages with other keys, `create` or `dead_letter`.
        is_by_message: Whether the key of a message was set upstream, and is not computed here.
        is_absent: Returns whether a changed state is empty, so that it is deleted for its key; None if no state is
            empty.
        show: Converts a state to the form in which it is shown to people; None shows the state itself.
        shape: Types of the state's fields by path; None if the state class declares them.
        ttl_ms: How long a state is kept after the last message of its key, in milliseconds; 0 keeps it forever.
        expiring: The part of the state that the time to live ends; None if it ends the whole state.
    """

    name: str
    builder: object
    build: Callable[[], Any]
    partition: Callable[[Any], Any] | None = None
    keys: tuple[Any, ...] = ()
    unknown: str = CREATE
    is_by_message: bool = False
    is_absent: Callable[[Any], bool] | None = None
    show: Callable[[Any], Any] | None = None
    shape: Mapping[str, str] | None = None
    ttl_ms: int = 0
    expiring: ExpiringPart | None = None


@dataclass(slots=True)
class Step:
    """A step of a pipeline.

    Attributes:
        run: The user's function; None for `collect`, `output` and `window`.
        is_always_persisted: Whether a state computation returns only its output; its state is then always saved.
        window: The `window` entry of the topology document.
        aggregation: A window's aggregation.
        remote: Component of another program that replaces `run`; None if the step runs in this program.
        codec: Codec of messages that go from here to another worker.
        outputs: Names of its named outputs. Each one is a step of kind `output`, directly after this step.
        visits: Names of the visits that a state computation accepts.
        visit: The visitor function; None if the step accepts no visits.
        timers: Names of the timers that a state computation sets.
        fire: Function for a timer that is due, `fire(name, key, state, time, timers)`.
        takes_timers: Whether `run` has a last parameter `timers`.
        time: Time that counts for timers and ttl, `ingest` or `event`; empty if the step has no timers and no ttl.
    """

    path: str
    name: str
    kind: str
    inputs: tuple[str, ...]
    run: Callable[..., Any] | None
    location: Location
    state: State | None = None
    on_error: str = ""
    is_always_persisted: bool = False
    window: dict[str, Any] | None = None
    aggregation: Any = None
    remote: RemoteComponent | None = None
    codec: str = "native"
    outputs: tuple[str, ...] = ()
    visits: tuple[str, ...] = ()
    visit: Callable[..., Any] | None = None
    timers: tuple[str, ...] = ()
    fire: Callable[..., Any] | None = None
    takes_timers: bool = False
    time: str = ""


@dataclass(slots=True)
class Sink:
    """A sink for messages.

    Attributes:
        kind: `tcp`, `kafka`, `spark` or `connector`.
        fields: Properties of this kind in the topology document, in schema order.
    """

    path: str
    name: str
    kind: str
    fields: dict[str, Any]
    inputs: tuple[str, ...]
    encode: Callable[[Any], Any]
    on_error: str = ""


@dataclass(slots=True)
class Pipeline:
    """Sources, steps and sinks that were declared together."""

    name: str
    number: int
    location: Location
    sources: list[Source] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    sinks: list[Sink] = field(default_factory=list)

    @property
    def last(self) -> str:
        """Name of the last step; without steps, of the last source; without sources, of the pipeline."""
        return [self.name, *(each.name for each in self.sources), *(each.name for each in self.steps)][-1]

    def name_apart(self) -> None:
        """Rename sinks that have the pipeline's name: add a number, but give a Kafka sink the name of its topic."""
        same = [sink for sink in self.sinks if sink.name == self.name]
        for sink in same if len(same) > 1 else ():
            sink.name = sink.fields.get("topic", sink.name)
        taken = {sink.name for sink in self.sinks}
        for sink in [sink for sink in same if sink.name == self.name][1:]:
            sink.name = next(name for at in count(2) if (name := f"{self.name}-{at}") not in taken)
            taken.add(sink.name)


@dataclass(slots=True)
class Application:
    """An application, made by `ApplicationBuilder.build()` or `build_application`; `application_setup` returns it.

    Attributes:
        name: Name of the application.
        pipelines: Its pipelines, in the order of the program.
        components: The user's code of its parts.
        serializer: The codec of messages and states.
        on_error: Policy for failing user code, as for `ApplicationBuilder`; empty for the default.
        offers: Components of a library, by the names that other programs use.
        connectors: Configs of connectors by name; scripts of `wallaroo.experimental` find their own config here.

    Source: Wallaroo 0.1, where `build()` returns a list for its engine instead.
    """

    name: str
    pipelines: list[Pipeline]
    components: list[Component]
    serializer: Serializer = field(default_factory=Serializer)
    on_error: str = ""
    offers: dict[str, Step] = field(default_factory=dict)
    connectors: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for pipeline in self.pipelines:
            pipeline.name_apart()

    def programs(self) -> dict[str, str]:
        """Return the file or package of each other program that runs steps, by the name of its worker."""
        steps = (step for pipeline in self.pipelines for step in pipeline.steps)
        return {step.remote.worker: step.remote.target for step in steps if step.remote is not None}

    def nodes(self) -> Iterator[Source | Step | Sink]:
        """Yield all sources, steps and sinks in document order."""
        for pipeline in self.pipelines:
            yield from pipeline.sources
            yield from pipeline.steps
            yield from pipeline.sinks
