"""The application that a program declares, of pipelines of sources, steps and sinks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from wallaroo.diagnostic.location import Location
from wallaroo.message.serialization import Serializer

CREATE, DEAD_LETTER = "create", "dead_letter"
# What happens when user code fails on a message; an empty text stands for what the application, or the default, says.
POLICIES = (DEAD_LETTER, "fail")


@dataclass(frozen=True, slots=True)
class RemoteComponent:
    """A component of another program, to be handed to `to`.

    Attributes:
        worker: Name of the worker that hosts it.
        target: The program, as this one names it.
        name: Name under which that program offers it.
        kind: Kind of the step, e.g. `computation`.
        input: Codec of the messages that it takes.
        output: Codec of the messages that it gives.
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
    """The user's code of one part of the topology."""

    path: str
    symbol: str
    location: Location


@dataclass(slots=True)
class Generator:
    """Makes messages, each from the one before; None ends them."""

    initial_value: Callable[[], Any]
    apply: Callable[[Any], Any]


@dataclass(slots=True)
class Source:
    """Where messages come from.

    Attributes:
        kind: `tcp`, `kafka`, `spark`, `connector` or `generator`.
        fields: What the document says of this kind, in schema order.
        decode: The decoder's function from payload to message; None for a generator.
        header_length: TCP: bytes before each payload.
        payload_length: TCP: the decoder's function from header to length of the payload.
        event_time: Gives a payload's time in milliseconds since 1970, where the wire format holds one; a failure is one
            of the decoder.
        gives_keys: Whether its messages carry keys.
        gives_time: Whether its messages have a time of their own, rather than that of their arrival.
        codec: Of its messages, where they go to another worker.
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
    gives_keys: bool = False
    gives_time: bool = False
    codec: str = "native"


@dataclass(slots=True)
class State:
    """State of a state step or a window.

    Attributes:
        build: Makes the state of a key.
        partition: Gives the key of a message; None when there is one state only, or messages carry their key.
        keys: Keys declared up front, as the program wrote them.
        unknown: What other keys do, `create` or `dead_letter`.
        is_by_message: Whether the key is the one that the message carries.
        is_absent: Says of a changed state whether the key no longer has one; None: every state is one.
        show: Returns what people see of a state; None: the state itself.
        shape: Types of its fields by their paths, where the class that makes it does not have them; None: it does.
        ttl_ms: How long the state of a key stays after its last message; 0: for ever.
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


@dataclass(slots=True)
class Step:
    """A computation.

    Attributes:
        run: The user's function; None for `collect`, `output` and `window`.
        is_always_persisted: Whether a state computation returns its output alone, every change being saved.
        window: What the document says of a window.
        aggregation: A window's aggregation.
        remote: What another program runs in place of `run`.
        codec: Of its messages, where they go to another worker.
        outputs: Names of its outputs; each is a step of kind `output`, right after it.
        visits: Names of the visits that a state computation takes.
        visit: Its visitor; None: it takes none.
        timers: Names of the timers that a state computation sets.
        fire: What runs when one is due: `fire(name, key, state, time, timers)`.
        takes_timers: Whether `run` takes `timers` as its last argument.
        time: Which time counts for timers and the ttl of its state, `ingest` or `event`; empty: it has neither.
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
    """Where messages go.

    Attributes:
        kind: `tcp`, `kafka` or `spark`.
        fields: What the document says of this kind, in schema order.
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
        """Name of the last step, else of the last source; its own where it has neither."""
        return [self.name, *(each.name for each in self.sources), *(each.name for each in self.steps)][-1]

    def name_apart(self) -> None:
        """Name topics by themselves where several sinks have the name of the pipeline, and number the rest."""
        same = [number for number, sink in enumerate(self.sinks) if sink.name == self.name]
        for number in same if len(same) > 1 else ():
            sink = self.sinks[number]
            self.sinks[number] = replace(sink, name=sink.fields.get("topic", sink.name))
        taken = {sink.name for sink in self.sinks}
        for number in [number for number in same if self.sinks[number].name == self.name][1:]:
            name = next(name for at in count(2) if (name := f"{self.name}-{at}") not in taken)
            taken.add(name)
            self.sinks[number] = replace(self.sinks[number], name=name)


@dataclass(slots=True)
class Application:
    """The application that `ApplicationBuilder.build()` or `build_application` gives and `application_setup` returns.

    Attributes:
        name: Its name.
        pipelines: Its pipelines, in the order of the program.
        components: The user's code of its parts.
        serializer: The codec of messages and states.
        on_error: What happens when user code fails on a message, as for `ApplicationBuilder`; empty: the default.
        offers: Components of a library, by the name under which other programs know them.
        connectors: The connectors' configs by name; scripts of `wallaroo.experimental` look for theirs here.

    Source: Wallaroo 0.1, where `build()` gives a list for the engine in its place.
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
        """Return name of the worker and target of each program whose components take part."""
        steps = (step for pipeline in self.pipelines for step in pipeline.steps)
        return {step.remote.worker: step.remote.target for step in steps if step.remote is not None}

    def nodes(self) -> Iterator[Source | Step | Sink]:
        """Yield all sources, steps and sinks in document order."""
        for pipeline in self.pipelines:
            yield from pipeline.sources
            yield from pipeline.steps
            yield from pipeline.sinks
