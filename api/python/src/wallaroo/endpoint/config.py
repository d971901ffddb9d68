"""The base classes of source and sink configs: the objects with which programs describe sources and sinks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from wallaroo.component import component
from wallaroo.component.application import Sink, Source
from wallaroo.diagnostic.error import Place
from wallaroo.diagnostic.location import called_from

_arguments: ContextVar[tuple[str, ...]] = ContextVar("_arguments", default=())
MAX_MESSAGE_BYTES = 16 * 1024 * 1024


class SourceConfig(ABC):
    """Base class of all source configs.

    Attributes:
        decorator: Decorator for `given`, without "@wallaroo.", for the remedies of errors.
        parameter: Name of the constructor's parameter for `given`.
        expected: Kind of object that `given` must be.
        name: Name of the source; None takes the pipeline's name.
        on_error: Policy if its user code fails on a message; None takes the application's policy.
        location: Place in the program that made the config.
    """

    decorator, parameter, expected = "decoder", "decoder", "a decoder"
    decoder: Any

    def __init__(self, name: str | None, on_error: str | None) -> None:
        self.name, self.on_error = name, on_error
        self.location = called_from()

    @property
    def given(self) -> Any:
        """The user's decoder or generator, as the program passed it."""
        return self.decoder

    @abstractmethod
    def declare(self, place: Place, path: str, name: str, decoder: Any) -> Source | None:
        """Return the declared source, or report an error at `place` and return None.

        Args:
            place: Place to which findings are added.
            path: Path of the source.
            name: Name of the source.
            decoder: The object for `given`: a decoder or a generator.
        """


class SinkConfig(ABC):
    """Base class of all sink configs.

    Attributes:
        decorator: Decorator for the encoder, without "@wallaroo.", for the remedies of errors.
        name: Name of the sink; None takes the pipeline's name.
        on_error: Policy if its encoder fails on a message; None takes the application's policy.
        location: Place in the program that made the config.
    """

    decorator = "encoder"
    name: str | None = None

    def __init__(self, encoder: Any, on_error: str | None) -> None:
        self.encoder, self.on_error = encoder, on_error
        self.location = called_from()

    @abstractmethod
    def fields(self, place: Place) -> tuple[str, dict[str, Any]]:
        """Return the kind of the sink and its fields for the topology document; add findings to `place`."""

    def declare(self, place: Place, path: str, name: str, inputs: tuple[str, ...], encoder: Any) -> Sink | None:
        """Return the declared sink, or report an error at `place` and return None.

        `encoder` is the config's encoder, or an instance if this is a class.
        """
        kind, fields = self.fields(place)
        encode = component.method(place, "encoder", encoder, ("encode",), ("data",))
        return None if encode is None else Sink(path, name, kind, fields, inputs, encode)


def decode_of(place: Place, decoder: Any) -> Callable[[bytes], Any] | None:
    """Return the function that decodes a payload, or report an error at `place` and return None."""
    return component.method(place, "decoder", decoder, ("decode",), ("bs",))


@contextmanager
def given_arguments(args: Sequence[str]) -> Iterator[None]:
    """Let `current_arguments` return these arguments while the context is open: while a setup function runs."""
    token = _arguments.set(tuple(args))
    try:
        yield
    finally:
        _arguments.reset(token)


def current_arguments() -> tuple[str, ...]:
    """Return the arguments of the setup function that runs now, e.g. for Kafka options; empty if none runs."""
    return _arguments.get()
