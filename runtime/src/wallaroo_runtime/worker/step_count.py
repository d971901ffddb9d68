"""What workers have counted at the sources, steps and sinks, added up over calls and tasks."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from wallaroo.worker._proto import worker_pb2 as pb


@dataclass(frozen=True, slots=True)
class StepCount:
    """What passed a source, step or sink.

    Attributes:
        messages_in: Messages that came to it.
        dead_letters: Messages that failed in it.
        dropped_late: Messages that a window dropped, since they came too late.
    """

    messages_in: int = 0
    messages_out: int = 0
    dead_letters: int = 0
    dropped_late: int = 0

    def __sub__(self, other: "StepCount") -> "StepCount":
        return StepCount(
            self.messages_in - other.messages_in,
            self.messages_out - other.messages_out,
            self.dead_letters - other.dead_letters,
            self.dropped_late - other.dropped_late,
        )

    def __add__(self, other: "StepCount") -> "StepCount":
        return StepCount(
            self.messages_in + other.messages_in,
            self.messages_out + other.messages_out,
            self.dead_letters + other.dead_letters,
            self.dropped_late + other.dropped_late,
        )


def refusal(count: int) -> StepCount:
    """Return what changes where a sink does not take messages that its encoder has emitted."""
    return StepCount(messages_out=-count, dead_letters=count)


StepCounts = dict[str, StepCount]  # by path


def count_steps(into: StepCounts, counts: Iterable[pb.StepCount]) -> None:
    """Add what a call has counted."""
    for count in counts:
        one = StepCount(count.messages_in, count.messages_out, count.dead_letters, count.dropped_late)
        add_steps(into, {count.path: one})


def add_steps(into: StepCounts, others: Mapping[str, StepCount]) -> None:
    """Add what others have counted.

    Example:
        >>> counts = {"0/steps/0": StepCount(2, 1)}
        >>> add_steps(counts, {"0/steps/0": StepCount(3, 3, 1), "0/sinks/0": StepCount(4, 4)})
        >>> counts["0/steps/0"]
        StepCount(messages_in=5, messages_out=4, dead_letters=1, dropped_late=0)
    """
    for path, count in others.items():
        into[path] = into.get(path, StepCount()) + count
