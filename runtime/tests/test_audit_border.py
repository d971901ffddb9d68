"""A message that a SEND cannot write came out of its part, and is a dead letter of the part's path: both add up."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from wallaroo.message.frame import DEAD_LETTER_PORT
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.worker.audit import Audit, RuleError

FIRST = {"0/sources/0": pb.NODE_KIND_SOURCE, "0/steps/9": pb.NODE_KIND_STATE_COMPUTATION}
STEP, KEY, LATE = "0/steps/0", "0/steps/1", "0/steps/2"
# How a message fares: it fails, goes nowhere, or on to the next part, or to the output; its SEND writes it, or cannot.
ALL = some.tuples(some.sampled_from(["dead", "none", "next"]), some.booleans())
STEPS = some.tuples(some.sampled_from(["dead", "none", "next", "late"]), some.booleans())
MESSAGES = some.lists(some.tuples(ALL, STEPS, ALL, some.booleans()), max_size=12)


def stage_of(first: str) -> pb.Stage:
    """Return an entry, a step with an output, and a key_by, each with a SEND; its port is 1 and so on."""
    stage = pb.Stage(id="s0")
    stage.nodes.add(path=first, kind=FIRST[first], port=0)
    stage.nodes.add(path=STEP, kind=pb.NODE_KIND_COMPUTATION, inputs=[first])
    stage.nodes.add(path=KEY, kind=pb.NODE_KIND_KEY_BY, inputs=[STEP])
    stage.nodes.add(path=LATE, kind=pb.NODE_KIND_OUTPUT, inputs=[STEP], output="late")
    for port, path in enumerate((first, STEP, KEY, LATE), 1):
        stage.nodes.add(path=path, kind=pb.NODE_KIND_SEND, inputs=[path], port=port)
    return stage


class Call:
    """What a right worker says of a call."""

    def __init__(self, first: str) -> None:
        self.paths = (first, STEP, KEY, LATE)
        self.nodes = {path: [0, 0, 0] for path in self.paths}
        self.unsent, self.left = Counter[str](), Counter[int]()

    def run(self, path: str, fate: str, *, is_sent: bool) -> bool:
        """Run a message through a part and its SEND; says whether it goes on."""
        row = self.nodes[path]
        row[0] += 1
        row[1] += fate == "next"
        row[2] += fate == "dead"
        if fate == "next":
            self.left[self.paths.index(path) + 1] += is_sent
            self.unsent[path] += not is_sent
        self.left[DEAD_LETTER_PORT] += fate == "dead" or (fate == "next" and not is_sent)
        return fate == "next"

    def counts(self) -> list[pb.StepCount]:
        nodes = [
            pb.StepCount(path=path, messages_in=came, messages_out=went, dead_letters=dead)
            for path, (came, went, dead) in self.nodes.items()
        ]
        return nodes + [pb.StepCount(path=path, dead_letters=number) for path, number in self.unsent.items()]


@settings(deadline=None)
@given(some.sampled_from(list(FIRST)), MESSAGES)
def test_what_a_send_cannot_write_adds_up_and_one_more_does_not(
    first: str, messages: list[tuple[tuple[str, bool], tuple[str, bool], tuple[str, bool], bool]]
) -> None:
    call = Call(first)
    for entry, step, key, late in messages:
        if call.run(first, entry[0], is_sent=entry[1]):
            call.run(STEP, step[0], is_sent=step[1])
            if step[0] == "next":
                call.run(KEY, key[0], is_sent=key[1])
            elif step[0] == "late":
                call.run(LATE, "next", is_sent=late)
    audit, came = Audit(stage_of(first)), {0: len(messages)}
    audit.call(came, call.left, call.counts())
    for port, path in enumerate(call.paths, 1):
        entered, went, dead = call.nodes[path]
        if entered == went + dead:
            call.nodes[path][2] += 1
            with pytest.raises(RuleError, match="messages_out"):
                audit.call(came, call.left + Counter({DEAD_LETTER_PORT: 1}), call.counts())
            call.nodes[path][2] -= 1
        if call.left[port] and not dead:  # else one of the dead letters of its path could be the SEND's
            with pytest.raises(RuleError):
                audit.call(came, call.left - Counter({port: 1}), call.counts())
