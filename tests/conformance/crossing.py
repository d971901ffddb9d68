"""Messages that change the stage within a task: the built-in codecs, keys and times, the worker's own form."""

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from conformance.application import COUNT, WORDS, bucket_of, node, stage
from conformance.check import Context, check
from conformance.session import Answer, BucketStore, ProcessStream, call, source_frame
from wallaroo.message.frame import encode_frame, read_frame
from wallaroo.worker._proto import worker_pb2 as pb

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).resolve().parents[2] / "topology-schema" / "vectors" / "codecs.json").read_text(encoding="utf-8")
)
CODECS = tuple(dict.fromkeys(case["codec"] for case in VECTORS["cases"]))
SOURCE, ACT, STATE = "0/sources/0", "0/steps/0", "0/steps/2"
IN, OUT = 40, 41  # ports at a border belong to nobody else


class Sent(NamedTuple):
    """A message that a SEND or KEY exit gave."""

    value: bytes
    sequence: int
    key: bytes | None
    time: int


class Crossed(NamedTuple):
    """What a stage gave for one data.

    Attributes:
        sent: The messages of its exit, in order.
        answer: Its dead letters and counts.
        frames: The frames of its exit.
    """

    sent: list[Sent]
    answer: Answer
    frames: list[bytes]


def border(kind: str, codec: str, *inputs: str, path: str = SOURCE, **more: Any) -> pb.Node:
    """Return a RECEIVE (port IN) or SEND (port OUT) for the messages of a part."""
    port = IN if kind == "RECEIVE" else OUT
    return pb.Node(
        path=path, kind=pb.NodeKind.Value(f"NODE_KIND_{kind}"), inputs=inputs, port=port, codec=codec, **more
    )


def passing(codec: str, **more: Any) -> pb.Stage:
    """Return a stage that receives messages and sends them on."""
    return stage("c", border("RECEIVE", codec, **more), border("SEND", codec, SOURCE, **more))


def cross(context: Context, description: pb.Stage, frames: bytes, port: int = OUT) -> Crossed:
    """Run one data through a stage."""
    crossed = Crossed([], Answer(), [])
    with ProcessStream(context.worker, description) as stream:
        stream.send(data=pb.Data(index=0, frames=frames))
        while not isinstance(reply := stream.receive(), pb.Done):
            if reply.port == port:
                crossed.frames.append(reply.frame)
                crossed.sent.extend(messages(reply))
            else:
                crossed.answer.add(reply)
        crossed.answer.done = reply
    return crossed


def messages(output: pb.Output) -> list[Sent]:
    """Take an output apart."""
    frame = read_frame(output.frame)
    assert frame.header.flags & 2, "an output frame has no sequences"
    times = frame.times()
    keys = [frame.keys[index] for index in frame.key_indexes] if frame.keys else [None] * frame.header.count
    return [Sent(value, frame.sequence_of(at), keys[at], times[at]) for at, value in enumerate(frame.values())]


def totals(crossed: Crossed) -> dict[str, list[int]]:
    """Return messages in, messages out and dead letters, by path."""
    found: dict[str, list[int]] = {}
    for each in crossed.answer.done.counts:
        row = found.setdefault(each.path, [0, 0, 0])
        for at, number in enumerate((each.messages_in, each.messages_out, each.dead_letters)):
            row[at] += number
    return found


def received(values: Sequence[bytes], **columns: Any) -> bytes:
    """Return a frame for a RECEIVE."""
    return encode_frame(values, port=IN, **columns)


def codec_check(codec: str) -> None:
    """Add the checks of one codec."""

    @check(f"codec {codec}: values come out as they went in")
    def same(context: Context) -> None:
        values = [bytes.fromhex(case["hex"]) for case in VECTORS["cases"] + VECTORS["kept"] if case["codec"] == codec]
        crossed = cross(context, passing(codec), received(values, sequence=5))
        assert not crossed.answer.letters, crossed.answer.codes()
        # None goes nowhere, as from a decoder; a frame of JSON may hold it.
        kept = [(5 + at, value) for at, value in enumerate(values) if value != b"null" or codec != "json"]
        assert [(each.sequence, each.value) for each in crossed.sent] == kept
        assert {read_frame(frame).header.encoding for frame in crossed.frames} == {0}

    @check(f"codec {codec}: other bytes are C505, the others go on")
    def refused(context: Context) -> None:
        wrong = [bytes.fromhex(case["hex"]) for case in VECTORS["invalid"] if case["codec"] == codec]
        right = bytes.fromhex(next(case["hex"] for case in VECTORS["cases"] if case["codec"] == codec))
        crossed = cross(context, passing(codec), received([*wrong, right], sequence=5))
        assert crossed.answer.codes() == [("C505", SOURCE, 5 + at) for at in range(len(wrong))]
        assert [letter.input for letter in crossed.answer.letters] == wrong
        assert [each.value for each in crossed.sent] == [right]


