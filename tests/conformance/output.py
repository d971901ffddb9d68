"""Named outputs; of the step `emit` of the application Streams."""

from conformance.application import WORDS, part, stage
from conformance.check import Context, check
from conformance.keys import FIRST, SINK, SOURCE, SUNK
from conformance.session import Answer, process, source_frame

EMIT, EVEN, ODD = (f"0/steps/{2 * FIRST + at}" for at in (6, 7, 8))


def emitted(context: Context, payloads: list[str], *inputs: str) -> Answer:
    """Run texts through `emit`; some nodes go to a sink."""
    outputs = [part(path, "OUTPUT", EMIT, output=name) for path, name in ((EVEN, "even"), (ODD, "odd"))]
    nodes = [part(SOURCE, "SOURCE", port=WORDS), part(EMIT, "COMPUTATION_MULTI", SOURCE), *outputs]
    data = source_frame(WORDS, [text.encode() for text in payloads], 5)
    description = stage("o", *nodes, part(SINK, "SINK", *inputs, port=SUNK))
    (answer,) = process(context.streams, description, [data])
    return answer


@check("output: messages go where they are emitted to, in order")
def routes(context: Context) -> None:
    payloads = ["main:a,even:b,odd:c,even:d", "odd:e", "even:f,main:g"]
    expected = {EMIT: [(5, "a"), (7, "g")], EVEN: [(5, "b"), (5, "d"), (7, "f")], ODD: [(5, "c"), (6, "e")]}
    for path, texts in expected.items():
        answer = emitted(context, payloads, path)
        assert answer.texts(SUNK) == texts, (path, answer.texts(SUNK))
        assert not answer.letters, answer.codes()


@check("output: counts of a computation and its outputs")
def counts(context: Context) -> None:
    answer = emitted(context, ["main:a,even:b,even:c", "odd:d"], EMIT)
    found = {each.path: (each.messages_in, each.messages_out) for each in answer.done.counts}
    assert (found[EMIT], found[EVEN], found[ODD]) == ((2, 1), (2, 2), (1, 1)), found


@check("output: nothing goes on of what a failing call emitted")
def failure(context: Context) -> None:
    answer = emitted(context, ["even:a,main:b,fail", "even:c"], EMIT, EVEN, ODD)
    assert answer.texts(SUNK) == [(6, "c")]
    assert answer.codes() == [("C501", EMIT, 5)], answer.codes()


@check("output: a message for an output that is not declared fails the call with C527")
def undeclared(context: Context) -> None:
    answer = emitted(context, ["even:a,other:b,main:c", "even:d"], EMIT, EVEN, ODD)
    assert answer.texts(SUNK) == [(6, "d")]
    assert answer.codes() == [("C527", EMIT, 5)], answer.codes()
