"""The objects that the decorators return for functions. They have the methods of Wallaroo's components."""

import functools
import importlib
import struct
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, overload

from wallaroo.component.signature import call_finding, check_lengths
from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.error import WallarooParameterError

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
C = TypeVar("C", covariant=True)
Own = TypeVar("Own")
F = TypeVar("F", bound=Callable[..., Any])
EventTime: TypeAlias = Callable[[bytes], float]
_declared: dict[tuple[str, str], "BaseWrapped[..., Any]"] = {}


def declared(module: str, qualname: str) -> "BaseWrapped[..., Any]":
    """Return the decorated object with this name in a module; unpickling calls this function."""
    if (module, qualname) not in _declared:
        importlib.import_module(module)
    return _declared[module, qualname]


class BaseWrapped(Generic[P, R]):
    """A decorated function; the base class of the results of all decorators.

    `f(x)` runs the function, `f()` returns this object. A pickle of this object contains only its module and name. Type
    checkers see the parameters and the result type of the function: `BaseWrapped[P, R]`.

    Args:
        function: The user's function.
        name: Name of the step; None takes the function's name.

    Raises:
        WallarooParameterError: T207 if `function` cannot be called.

    Source: Wallaroo 0.4 and 0.5, where `f` and `f()` are the same object, too; the class is public since 0.5.2.
    """

    kind = "component"
    parameters: tuple[str, ...] = ("data",)
    outputs: tuple[str, ...] = ()
    # Whether the methods only pass their arguments on to the function. If so, workers call the function itself.
    is_direct = True

    def __init__(self, function: Callable[P, R], name: str | None = None) -> None:
        if not callable(function):
            raise WallarooParameterError.of(
                method=self.kind, parameter="function", actual=repr(function), expected="a function",
                fix=f"put the decorator right above a function `def f({', '.join(self.parameters)})`",
            )  # fmt: skip
        functools.update_wrapper(self, function)
        self.function: Callable[..., R] = function
        self._name = getattr(function, "__name__", type(function).__name__) if name is None else name
        self.may_yield = self.kind.endswith("_multi") and getattr(self, "state_class", self) is not None
        self.finding = call_finding(self.kind, self._name, function, self.parameters, may_yield=self.may_yield)
        _declared[self.__module__, getattr(self, "__qualname__", self._name)] = self

    def name(self) -> str:
        """Return the name that the decorator got, or the function's name if the decorator got no name."""
        return self._name

    @overload
    def __call__(self: Own) -> Own: ...

    @overload
    def __call__(self, *arguments: P.args, **keywords: P.kwargs) -> R: ...

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run the function with these arguments. If there are none, return this object."""
        return self.function(*arguments, **keywords) if arguments or keywords else self

    def __reduce__(self) -> Any:
        return declared, (self.__module__, getattr(self, "__qualname__", self._name))


class WithOutputs(BaseWrapped[P, R]):
    """A decorated computation: the common part of computations and state computations.

    Attributes:
        outputs: Names of the outputs to which the computation may emit.
    """

    def __init__(self, function: Callable[P, R], name: str | None = None, *, outputs: Sequence[str] = ()) -> None:
        super().__init__(function, name)
        if isinstance(outputs, str) or not all(isinstance(each, str) for each in outputs):
            raise WallarooParameterError.of(
                method=self.kind, parameter="outputs", actual=shown(outputs), expected="names, e.g. a tuple of str",
                fix=f'write @wallaroo.{self.kind}("{self._name}", outputs=("NAME",))',
            )  # fmt: skip
        self.outputs = tuple(outputs)


class Computation(WithOutputs[P, R]):
    """A computation with at most one output message for each input message; made by `computation`.

    Use the class directly for a function that cannot be decorated, e.g. one of a library.

    Args:
        function: Takes a message and returns a message or None.
        name: Name of the step; None takes the function's name.
        outputs: Names of the outputs to which the function may emit.

    Raises:
        WallarooParameterError: T207 if `function` cannot be called, or `outputs` is not a sequence of names.

    Example:
        >>> upper = Computation(str.upper, "upper")
        >>> upper.name(), upper.compute("abc")
        ('upper', 'ABC')

    Source: Wallaroo 0.5.2.
    """

    kind = "computation"

    def compute(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Run the computation."""
        return self.function(*arguments, **keywords)