for _codec in CODECS:
    codec_check(_codec)


@check("send: messages keep sequence, key and time")
def carried(context: Context) -> None:
    stage_ = passing("string", keys=True, timestamps=True)
    frame = received(
        [b"one", b"two", b"three"], sequence=7, timestamp_ms=1000, keys=[b"b", b"a"], key_indexes=[0, 1, 0],
        sequences=[0, 0, 4], timestamps=[5, 0, 9],
    )  # fmt: skip
    crossed = cross(context, stage_, frame)
    assert crossed.sent == [
        Sent(b"one", 7, b"b", 1005), Sent(b"two", 7, b"a", 1000), Sent(b"three", 11, b"b", 1009),
    ]  # fmt: skip


@check("send: without keys and times none are sent")
def bare(context: Context) -> None:
    crossed = cross(context, passing("string"), received([b"x"], keys=[b"k"], key_indexes=[0], timestamp_ms=9))
    (frame,) = crossed.frames
    assert read_frame(frame).header.flags == 2, read_frame(frame).header


@check("send: a message of another type is C504, the others go on")
def other_type(context: Context) -> None:
    nodes = (node(SOURCE, "SOURCE"), node(ACT, "COMPUTATION", SOURCE))
    crossed = cross(
        context, stage("c", *nodes, border("SEND", "string", ACT, path=ACT)),
        source_frame(WORDS, [b"a", b"opaque", b"b"], 3),
    )  # fmt: skip
    assert [(each.sequence, each.value) for each in crossed.sent] == [(3, b"a"), (5, b"b")]
    assert crossed.answer.codes() == [("C504", ACT, 4)]
    assert totals(crossed)[ACT] == [3, 3, 1], "what a SEND cannot write has been emitted"
    crossed = cross(context, stage("c", *nodes, border("SEND", "int64", ACT, path=ACT)), source_frame(WORDS, [b"a"], 3))
    assert crossed.answer.codes() == [("C504", ACT, 3)] and not crossed.sent


@check("send: user code runs between two borders, and counts once")
def between(context: Context) -> None:
    description = stage(
        "c", border("RECEIVE", "json"), node(ACT, "COMPUTATION", SOURCE), border("SEND", "string", ACT, path=ACT)
    )
    crossed = cross(context, description, received([b'"a"', b'"drop"', b'"raise"'], sequence=1))
    assert [(each.sequence, each.value) for each in crossed.sent] == [(1, b"a")]
    assert crossed.answer.codes() == [("C501", ACT, 3)]
    found = totals(crossed)
    assert found.get(SOURCE, [0, 0, 0]) == [0, 0, 0], found
    assert found[ACT] == [3, 1, 1], found


@check("send: without a codec, frames are in a form that the same worker reads")
def own_form(context: Context) -> None:
    first = stage("c", node(SOURCE, "SOURCE"), border("SEND", "", SOURCE))
    crossed = cross(context, first, source_frame(WORDS, [b"a", "ü".encode()], 1))
    assert len(crossed.sent) == 2 and not crossed.answer.letters
    second = stage("d", pb.Node(path=SOURCE, kind=pb.NODE_KIND_RECEIVE, port=OUT), border("SEND", "string", SOURCE))
    again = cross(context, second, b"".join(crossed.frames))
    # The frames that leave have the port of those that enter here: both are OUT.
    assert [(each.sequence, each.value) for each in again.sent] == [(1, b"a"), (2, "ü".encode())]


def keys_of(context: Context, path: str, **more: Any) -> list[tuple[bytes | None, int, bytes]]:
    """Return key, sequence and value of what a KEY exit in a codec gave for two messages with keys."""
    exit_ = pb.Node(path=path, kind=pb.NODE_KIND_KEY, inputs=[SOURCE], port=COUNT, codec="string", **more)
    description = stage("c", border("RECEIVE", "string", keys=True), exit_)
    frame = received([b"x:add:y", b"z"], sequence=4, keys=[b"one", b"two"], key_indexes=[0, 1])
    crossed = cross(context, description, frame, COUNT)
    assert not crossed.answer.letters, crossed.answer.codes()
    return sorted((each.key, each.sequence, each.value) for each in crossed.sent)


