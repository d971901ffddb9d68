"""Generators of the application Streams: `counting` gives 1 to 5, `stumbling` 1 to 3 and raises."""

from conformance.application import VECTOR_WINDOWS, part, stage
from conformance.check import Context, check
from conformance.keys import SINK, SOURCE, SUNK
from conformance.process import CALL_S
from conformance.session import process
from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb

COUNTING, STUMBLING = (f"0/sources/{len(VECTOR_WINDOWS) + at}" for at in (1, 2))
PORT = 20


def generate(context: Context, path: str, **fields: object) -> pb.GenerateReply:
    """Ask for messages."""
    request = pb.GenerateRequest(**({"path": path, "max_count": 100, "max_bytes": 1 << 20} | fields))
    return context.streams.stub().Generate(request, timeout=CALL_S)


def texts(context: Context, path: str, reply: pb.GenerateReply) -> list[str]:
    """Return the messages of a reply, as a stage that begins with the generator's source reads them."""
    frame = encode_frame(list(reply.values), port=PORT, encoding=reply.encoding)
    description = stage("g", part(path, "SOURCE", port=PORT), part(SINK, "SINK", path, port=SUNK))
    (answer,) = process(context.streams, description, [frame])
    assert not answer.letters, answer.codes()
    return [text for _, text in answer.texts(SUNK)]


@check("generate: from the initial value to the end")
def whole(context: Context) -> None:
    reply = generate(context, COUNTING, begins=True)
    assert not reply.HasField("failure"), reply.failure
    assert texts(context, COUNTING, reply) == ["1", "2", "3", "4", "5"]
    assert reply.ended


@check("generate: on from the message before, no more than are asked for")
def pieces(context: Context) -> None:
    first = generate(context, COUNTING, begins=True, max_count=2)
    assert texts(context, COUNTING, first) == ["1", "2"]
    assert not first.ended
    fields = {"previous": first.values[-1], "previous_encoding": first.encoding}
    second = generate(context, COUNTING, **fields, max_count=1)
    assert texts(context, COUNTING, second) == ["3"]
    assert texts(context, COUNTING, generate(context, COUNTING, **fields)) == ["3", "4", "5"]
    last = generate(context, COUNTING, previous=first.values[-1])
    assert texts(context, COUNTING, last) == ["3", "4", "5"], "encoding 0 is what the worker writes now"


@check("generate: the message that reaches max_bytes is the last of a reply")
def limited(context: Context) -> None:
    reply = generate(context, COUNTING, begins=True, max_bytes=1)
    assert texts(context, COUNTING, reply) == ["1"]
    assert not reply.ended


@check("generate: a failure comes with the values before it")
def stumbles(context: Context) -> None:
    reply = generate(context, STUMBLING, begins=True)
    assert texts(context, STUMBLING, reply) == ["1", "2", "3"]
    assert reply.failure.code, "no failure"
    assert "the generator was asked to raise" in reply.failure.message
    assert not reply.ended


@check("generate: a source that is no generator is W403")
def other_source(context: Context) -> None:
    assert generate(context, SOURCE, begins=True).failure.code == "W403"
