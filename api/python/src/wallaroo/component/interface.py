"""Types of the parameters that take components of the program: decorated functions, classes, objects.

With these types mypy finds wrong components before a run. The checks at run time are in `component`.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias, TypeVar

from wallaroo.component.application import RemoteComponent
from wallaroo.component.window import Windows
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.message.timer import Timers

S = TypeVar("S")
T = TypeVar("T", covariant=True)
F = TypeVar("F", covariant=True)


class Named(Protocol):
    """An object that has a name."""

    def name(self) -> str:
        """Return the name of the step."""


class One(Named, Protocol[F]):
    """A computation that returns at most one message: an object with Wallaroo's methods, or a decorated function."""

    @property
    def compute(self) -> F:
        """The method that runs the computation."""


class Many(Named, Protocol[F]):
    """A computation that returns any number of messages."""

    @property
    def compute_multi(self) -> F:
        """The method that runs the computation."""


class HasState(Named, Protocol[T]):
    """A computation that names its state class, as in Wallaroo 0.6."""

    @property
    def state_class(self) -> "StateOf[T]":
        """The class of the state, or the object that builds it."""


class OneWithItsState(HasState[T], One[F], Protocol[T, F]):
    """A state computation that names its state class, e.g. a decorated function."""


class ManyWithItsState(HasState[T], Many[F], Protocol[T, F]):
    """A state computation that returns any number of messages and names its state class, e.g. a decorated function."""


class Builds(Protocol[T]):
    """An object that builds a state."""

    def build(self) -> T:
        """Return a new state."""


class GivesPartition(Protocol):
    """A partition function as an object, as in Wallaroo 0.1."""

    def partition(self, data: Any, /) -> Any:
        """Return the key of a message."""


class ExtractsKey(Protocol):
    """A key extractor as an object."""

    def extract_key(self, data: Any, /) -> Any:
        """Return the key of a message."""


class Encodes(Protocol):
    """An encoder as an object."""

    def encode(self, data: Any, /) -> Any:
        """Return the bytes of a message."""


class Decodes(Protocol):
    """A decoder of payloads as an object."""

    def decode(self, bs: bytes, /) -> Any:
        """Return the message of a payload."""


class DecodesRecord(Protocol):
    """A decoder of whole records of Kafka."""

    def decode(self, record: KafkaRecord, /) -> Any:
        """Return the message of a record."""


class Cuts(Decodes, Protocol):
    """A decoder for TCP sources that reads the length of each payload from a header before it."""

    def header_length(self) -> int:
        """Return the number of bytes before each payload."""

    def payload_length(self, bs: bytes, /) -> int:
        """Return the length of the payload that follows a header."""


class CutsLines(Decodes, Protocol):
    """A decoder for TCP sources whose payloads are lines."""

    @property
    def framing(self) -> str:
        """The text "newline". By this attribute the source knows that payloads are lines."""


# These types include decorated functions, whose methods have the parameters of the function.
Items: TypeAlias = Iterable[Any] | None
ToOne: TypeAlias = One[Callable[[Any], Any]]
ToMany: TypeAlias = Many[Callable[[Any], Items]]
Stateless: TypeAlias = RemoteComponent | ToOne | ToMany | type[ToOne] | type[ToMany]
# Computations whose decorator names the state class.
Changes: TypeAlias = OneWithItsState[S, Callable[[Any, S], Any]] | ManyWithItsState[S, Callable[[Any, S], Items]]
Timed: TypeAlias = (
    OneWithItsState[S, Callable[[Any, S, Timers], Any]] | ManyWithItsState[S, Callable[[Any, S, Timers], Items]]
)
Stateful: TypeAlias = Changes[S] | type[Changes[S]] | Timed[S] | type[Timed[S]] | Windows
# Computations whose state class the pipeline names; they return a pair of output and `persist`.
Persists: TypeAlias = Callable[[Any, S], tuple[Any, Any]]
PersistsTimed: TypeAlias = Callable[[Any, S, Timers], tuple[Any, Any]]
Given: TypeAlias = One[Persists[S]] | Many[Persists[S]] | One[PersistsTimed[S]] | Many[PersistsTimed[S]]
StateGiven: TypeAlias = Given[S] | type[Given[S]]
StateOf: TypeAlias = Callable[[], S] | Builds[S]
KeyOf: TypeAlias = ExtractsKey | type[ExtractsKey]
PartitionOf: TypeAlias = GivesPartition | type[GivesPartition]
Encoding: TypeAlias = Encodes | type[Encodes]
Decoding: TypeAlias = Decodes | type[Decodes]
DecodingRecord: TypeAlias = DecodesRecord | type[DecodesRecord]
Framing: TypeAlias = Cuts | CutsLines | type[Cuts] | type[CutsLines]
