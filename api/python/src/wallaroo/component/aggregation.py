"""The aggregation of a window's messages."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple


class WindowBounds(NamedTuple):
    """When a window begins and ends, in milliseconds since 1970.

    A window of time holds the times from `start_ms` to before `end_ms`. Of a late message that is emitted alone, and of
    a window of a number of messages, both are times of messages: the first and the last one.

    Attributes:
        start_ms: Its begin.
        end_ms: Its end.

    Example:
        >>> bounds = WindowBounds(start_ms=60_000, end_ms=120_000)
        >>> bounds.end_ms - bounds.start_ms
        60000
    """

    start_ms: int
    end_ms: int


class Aggregation(ABC):
    """The aggregation of a window: messages go into accumulators, which are combined and turned into an output.

    Accumulators are saved like states. Parts of a window are computed apart and combined, so `combine` must be
    associative, and combining with the initial accumulator must change nothing.

    Example:
        >>> class Total(Aggregation):
        ...     def initial_accumulator(self):
        ...         return [0]
        ...
        ...     def update(self, input, accumulator):
        ...         accumulator[0] += input
        ...
        ...     def combine(self, accumulator1, accumulator2):
        ...         return [accumulator1[0] + accumulator2[0]]
        ...
        ...     def output(self, key, accumulator):
        ...         return key, accumulator[0]
        >>> Total().name()
        'Total'

    Attributes:
        outputs: Names of the outputs that `output` may emit to, with `wallaroo.output(name, value)`.

    Source: Wallaroo 0.6; named outputs are new here.
    """

    outputs: tuple[str, ...] = ()

    def name(self) -> str:
        """Return the name of the step; the class's by default."""
        return type(self).__name__

    @abstractmethod
    def initial_accumulator(self) -> Any:
        """Return a new accumulator that holds no message."""

    @abstractmethod
    def update(self, input: Any, accumulator: Any) -> Any:
        """Take a message into an accumulator, which it changes in place.

        What it returns has no effect, as in Wallaroo. A message for which it returns a new accumulator is a dead letter
        (C522), since its content would be lost: an accumulator must be an object that can change.
        """

    @abstractmethod
    def combine(self, accumulator1: Any, accumulator2: Any) -> Any:
        """Return the accumulator of the messages of both, which it leaves as they are."""

    @abstractmethod
    def output(self, key: str, accumulator: Any) -> Any:
        """Return the window's output for a key, or None for none; it leaves the accumulator as it is.

        With a further parameter `bounds` it gets when the window begins and ends, as a `WindowBounds`.

        Example:
            >>> class Counted(Aggregation):
            ...     def initial_accumulator(self):
            ...         return [0]
            ...
            ...     def update(self, input, accumulator):
            ...         accumulator[0] += 1
            ...
            ...     def combine(self, accumulator1, accumulator2):
            ...         return [accumulator1[0] + accumulator2[0]]
            ...
            ...     def output(self, key, accumulator, bounds=None):
            ...         return key, bounds.start_ms, accumulator[0]
            >>> Counted().output("a", [3], bounds=WindowBounds(60_000, 120_000))
            ('a', 60000, 3)
        """
