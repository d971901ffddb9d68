"""Adds up the counts of workers at sources, steps and sinks, over calls and tasks."""

from collections import Counter
from collections.abc import Mapping

StepCount = Counter[str]  # counts by name: `messages_in`, `messages_out`, `dead_letters`, and the counters of the step
StepCounts = dict[str, StepCount]  # counts by path of the source, step or sink


def refusal(count: int) -> StepCount:
    """Return the correction of a sink's counts if the sink does not take some messages that its encoder has emitted."""
    return Counter(messages_out=-count, dead_letters=count)


def add_steps(into: StepCounts, others: Mapping[str, Mapping[str, int]]) -> None:
    """Add other counts, by path.

    Example:
        >>> counts = {"0/steps/0": Counter(messages_in=2, messages_out=1)}
        >>> add_steps(counts, {"0/steps/0": {"messages_in": 3, "dead_letters": 1}, "0/sinks/0": {"messages_in": 4}})
        >>> dict(counts["0/steps/0"]), dict(counts["0/sinks/0"])
        ({'messages_in': 5, 'messages_out': 1, 'dead_letters': 1}, {'messages_in': 4})
    """
    for path, count in others.items():
        into.setdefault(path, Counter()).update(count)
