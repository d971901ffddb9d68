"""Types for the components that programs pass: decorated functions, classes, objects.

Each union is the type of one parameter. They let mypy find faults early. The checks at run time are in `component`.
"""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias, TypeVar

from wallaroo.component.application import RemoteComponent
from wallaroo.component.window import Windows
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.message.timer import Timers

S = TypeVar("S")
T = TypeVar("T", covariant=True)
N = TypeVar("N", contravariant=True)


class Named(Protocol):
    """An object that has a name."""

    def name(self) -> str:
        """Return the name of the step."""


class OneComputed(Named, Protocol):
    """A computation of Wallaroo 0.1: one message in, at most one out."""

    def compute(self, data: Any, /) -> Any:
        """Run the computation."""


class ManyComputed(Named, Protocol):
    """A computation of Wallaroo 0.1 with any number of outputs."""

    def compute_multi(self, data: Any, /) -> Iterable[Any] | None:
        """Run the computation."""


class OneWithState(Named, Protocol[N]):
    """A state computation of Wallaroo 0.1."""

    def compute(self, data: Any, state: N, /) -> tuple[Any, Any]:
        """Run the computation."""


class ManyWithState(Named, Protocol[N]):
    """A state computation of Wallaroo 0.1 with any number of outputs."""

    def compute_multi(self, data: Any, state: N, /) -> tuple[Any, Any]:
        """Run the computation."""


class OneWithTimers(Named, Protocol[N]):
    """A state computation that sets timers."""

    def compute(self, data: Any, state: N, timers: Timers, /) -> tuple[Any, Any]:
        """Run the computation."""


class ManyWithTimers(Named, Protocol[N]):
    """A state computation with any number of outputs that sets timers."""

    def compute_multi(self, data: Any, state: N, timers: Timers, /) -> tuple[Any, Any]:
        """Run the computation."""


class HasState(Named, Protocol[T]):
    """A computation that names its state class, as in Wallaroo 0.6."""

    @property
    def state_class(self) -> "StateOf[T]":
        """Return the class or builder of the state."""


class OneWithItsState(HasState[S], Protocol[S]):
    """A state computation that names its state class, e.g. a decorated function."""

    def compute(self, data: Any, state: S, /) -> Any:
        """Run the computation."""


class ManyWithItsState(HasState[S], Protocol[S]):
    """A state computation with any number of outputs that names its state class, e.g. a decorated function."""

    def compute_multi(self, data: Any, state: S, /) -> Iterable[Any] | None:
        """Run the computation."""


class OneWithItsTimers(HasState[S], Protocol[S]):
    """A state computation that names its state class and sets timers."""

    def compute(self, data: Any, state: S, timers: Timers, /) -> Any:
        """Run the computation."""


class ManyWithItsTimers(HasState[S], Protocol[S]):
    """A state computation with any number of outputs that names its state class and sets timers."""

    def compute_multi(self, data: Any, state: S, timers: Timers, /) -> Iterable[Any] | None:
        """Run the computation."""


class Builds(Protocol[T]):
    """An object that builds a state."""

    def build(self) -> T:
        """Return a new state."""


class GivesPartition(Protocol):
    """A partition function of Wallaroo 0.1."""

    def partition(self, data: Any, /) -> Any:
        """Return the key of a message."""


class ExtractsKey(Protocol):
    """A key extractor as an object."""

    def extract_key(self, data: Any, /) -> Any:
        """Return the key of a message."""


class Encodes(Protocol):
    """An encoder."""

    def encode(self, data: Any, /) -> Any:
        """Return the bytes of a message."""


class Decodes(Protocol):
    """A decoder."""

    def decode(self, bs: bytes, /) -> Any:
        """Return the message of a payload."""


class DecodesRecord(Protocol):
    """A decoder of whole records of Kafka."""

    def decode(self, record: KafkaRecord, /) -> Any:
        """Return the message of a record."""


class Cuts(Decodes, Protocol):
    """A decoder that finds where messages end."""

    def header_length(self) -> int:
        """Return the number of bytes before each payload."""

    def payload_length(self, bs: bytes, /) -> int:
        """Return the length of the payload that follows a header."""


class CutsLines(Decodes, Protocol):
    """A decoder of lines."""

    @property
    def framing(self) -> str:
        """Return "newline"."""


# These types include decorated functions, whose methods have the parameters of the function.
Stateless: TypeAlias = RemoteComponent | OneComputed | ManyComputed | type[OneComputed] | type[ManyComputed]
# Computations whose decorator names the state class.
Stateful: TypeAlias = (
    OneWithItsState[S] | ManyWithItsState[S] | type[OneWithItsState[S]] | type[ManyWithItsState[S]]
    | OneWithItsTimers[S] | ManyWithItsTimers[S] | type[OneWithItsTimers[S]] | type[ManyWithItsTimers[S]] | Windows
)  # fmt: skip
# Computations whose state class the pipeline names; they return a pair of output and `persist`.
StateGiven: TypeAlias = (
    OneWithState[S] | ManyWithState[S] | type[OneWithState[S]] | type[ManyWithState[S]]
    | OneWithTimers[S] | ManyWithTimers[S] | type[OneWithTimers[S]] | type[ManyWithTimers[S]]
)  # fmt: skip
StateOf: TypeAlias = Callable[[], S] | Builds[S]
KeyOf: TypeAlias = ExtractsKey | type[ExtractsKey]
PartitionOf: TypeAlias = GivesPartition | type[GivesPartition]
Encoding: TypeAlias = Encodes | type[Encodes]
Decoding: TypeAlias = Decodes | type[Decodes]
DecodingRecord: TypeAlias = DecodesRecord | type[DecodesRecord]
Framing: TypeAlias = Cuts | CutsLines | type[Cuts] | type[CutsLines]