@check("send: a frame without messages is passed over, whatever its encoding")
def nothing_crosses(context: Context) -> None:
    for codec in ("", "string"):
        for encoding in (0, 16):
            frame = encode_frame([], port=IN, encoding=encoding)
            crossed = cross(context, passing(codec), frame)
            assert (crossed.sent, crossed.answer.letters) == ([], []), (codec, encoding)


@check("key: a step of another program takes the key of the message, or the empty one")
def foreign_key(context: Context) -> None:
    assert keys_of(context, "9/steps/9", keys=True) == [(b"one", 4, b"x:add:y"), (b"two", 5, b"z")]
    assert keys_of(context, "9/steps/9") == [(b"", 4, b"x:add:y"), (b"", 5, b"z")]


@check("key: a step of this program asks its partition function, and writes the codec")
def own_key(context: Context) -> None:
    assert keys_of(context, STATE) == [(b"x", 4, b"x:add:y"), (b"z", 5, b"z")]


@check("state: messages in a codec")
def state_entry(context: Context) -> None:
    entry = node(STATE, "STATE_COMPUTATION", state="totals")
    entry.codec = "string"
    send = border("SEND", "string", STATE, path=STATE)
    sink = node("0/sinks/0", "SINK", STATE)
    key = b"crossing"
    frame = encode_frame([b"crossing", b"crossing"], port=COUNT, keys=[key], key_indexes=[0, 0], sequence=2)
    answer = call(context.worker, stage("c", entry, sink), BucketStore(bucket_of(key)), [frame])
    assert [text for _, text in answer.texts(6)] == ["add:crossing=1;8", "add:crossing=2;8"]
    answer = call(context.worker, stage("d", entry, send), BucketStore(bucket_of(key)), [frame])
    assert [message.text() for message in answer.messages] == ["add:crossing=1;8", "add:crossing=2;8"]
    assert {message.port for message in answer.messages} == {OUT}


@check("state: a value that is not in the codec is C505 with its key, the others go on")
def refused_entry(context: Context) -> None:
    entry = node(STATE, "STATE_COMPUTATION", state="totals")
    entry.codec = "string"
    key, other = b"refused", b"only wrong"
    wrong = b"refused:add:\xff"
    frame = encode_frame(
        [b"refused", wrong, b"refused", b"\xfe", b"refused:boom", b"refused"], port=COUNT, keys=[key, other],
        key_indexes=[0, 0, 0, 1, 0, 0], sequence=2,
    )  # fmt: skip
    store = BucketStore(bucket_of(key))
    description = stage("c", entry, node("0/sinks/0", "SINK", STATE))
    answer = call(context.worker, description, store, [frame])
    assert [text for _, text in answer.texts(6)] == ["add:refused=1;7", "add:refused=2;7", "add:refused=3;7"]
    assert sorted(answer.codes()) == [("C501", STATE, 6), ("C505", STATE, 3), ("C505", STATE, 5)]
    letters = {letter.sequence: letter for letter in answer.letters}
    assert (letters[3].input, letters[3].encoding, letters[3].key, letters[3].has_key) == (wrong, 0, key, True)
    assert letters[3].error.startswith('it is not in codec "string"; '), letters[3].error
    assert (letters[5].key, answer.done.keys) == (other, 1), "a key without a message that can be read got a state"


@check("send: numbers and texts are not taken for each other, and numbers have one form")
def strict(context: Context) -> None:
    crossed = cross(context, passing("float64"), received([struct.pack(">d", 1.0), struct.pack(">q", 1)]))
    assert [each.value for each in crossed.sent] == [struct.pack(">d", 1.0), struct.pack(">q", 1)]
    # By code point a full-width tilde comes before an emoji, by UTF-16 after it.
    names = received(['{"b":1,"😀":2,"a":{"z":3,"y":4},"～":5}'.encode()])
    assert [each.value.decode() for each in cross(context, passing("json"), names).sent] == [
        '{"a":{"y":4,"z":3},"b":1,"～":5,"😀":2}'
    ]
    crossed = cross(context, passing("json"), received([b"1", b"1.0", b'"1"', b"1e2"]))
    assert [each.value for each in crossed.sent] == [b"1", b"1", b'"1"', b"100"]
