"""What a program declares: an application of pipelines of sources, steps and sinks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from wallaroo.location import Location
from wallaroo.serialization import Serializer

CREATE, DEAD_LETTER = "create", "dead_letter"
# What happens when user code fails on a message; an empty text stands for what the application, or the default, says.
POLICIES = (DEAD_LETTER, "fail")


@dataclass(slots=True)
class Component:
    """The user's code behind one part of the topology."""

    path: str
    symbol: str
    location: Location


@dataclass(slots=True)
class Source:
    """Where messages come from.

    Attributes:
        header_length: Bytes before each payload.
        payload_length: The decoder's function from header to length of the payload.
        decode: The decoder's function from payload to message.
    """

    path: str
    name: str
    host: str
    port: int
    framing: dict[str, Any]
    header_length: int
    payload_length: Callable[[bytes], Any]
    decode: Callable[[bytes], Any]
    on_error: str = ""


@dataclass(slots=True)
class State:
    """State of a state step.

    Attributes:
        build: Makes the state of a key.
        partition: Gives the key of a message; None when there is one state only.
        keys: Keys declared up front, as the program wrote them.
        unknown: What other keys do, `create` or `dead_letter`.
    """

    name: str
    builder: object
    build: Callable[[], Any]
    partition: Callable[[Any], Any] | None
    keys: tuple[Any, ...] = ()
    unknown: str = CREATE


@dataclass(slots=True)
class Step:
    """A computation."""

    path: str
    name: str
    kind: str
    inputs: tuple[str, ...]
    run: Callable[..., Any]
    location: Location
    state: State | None = None
    on_error: str = ""


@dataclass(slots=True)
class Sink:
    """Where messages go."""

    path: str
    name: str
    host: str
    port: int
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


@dataclass(slots=True)
class Application:
    """What `ApplicationBuilder.build()` gives and `application_setup` returns."""

    name: str
    pipelines: list[Pipeline]
    components: list[Component]
    serializer: Serializer = field(default_factory=Serializer)
    on_error: str = ""

    def nodes(self) -> Iterator[Source | Step | Sink]:
        """Yield all sources, steps and sinks in document order."""
        for pipeline in self.pipelines:
            yield from pipeline.sources
            yield from pipeline.steps
            yield from pipeline.sinks
