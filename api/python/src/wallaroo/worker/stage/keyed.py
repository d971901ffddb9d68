"""State steps and window steps. Stages with state begin with such steps, since a shuffle by key is before them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wallaroo.component.application import State, Step
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.stage.crossing import Values
from wallaroo.worker.window.window import Window


@dataclass(slots=True)
class StateEntry:
    """A state step with which a stage begins, and all that a bucket call needs to run it.

    Attributes:
        closed_keys: The only keys that may have a state; None if all keys may.
        is_timed: Whether its state has a time to live, or a step with this state has timers.
    """

    number: int
    node: pb.Node
    step: Step
    state: State
    closed_keys: frozenset[bytes] | None
    values: Values
    is_timed: bool = False


@dataclass(slots=True)
class WindowEntry:
    """A window step with which a stage begins, and all that a bucket call needs to run it.

    Attributes:
        give: Passes results of windows downstream; takes the results with their times, a sequence and a key.
        is_timed: Always true, as windows depend on the times of messages.
    """

    number: int
    node: pb.Node
    step: Step
    window: Window
    values: Values
    give: Callable[[list[tuple[Any, int]], int, bytes], None]
    is_timed: bool = True
