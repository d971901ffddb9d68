"""Stages without state: decode, compute, route to buckets and sinks, dead letters."""

from conformance.application import COUNT, FIRST, LINES, LINES_OUT, NUMBERS, SPREAD, WORDS, bucket_of
from conformance.check import Context, check
from conformance.process import CALL_S
from conformance.session import ProcessStream, process, source_frame
from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb

ACT, SPLIT, STATE, SOURCE = "0/steps/0", "0/steps/1", "0/steps/2", "0/sources/0"


def words(*payloads: str | bytes, sequence: int = 0, framed: bool = True) -> bytes:
    """Return a frame of the source Words."""
    return source_frame(WORDS, [p.encode() if isinstance(p, str) else p for p in payloads], sequence, framed)


@check("process: keys, buckets and sequences of a split text")
def split(context: Context) -> None:
    (answer,) = process(context.worker, FIRST, [words("a,b,a", "Grüße", "🤞🏽,a", sequence=40)])
    assert not answer.letters, answer.codes()
    found = [(m.sequence, m.key) for m in sorted(answer.messages, key=lambda m: m.sequence)]
    assert sorted(found) == sorted(
        [(40, b"a"), (40, b"b"), (40, b"a"), (41, "Grüße".encode()), (42, "🤞🏽".encode()), (42, b"a")]
    )
    assert {m.port for m in answer.messages} == {COUNT}


@check("process: messages of one key keep the order in which they were made")
def order(context: Context) -> None:
    (answer,) = process(context.worker, FIRST, [words(*(f"k:{i},other:{i}" for i in range(300)), sequence=7)])
    for key in (b"k", b"other"):
        assert [m.sequence for m in answer.messages if m.key == key] == list(range(7, 307))


@check("process: many keys, each in its own bucket")
def buckets(context: Context) -> None:
    keys = [f"key {i}" for i in range(500)]
    (answer,) = process(context.worker, FIRST, [words(",".join(keys))])
    assert sorted(m.key or b"" for m in answer.messages) == sorted(key.encode() for key in keys)
    assert {m.bucket for m in answer.messages} == {bucket_of(key.encode()) for key in keys}


@check("dead letters: each has the time of its message")
def letter_times(context: Context) -> None:
    data = encode_frame([b"raise", b"a", b"\xff", b"raise multi"], port=WORDS, timestamp_ms=9, timestamps=[5, 0, 1, 7])
    (answer,) = process(context.worker, FIRST, [data])
    assert sorted((each.sequence, each.timestamp_ms) for each in answer.letters) == [(0, 14), (2, 10), (3, 16)]


@check("process: integer keys are 8 bytes, big-endian")
def integer_keys(context: Context) -> None:
    payloads = [b"0", b"7", b"18446744073709551615", b"300"]
    (answer,) = process(context.worker, FIRST, [source_frame(NUMBERS, payloads, 3)])
    keys = [n.to_bytes(8, "big") for n in (0, 7, (1 << 64) - 1, 300)]
    assert answer.keyed(SPREAD) == list(zip(range(3, 7), keys, strict=True))


@check("process: values that are not framed are payloads")
def plain_values(context: Context) -> None:
    (answer,) = process(context.worker, FIRST, [words("a", "", "b:add:x", sequence=5, framed=False)])
    assert answer.keyed(COUNT) == [(5, b"a"), (7, b"b")]
    assert answer.codes() == [("C501", STATE, 6)]


@check("process: a source that goes straight to a sink")
def straight(context: Context) -> None:
    (answer,) = process(context.worker, FIRST, [source_frame(LINES, ["ü".encode(), b"", b"skip", b"z"], 9)])
    assert answer.texts(LINES_OUT) == [(9, "ü"), (10, ""), (12, "z")]


@check("process: None from decoder, computation, multi computation and in its items goes no further")
def none(context: Context) -> None:
    (answer,) = process(context.worker, FIRST, [words("skip", "drop", "nothing", "none,x,none", "none")])
    assert answer.keyed(COUNT) == [(3, b"x")]
    assert not answer.letters


@check("dead letters: each kind of step, with code, path, sequence and input; the others go on")
def letters(context: Context) -> None:
    payloads = [b"a", b"\xff\xfe", b"raise", b"raise multi", b"", b"b"]
    (answer,) = process(context.worker, FIRST, [source_frame(WORDS, payloads, 100)])
    assert answer.keyed(COUNT) == [(100, b"a"), (105, b"b")]
    expected = [("C505", SOURCE, 101), ("C501", ACT, 102), ("C501", SPLIT, 103), ("C501", STATE, 104)]
    assert answer.codes() == expected, answer.codes()
    decoder, act, *_ = answer.letters
    assert decoder.input == b"\xff\xfe", "the source's input is the payload as received"
    assert decoder.port == WORDS
    assert "act was asked to raise" in act.error
    assert "\n" not in act.error
    assert act.step == "act"
    assert "act was asked to raise" in act.traceback or "Compute" in act.traceback
    assert "raise" in act.preview
    assert not act.has_key
    assert decoder.timestamp_ms == 1700000000000