class ComputationMulti(WithOutputs[P, R]):
    """A computation with any number of output messages; made by `computation_multi`, parameters as for `Computation`.

    Example:
        >>> split = ComputationMulti(str.split, "split")
        >>> split.compute_multi("to be or")
        ['to', 'be', 'or']

    Source: Wallaroo 0.5.2.
    """

    kind = "computation_multi"

    def compute_multi(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Run the computation."""
        return self.function(*arguments, **keywords)


class Partition(BaseWrapped[P, R]):
    """A partition function, which returns a message's key; made by `partition`, parameters as for `BaseWrapped`.

    Example:
        >>> Partition(len).partition("abc")
        3

    Source: Wallaroo 0.5.2.
    """

    kind = "partition"

    def partition(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Return the key of a message."""
        return self.function(*arguments, **keywords)

    extract_key = partition


class KeyExtractor(Partition[P, R]):
    """A key extractor, which returns a message's key; made by `key_extractor`, parameters as for `BaseWrapped`.

    Example:
        >>> def symbol(order):
        ...     return order["symbol"]
        >>> KeyExtractor(symbol).extract_key({"symbol": "AAPL", "amount": 5})
        'AAPL'

    Source: Wallaroo 0.6.
    """

    kind = "key_extractor"


class Encoder(BaseWrapped[P, R]):
    """Converts a message to the bytes that a sink sends; made by `encoder`, parameters as for `BaseWrapped`.

    Example:
        >>> Encoder(str.encode).encode("abc")
        b'abc'

    Source: Wallaroo 0.5.2.
    """

    kind = "encoder"

    def encode(self, data: Any) -> Any:
        """Return the bytes of a message."""
        return self.function(data)


class ValueDecoder(BaseWrapped[P, R]):
    """Converts the value of a record to a message; made by `decoder` without `header_length`.

    Args:
        function: Takes the value of a record, as bytes.
        event_time: Takes the same bytes and returns their time in milliseconds since 1970.

    Example:
        >>> ValueDecoder(bytes.decode).decode(b"abc")
        'abc'
    """

    kind = "decoder"
    parameters = ("bs",)
    event_time: EventTime | None = None

    def __init__(self, function: Callable[P, R], *, event_time: EventTime | None = None) -> None:
        super().__init__(function)
        if event_time is None:
            return  # a subclass may define `event_time` as a method
        if not callable(event_time):
            raise WallarooParameterError.of(
                method=self.kind, parameter="event_time", actual=shown(event_time), expected="a function",
                fix="pass a function `def f(bs)` that returns milliseconds since 1970",
            )  # fmt: skip
        self.finding = self.finding or call_finding("event_time", self._name, event_time, self.parameters)
        self.event_time = event_time

    def decode(self, bs: bytes) -> R:
        """Return the message of a value, or None to drop it."""
        return self.function(bs)


class Decoder(ValueDecoder[P, R]):
    """Converts a payload of a TCP stream to a message; made by `decoder` with `header_length`.

    Args:
        function: Takes a payload.
        header_length: Number of bytes of the header before each payload.
        length_fmt: Format of `struct` that reads the payload's length in bytes from the header.
        event_time: Takes a payload and returns its time in milliseconds since 1970, which windows and timers use.

    Raises:
        WallarooParameterError: T207 if `length_fmt` does not fit `header_length`, or `function` or `event_time` cannot
            be called.

    Example:
        >>> text = Decoder(bytes.decode, header_length=2, length_fmt=">H")
        >>> text.header_length(), text.payload_length(bytes([0, 3])), text.decode(b"abc")
        (2, 3, 'abc')

    Source: Wallaroo 0.5.2.
    """

    def __init__(
        self, function: Callable[P, R], header_length: int, length_fmt: str, *, event_time: EventTime | None = None
    ) -> None:
        super().__init__(function, event_time=event_time)
        check_lengths(type(self).__name__, header_length, length_fmt)
        self._header_length = header_length
        self._format = struct.Struct(length_fmt)

    def header_length(self) -> int:
        """Return the number of bytes before each payload."""
        return self._header_length

    def payload_length(self, bs: bytes) -> int:
        """Return the length of the payload that follows a header."""
        return int(self._format.unpack(bs)[0])


class StateBuilder(Generic[R]):
    """Makes the state of a key from a class.

    Args:
        state_class: Class or function that makes a state; it takes no arguments.

    Example:
        >>> StateBuilder(dict).build()
        {}

    Source: Wallaroo 0.5.
    """

    def __init__(self, state_class: Callable[[], R]) -> None:
        self.state_class = state_class

    def build(self) -> R:
        """Return a new state."""
        return self.state_class()
