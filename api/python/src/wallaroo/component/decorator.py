"""The decorators of Wallaroo 0.4 to 0.6.

A decorated function can still be called: `f(x)` runs the function. `f()` returns the component object.
"""

import inspect
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeVar, overload

from wallaroo.component.signature import check_lengths
from wallaroo.component.wrapped import (
    Computation,
    ComputationMulti,
    Decoder,
    Encoder,
    EventTime,
    KeyExtractor,
    P,
    Partition,
    R,
    ValueDecoder,
)
from wallaroo.component.wrapped_state import StateComputation, StateComputationMulti
from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.error import WallarooParameterError
from wallaroo.diagnostic.location import called_from

C = TypeVar("C", covariant=True)
G = TypeVar("G")


class StateDecorator(Protocol[C]):
    """The decorator that `state_computation` returns. It keeps the type of the function."""

    def __call__(self, function: Callable[P, R]) -> StateComputation[P, R, C]:
        """Make a function a state computation."""


class StateDecoratorMulti(Protocol[C]):
    """The decorator that `state_computation_multi` returns."""

    def __call__(self, function: Callable[P, R]) -> StateComputationMulti[P, R, C]:
        """Make a function a state computation with any number of output messages."""


def computation(name: str, *, outputs: Sequence[str] = ()) -> Callable[[Callable[P, R]], Computation[P, R]]:
    """Make a function `f(data)` a computation: it returns one message, or None for no message.

    The function runs once per message, in any process, and again after a failure. It should depend on the message
    alone.

    Args:
        name: Name of the step in the topology and the logs.
        outputs: Names of further outputs. To emit a message to a named output, the function returns
            `wallaroo.output(name, value)`.

    Raises:
        WallarooParameterError: T207 if a name is not a str, or the decorated object cannot be called.

    Example:
        >>> @computation("reverse")
        ... def reverse(data):
        ...     return data[::-1]
        >>> reverse("abc"), reverse().name()
        ('cba', 'reverse')

    Source: Wallaroo 0.4 to 0.6.
    """
    decorate: Callable[[Callable[P, R]], Computation[P, R]] = _named(Computation, name, outputs=outputs)
    return decorate


def computation_multi(name: str, *, outputs: Sequence[str] = ()) -> Callable[[Callable[P, R]], ComputationMulti[P, R]]:
    """Make a function `f(data)` a computation that returns a list of messages; None is an empty list.

    Items of the list that are None are ignored. A generator function may yield the messages.

    Args:
        name: Name of the step.
        outputs: Names of further outputs. The list may contain messages for these outputs, made by `wallaroo.output`.

    Raises:
        WallarooParameterError: T207 if a name is not a str, or the decorated object cannot be called.

    Example:
        >>> @computation_multi("split")
        ... def split(data):
        ...     return data.split(" ")
        >>> split("a b")
        ['a', 'b']

    Source: Wallaroo 0.4 to 0.6; None items since 0.5.
    """
    decorate: Callable[[Callable[P, R]], ComputationMulti[P, R]] = _named(ComputationMulti, name, outputs=outputs)
    return decorate


@overload
def state_computation(
    name: str, state: None = None, *, outputs: Sequence[str] = (), ttl: timedelta | None = None
) -> StateDecorator[None]: ...


@overload
def state_computation(
    name: str, state: G, *, outputs: Sequence[str] = (), ttl: timedelta | None = None
) -> StateDecorator[G]: ...


def state_computation(
    name: str, state: Any = None, *, outputs: Sequence[str] = (), ttl: timedelta | None = None
) -> Any:
    """Make a function `f(data, state)` a state computation: it gets a message and the state of the message's key.

    With the argument `state`, for `wallaroo.source(...).to(...)`, the function returns a message or None, and the state
    is always saved. Without it, for `ApplicationBuilder`, the function returns `(message or None, persist)`.

    The function may change the state in place. Messages of one key are processed one after the other, in arrival order.
    If `persist` is False, nothing is written for the message. Its changes of the state are saved only when a later
    message of the key returns True. Until then they are lost if the worker has to load the state again: after a restart
    or a failure, or if its cache is full. `wallaroo run --debug` finds such changes.

    Args:
        name: Name of the step.
        state: Class that makes the state of a key; its constructor takes no arguments. The objects must be mutable
            (T207), and must keep their data in attributes of the object, not of the class or module (T234).
        outputs: Names of further outputs, as for `computation`.
        ttl: How long a state is kept after the last message of its key; with a ttl, `persist` has no effect and the
            state is always saved. None keeps states forever.

    Raises:
        WallarooParameterError: T207 if a name is not a str, `ttl` is not a valid span, or the decorated object cannot
            be called.

    Example:
        >>> class Total:
        ...     votes = 0
        >>> @state_computation("add", state=Total)
        ... def add(data, state):
        ...     state.votes += data
        ...     return state.votes
        >>> @state_computation("count")
        ... def count(data, state):
        ...     state[data] = state.get(data, 0) + 1
        ...     return state[data], True
        >>> add(3, Total()), count("a", {"a": 1})
        (3, (2, True))

    Source: Wallaroo 0.4 to 0.5 without a state class, 0.6 with one.
    """
    return _named(StateComputation, name, state, outputs=outputs, ttl=ttl)


@overload
def state_computation_multi(
    name: str, state: None = None, *, outputs: Sequence[str] = (), ttl: timedelta | None = None
) -> StateDecoratorMulti[None]: ...


