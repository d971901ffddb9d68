"""What runs and steps count besides messages in, out and dead letters: declared here, and passed through by name.

Workers count what steps have, in their counts of a call (`more` of `StepCount`); queries count what a run has.
"""

from typing import NamedTuple

from wallaroo_runtime.plan.stage import NodeKind


class StepCounter(NamedTuple):
    """A counter.

    Attributes:
        kind: Of the nodes that have it; it is at most the number of messages that came to one.
        text: What it counts, for metrics and for people.
    """

    kind: NodeKind
    text: str


RUN_COUNTERS = {"visits": "Visits in this run.", "visited_keys": "Keys that visits of this run ran for."}
MESSAGES = {
    "messages_in": "Messages that came to a source, step or sink.",
    "messages_out": "Messages that it emitted.",
    "dead_letters": "Messages that failed in it.",
}
COUNTERS = {
    "dropped_late": StepCounter(NodeKind.WINDOW, "Messages that a window dropped, since they came too late."),
}