@check("dead letters: a result of the wrong type is C503")
def wrong_results(context: Context) -> None:
    (answer,) = process(context.worker, FIRST, [words("wrong multi", "wrong key", "a")])
    assert [(path, sequence) for _, path, sequence in answer.codes()] == [(SPLIT, 0), (STATE, 1)]
    assert {code for code, _, _ in answer.codes()} <= context.wrong_result(), answer.codes()
    assert answer.keyed(COUNT) == [(2, b"a")]


@check("dead letters: a message that cannot be serialized is C504")
def opaque(context: Context) -> None:
    (answer,) = process(context.worker, FIRST, [words("a", "opaque", "b", sequence=1)])
    assert answer.codes() == [("C504", STATE, 2)], answer.codes()
    assert answer.keyed(COUNT) == [(1, b"a"), (3, b"b")]


@check("dead letters: one failing item, the other results of the same source message go on")
def siblings(context: Context) -> None:
    (answer,) = process(context.worker, FIRST, [words("a,,b")])
    assert answer.codes() == [("C501", STATE, 0)]
    assert sorted(m.key or b"" for m in answer.messages if m.port == COUNT) == [b"a", b"b"]


@check("process: empty data is done at once")
def empty(context: Context) -> None:
    first, second, third = process(context.worker, FIRST, [b"", words(), words("a")])
    assert not first.messages
    assert not second.messages
    assert third.keyed(COUNT) == [(0, b"a")]


@check("process: several frames, of several sources, in one data")
def several_frames(context: Context) -> None:
    data = words("a", sequence=1) + source_frame(NUMBERS, [b"7"], 2) + words("b", sequence=3) + words()
    (answer,) = process(context.worker, FIRST, [data])
    assert answer.keyed(COUNT) == [(1, b"a"), (3, b"b")]
    assert answer.keyed(SPREAD) == [(2, (7).to_bytes(8, "big"))]


@check("process: many data in flight are done in order")
def in_flight(context: Context) -> None:
    answers = process(context.worker, FIRST, [words(f"k{i}", sequence=i) for i in range(200)])
    assert [answer.keyed(COUNT) for answer in answers] == [[(i, f"k{i}".encode())] for i in range(200)]


@check("process: several streams at once")
def streams(context: Context) -> None:
    worker = context.worker
    with ProcessStream(worker, FIRST, 0) as one, ProcessStream(worker, FIRST, 1) as two:
        for index in range(5):
            one.send(data=pb.Data(index=index, frames=words("one")))
            two.send(data=pb.Data(index=index, frames=words("two")))
        for index in range(5):
            assert two.answer(index).keyed(COUNT) == [(0, b"two")]
            assert one.answer(index).keyed(COUNT) == [(0, b"one")]


@check("process: a message of 5 MiB")
def large(context: Context) -> None:
    (answer,) = process(context.worker, FIRST, [words("big:add:" + "x" * (5 << 20), "small")])
    assert answer.keyed(COUNT) == [(0, b"big"), (1, b"small")]


@check("process: output frames are closed near frame_bytes")
def frame_size(context: Context) -> None:
    text = ",".join(["k:add:" + "y" * 1000] * 100)
    (answer,) = process(context.worker, FIRST, [words(*[text] * 40)])
    sizes = [len(frame) for frames in answer.frames.values() for frame in frames]
    assert len(sizes) >= 3, f"4 MB in {len(sizes)} frames; frame_bytes is {FIRST.frame_bytes}"
    assert max(sizes) < 2 * FIRST.frame_bytes, f"a frame of {max(sizes)} bytes"


@check("process: counts per step")
def counts(context: Context) -> None:
    (answer,) = process(context.worker, FIRST, [words("a,b", "drop", "raise")])
    found = {each.path: (each.messages_in, each.messages_out, each.dead_letters) for each in answer.done.counts}
    assert found[ACT] == (3, 1, 1), found
    assert found[SPLIT] == (1, 2, 0), found


@check("process: a printing step neither stalls nor spoils the stream")
def flood(context: Context) -> None:
    answers = process(context.worker, FIRST, [words("flood")] * 8)
    assert [answer.keyed(COUNT) for answer in answers] == [[(0, b"flood")]] * 8


@check("SplitFrames: whole messages, what is missing, and the limit")
def split_frames(context: Context) -> None:
    def lengths(data: bytes, limit: int = 1 << 20) -> tuple[list[int], int, str]:
        request = pb.SplitRequest(path="2/sources/0", data=data, max_message_bytes=limit)
        reply = context.worker.stub().SplitFrames(request, timeout=CALL_S)
        return list(reply.lengths), reply.wanted_bytes, reply.failure.code

    two = b"\x00\x00\x02hi\x00\x00\x00"
    assert lengths(two) == ([5, 3], 0, "")
    assert lengths(two + b"\x00\x01") == ([5, 3], 0, "")
    assert lengths(two + b"\x00\x01\x00abc") == ([5, 3], 259, "")
    assert lengths(b"") == ([], 0, "")
    oversized = lengths(two + b"\xff\xff\xff", 1000)
    assert oversized[0] == [5, 3] or oversized[2], "a message over the limit was let pass"
