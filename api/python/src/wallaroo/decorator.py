"""The decorators of Wallaroo 0.4 and 0.5.

A decorated function can still be called; `f()` gives the object, `f(x)` runs the function.
"""

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from wallaroo.diagnostic import Diagnostic, shown
from wallaroo.error import WallarooParameterError
from wallaroo.location import called_from
from wallaroo.wrapped import (
    BaseWrapped,
    Computation,
    ComputationMulti,
    Decoder,
    Encoder,
    Partition,
    StateComputation,
    StateComputationMulti,
)

Wrapped = TypeVar("Wrapped", bound=BaseWrapped)
Function = Callable[..., Any]


def computation(name: str) -> Callable[[Function], Computation]:
    """Make a function `f(data)` a computation: it returns one message, or None for no message.

    It runs once per message, on any process, and again after a failure: it should depend on the message alone.

    Args:
        name: Name of the step, as the topology and the logs show it.

    Example:
        >>> @computation("reverse")
        ... def reverse(data):
        ...     return data[::-1]
        >>> reverse("abc"), reverse().name()
        ('cba', 'reverse')
    """
    return _named(Computation, name)


def computation_multi(name: str) -> Callable[[Function], ComputationMulti]:
    """Make a function `f(data)` a computation that returns a list of messages; None is an empty list.

    None items of the list are left out.

    Args:
        name: Name of the step.

    Example:
        >>> @computation_multi("split")
        ... def split(data):
        ...     return data.split(" ")
        >>> split("a b")
        ['a', 'b']
    """
    return _named(ComputationMulti, name)


def state_computation(name: str) -> Callable[[Function], StateComputation]:
    """Make a function `f(data, state)` a state computation: it returns `(message or None, persist)`.

    It may change `state` in place. Messages of one key run one after the other, in arrival order. With `persist`
    False nothing is written for that message: what it changed is saved with the key's next True, and is undefined
    after the state has been read again (restart, failure, full cache). `wallaroo run --check-persist` finds
    such changes.

    Args:
        name: Name of the step.

    Example:
        >>> @state_computation("count")
        ... def count(data, state):
        ...     state[data] = state.get(data, 0) + 1
        ...     return state[data], True
        >>> count("a", {"a": 1})
        (2, True)
    """
    return _named(StateComputation, name)


def state_computation_multi(name: str) -> Callable[[Function], StateComputationMulti]:
    """Make a function `f(data, state)` a state computation that returns `(list of messages or None, persist)`.

    Args:
        name: Name of the step.

    Example:
        >>> @state_computation_multi("pair")
        ... def pair(data, state):
        ...     return [data, state], False
        >>> pair(1, 2)
        ([1, 2], False)
    """
    return _named(StateComputationMulti, name)


def partition(function: Function) -> Partition:
    """Make a function `f(data)` a partition function: it returns the key of a message as str, bytes or int.

    It runs once per message and again after a restart, so it must depend on the message alone.

    Example:
        >>> @partition
        ... def first_letter(data):
        ...     return data[0]
        >>> first_letter("abc")
        'a'
    """
    return Partition(function)


def encoder(function: Function) -> Encoder:
    r"""Make a function `f(data)` an encoder: it returns bytes, str (sent as UTF-8), or None to send nothing.

    Example:
        >>> @encoder
        ... def line(data):
        ...     return data + "\n"
        >>> line("abc")
        'abc\n'
    """
    return Encoder(function)


def decoder(header_length: int, length_fmt: str) -> Callable[[Function], Decoder]:
    """Make a function `f(bs)` a decoder: it gets exactly the payload as bytes, returns a message or None.

    Args:
        header_length: Bytes that stand before each payload.
        length_fmt: Format of `struct` that reads the payload's length from them.

    Raises:
        WallarooParameterError: The two do not go together.

    Example:
        >>> @decoder(header_length=4, length_fmt=">I")
        ... def text(bs):
        ...     return bs.decode("utf-8")
        >>> text.payload_length(bytes([0, 0, 0, 44]))
        44
    """
    try:
        size = struct.calcsize(length_fmt)
    except (struct.error, TypeError):
        size = -1
    if size != header_length:
        raise WallarooParameterError(
            Diagnostic.of(
                "T207",
                **called_from().shown()._asdict(),
                method="decoder",
                parameter="length_fmt",
                actual=shown(length_fmt),
                expected=f"a struct format of header_length = {shown(header_length)} bytes",
                fix='for a length of 4 bytes, big-endian, write decoder(header_length=4, length_fmt=">I")',
            )  # fmt: skip
        )
    return lambda function: Decoder(function, header_length, length_fmt)


def _named(cls: type[Wrapped], name: str) -> Callable[[Function], Wrapped]:
    if not isinstance(name, str):
        raise WallarooParameterError(
            Diagnostic.of(
                "T207",
                **called_from().shown()._asdict(),
                method=cls.kind,
                parameter="name",
                actual=shown(name),
                expected="a str",
                fix=f'write @wallaroo.{cls.kind}("name")',
            )  # fmt: skip
        )
    return lambda function: cls(function, name)
