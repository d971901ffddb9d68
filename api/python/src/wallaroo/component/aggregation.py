"""The base class of aggregations, which compute the result of a window from its messages."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple


class WindowBounds(NamedTuple):
    """The start and the end of a window, in milliseconds since 1970.

    A window of time contains times from `start_ms` on and before `end_ms`. For a count window they are the times of its
    first and its last message. For a late message that is emitted alone, both are the message's time.

    Attributes:
        start_ms: Start of the window.
        end_ms: End of the window.

    Example:
        >>> bounds = WindowBounds(start_ms=60_000, end_ms=120_000)
        >>> bounds.end_ms - bounds.start_ms
        60000
    """

    start_ms: int
    end_ms: int


class Aggregation(ABC):
    """Computes the result of a window: messages are added to accumulators, which are combined and become an output.

    Accumulators are saved like states. Parts of a window are aggregated separately and then combined, so `combine` must
    be associative, and combining with the initial accumulator must change nothing.

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
        outputs: Names of further outputs. To emit a message to a named output, the method `output` returns
            `wallaroo.output(name, value)`.

    Source: Wallaroo 0.6; named outputs are new here.
    """

    outputs: tuple[str, ...] = ()

    def name(self) -> str:
        """Return the name of the step, by default the name of the class."""
        return type(self).__name__

    @abstractmethod
    def initial_accumulator(self) -> Any:
        """Return a new accumulator that holds no message."""

    @abstractmethod
    def update(self, input: Any, accumulator: Any) -> Any:
        """Add a message to an accumulator by changing the accumulator in place.

        The accumulator must be a mutable object. The return value has no effect, as in Wallaroo. But if it is a new
        accumulator, the message is a dead letter (C522), because the content of the new accumulator would be lost.
        """

    @abstractmethod
    def combine(self, accumulator1: Any, accumulator2: Any) -> Any:
        """Return an accumulator for the messages of both accumulators. The method must not change its arguments."""

    @abstractmethod
    def output(self, key: str, accumulator: Any) -> Any:
        """Return the window's output for a key, or None for no output. The method must not change the accumulator.

        If the method has a parameter `bounds`, it gets the start and end of the window as a `WindowBounds`.

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
