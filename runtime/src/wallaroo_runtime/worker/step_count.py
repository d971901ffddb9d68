"""Adds up counts over calls and tasks: of messages at sources, steps and sinks, and of keys in visits."""

from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

StepCount = Counter[str]  # counts by name: `messages_in`, `messages_out`, `dead_letters`, and the counters of the step
StepCounts = dict[str, StepCount]  # counts by path of the source, step or sink
VisitCounts = dict[int, StepCount]  # by id of the visit: `keys`, counted for each step, and how many of them `failed`
Place = TypeVar("Place")


def refusal(count: int) -> StepCount:
    """Return the counts to add at a sink that refused `count` encoded messages: they become dead letters."""
    return Counter(messages_out=-count, dead_letters=count)


def count_run(visits: VisitCounts) -> StepCount:
    """Return the numbers of visits and of visited keys, under their names in `RUN_COUNTERS`."""
    return Counter(visits=len(visits), visited_keys=sum(each["keys"] for each in visits.values()))


def add_up(into: dict[Place, StepCount], others: Mapping[Place, Mapping[str, int]]) -> None:
    """Add other counts to `into`. The keys of both are paths of sources, steps and sinks, or ids of visits.

    Example:
        >>> counts = {"0/steps/0": Counter(messages_in=2, messages_out=1)}
        >>> add_up(counts, {"0/steps/0": {"messages_in": 3, "dead_letters": 1}, "0/sinks/0": {"messages_in": 4}})
        >>> dict(counts["0/steps/0"]), dict(counts["0/sinks/0"])
        ({'messages_in': 5, 'messages_out': 1, 'dead_letters': 1}, {'messages_in': 4})
    """
    for place, count in others.items():
        into.setdefault(place, Counter()).update(count)
