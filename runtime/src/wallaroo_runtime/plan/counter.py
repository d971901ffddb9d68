"""Declares the additional counters of runs and steps. Other code passes these counters on by name.

The basic counters are messages in, messages out and dead letters. Workers count for steps, and return these counts
with each call (`more` of `StepCount`). Queries count for runs.
"""

import operator
from collections.abc import Callable
from typing import NamedTuple

from wallaroo_runtime.plan.plan import Node, NodeKind


class StepCounter(NamedTuple):
    """A counter that only some kinds of steps have, such as late messages of windows.

    Attributes:
        is_of: Returns whether a node has the counter. A window's count may not exceed the number of its messages.
        text: Description for metrics and for people.
    """

    is_of: Callable[[Node], bool]
    text: str


_IS_TIMED = operator.attrgetter("is_timed")
RUN_COUNTERS = {"visits": "Visits in this run.", "visited_keys": "Keys that visits of this run ran for."}
MESSAGES = {
    "messages_in": "Messages that came to a source, step or sink.",
    "messages_out": "Messages that it emitted.",
    "dead_letters": "Messages that failed in it.",
}
COUNTERS = {
    "dropped_late": StepCounter(
        lambda node: node.kind is NodeKind.WINDOW, "Messages that a window dropped, since they came too late."
    ),
    "expired": StepCounter(_IS_TIMED, "Keys whose state is gone, since no message came for as long as its ttl."),
    "timers_fired": StepCounter(_IS_TIMED, "How often timers of a step ran, failed ones among them."),
}