@overload
def state_computation_multi(
    name: str, state: G, *, outputs: Sequence[str] = (), ttl: timedelta | None = None
) -> StateDecoratorMulti[G]: ...


def state_computation_multi(
    name: str, state: Any = None, *, outputs: Sequence[str] = (), ttl: timedelta | None = None
) -> Any:
    """Make a function `f(data, state)` a state computation with any number of output messages.

    The function returns a list of messages, or None. Without a state class it returns `(list or None, persist)`.

    Args:
        name: Name of the step.
        state: As for `state_computation`.
        outputs: Names of further outputs, as for `computation_multi`.
        ttl: As for `state_computation`.

    Raises:
        WallarooParameterError: As for `state_computation`.

    Example:
        >>> @state_computation_multi("pair", state=list)
        ... def pair(data, state):
        ...     state.append(data)
        ...     return [data, len(state)]
        >>> pair("a", [])
        ['a', 1]

    Source: Wallaroo 0.4 to 0.5 without a state class, 0.6 with one.
    """
    return _named(StateComputationMulti, name, state, outputs=outputs, ttl=ttl)


def key_extractor(function: Callable[P, R]) -> KeyExtractor[P, R]:
    """Make a function `f(data)` a key extractor for `key_by`: it returns a key as str, bytes or int.

    The function runs once per message and again after a restart, so it must depend on the message alone.

    Args:
        function: Takes a message and returns its key.

    Raises:
        WallarooParameterError: T207 if `function` cannot be called.

    Example:
        >>> @key_extractor
        ... def symbol(order):
        ...     return order["symbol"]
        >>> symbol({"symbol": "AAPL"})
        'AAPL'

    Source: Wallaroo 0.6.
    """
    return KeyExtractor(function)


def partition(function: Callable[P, R]) -> Partition[P, R]:
    """Make a function `f(data)` a partition function: it returns the key of a message as str, bytes or int.

    The function runs once per message and again after a restart, so it must depend on the message alone.

    Args:
        function: Takes a message and returns its key.

    Raises:
        WallarooParameterError: T207 if `function` cannot be called.

    Example:
        >>> @partition
        ... def first_letter(data):
        ...     return data[0]
        >>> first_letter("abc")
        'a'

    Source: Wallaroo 0.4 and 0.5.
    """
    return Partition(function)


def encoder(function: Callable[P, R]) -> Encoder[P, R]:
    r"""Make a function `f(data)` an encoder: it returns bytes, str (sent as UTF-8), or None to send nothing.

    Args:
        function: Takes a message. For a sink of Kafka or Spark it may also return a pair of value and key.

    Raises:
        WallarooParameterError: T207 if `function` cannot be called.

    Example:
        >>> @encoder
        ... def line(data):
        ...     return data + "\n"
        >>> line("abc")
        'abc\n'

    Source: Wallaroo 0.4 to 0.6.
    """
    return Encoder(function)


@overload
def decoder(header_length: Callable[P, R], /) -> ValueDecoder[P, R]: ...


@overload
def decoder(*, event_time: EventTime | None = None) -> Callable[[Callable[P, R]], ValueDecoder[P, R]]: ...


@overload
def decoder(
    header_length: int, length_fmt: str, *, event_time: EventTime | None = None
) -> Callable[[Callable[P, R]], Decoder[P, R]]: ...


def decoder(header_length: Any = None, length_fmt: Any = None, *, event_time: EventTime | None = None) -> Any:
    """Make a function `f(bs)` a decoder: it gets a payload, or the value of a record, and returns a message or None.

    A source of TCP needs `header_length` and `length_fmt`, since each payload follows a header with its length. For the
    other sources, such as Kafka, write `@wallaroo.decoder`.

    Args:
        header_length: Number of bytes of the header before each payload.
        length_fmt: Format of `struct` that reads the payload's length in bytes from the header.
        event_time: Takes the payload and returns its time, as for `line_decoder`.

    Raises:
        WallarooParameterError: T207 if `length_fmt` does not fit `header_length`, or the decorated object cannot be
            called.

    Example:
        >>> @decoder(header_length=4, length_fmt=">I")
        ... def text(bs):
        ...     return bs.decode("utf-8")
        >>> text.payload_length(bytes([0, 0, 0, 44]))
        44
        >>> @decoder
        ... def number(value):
        ...     return int(value)
        >>> number.decode(b"12")
        12

    Source: Wallaroo 0.4 to 0.6; without a header it is new.
    """
    if callable(header_length):
        return ValueDecoder(header_length)
    if header_length is None and length_fmt is None:
        return lambda function: ValueDecoder(function, event_time=event_time)
    check_lengths("decoder", header_length, length_fmt)
    return lambda function: Decoder(function, header_length, length_fmt, event_time=event_time)


def _shown(value: Any) -> str:
    """Return a wrong value as text; a function by its name, since a decorator without brackets gets the function."""
    return f"the function {value.__name__}" if inspect.isroutine(value) else shown(value)


def _named(cls: Any, name: str, *rest: Any, **more: Any) -> Any:
    if not isinstance(name, str):
        raise WallarooParameterError.of(
            called_from(), method=cls.kind, parameter="name", actual=_shown(name), expected="a str",
            fix=f'write @wallaroo.{cls.kind}("name")',
        )  # fmt: skip
    return lambda function: cls(function, name, *rest, **more)
