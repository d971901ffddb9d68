"""The counters of runs and steps besides messages in, out and dead letters: declared here, and passed through by name.

Workers count what steps have, in their counts of a call (`more` of `StepCount`); queries count what a run has.
"""

from collections.abc import Callable
from typing import NamedTuple

from wallaroo_runtime.plan.stage import Node, NodeKind


class StepCounter(NamedTuple):
    """A counter.

    Attributes:
        is_of: Says whether a node has it. Of a window it is at most the number of messages that came to it.
        text: What it counts, for metrics and for people.
    """

    is_of: Callable[[Node], bool]
    text: str


def _is_window(node: Node) -> bool:
    return node.kind is NodeKind.WINDOW


def _is_timed(node: Node) -> bool:
    return node.is_timed


RUN_COUNTERS = {"visits": "Visits in this run.", "visited_keys": "Keys that visits of this run ran for."}
MESSAGES = {
    "messages_in": "Messages that came to a source, step or sink.",
    "messages_out": "Messages that it emitted.",
    "dead_letters": "Messages that failed in it.",
}
COUNTERS = {
    "dropped_late": StepCounter(_is_window, "Messages that a window dropped, since they came too late."),
    "expired": StepCounter(_is_timed, "Keys whose state is gone, since no message came for as long as its ttl."),
    "timers_fired": StepCounter(_is_timed, "How often timers of a step ran, failed ones among them."),
}
