"""Stages without state: order, dead letters, counts, frames."""

import threading
from typing import Any

import pytest

import wallaroo
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.message.frame import FrameError, FrameHeader, read_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.stage.exit import KEY_EXPECTED
from wallaroo.worker.stage.stage import Stage

INVALID = "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"


@wallaroo.computation_multi("split")
def split(data: str) -> Any:
    return {"nothing": None, "tuple": ("a", None, "b"), "five": 5}.get(data) if data in (
        "nothing", "tuple", "five"
    ) else data.split(" ")  # fmt: skip


@wallaroo.computation("check")
def check(data: str) -> Any:
    if data == "boom":
        msg = "no\nway"
        raise ValueError(msg)
    if data == "exit":
        raise SystemExit(3)
    return None if data == "gone" else data


@wallaroo.partition
def by_first(data: Any) -> Any:
    return {"i": 7, "t": True, "f": 7.0, "y": b"y", "n": None}.get(data[0], data[0])


@wallaroo.state_computation("count")
def count(data: Any, state: list[Any]) -> Any:
    state.append(data)
    return len(state), True


def split_and_check(builder: wallaroo.ApplicationBuilder) -> None:
    builder.to_parallel(split).to(check)


def keyed(builder: wallaroo.ApplicationBuilder) -> None:
    builder.to_state_partition(count, list, "seen", by_first)


def test_messages_keep_their_order_and_the_source_sequence(kit: Any) -> None:
    app = kit.build(split_and_check)
    stage = Stage(app, kit.stage_of(app, "0/sources/0"))
    outputs = stage.run(0, kit.wire([b"a b", b"c"], sequence=10) + kit.wire([b"d e"], sequence=12))
    assert kit.sunk(outputs) == [(10, b"<a>"), (10, b"<b>"), (11, b"<c>"), (12, b"<d>"), (12, b"<e>")]


def test_none_goes_nowhere(kit: Any) -> None:
    app = kit.build(split_and_check)
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(
        0, kit.wire([b"drop", b"nothing", b"tuple", b"gone none x"])
    )
    assert kit.sunk(outputs) == [(2, b"<a>"), (2, b"<b>"), (3, b"<x>")]
    assert not kit.letters(outputs)


def test_a_failing_message_is_one_dead_letter_and_its_siblings_go_on(kit: Any) -> None:
    app = kit.build(split_and_check)
    stage = Stage(app, kit.stage_of(app, "0/sources/0"))
    outputs = stage.run(0, kit.wire([b"a boom b exit c", b"\xff", b"five", b"number"]))
    assert [value for _, value in kit.sunk(outputs)] == [b"<a>", b"<b>", b"<c>"]
    found = [(letter.code, letter.path, letter.step, letter.sequence, letter.error) for letter in kit.letters(outputs)]
    assert found == [
        ("C501", "0/steps/1", "check", 0, "ValueError: no way"),
        ("C501", "0/steps/1", "check", 0, "SystemExit: 3"),
        ("C505", "0/sources/0", "line", 1, INVALID),
        ("C503", "0/steps/0", "split", 2, "returned 5; expected a list or None"),
        ("C503", "0/sinks/0", "line", 3, "returned 7; expected str, bytes or None"),
    ]  # fmt: skip
    first = kit.letters(outputs)[0]
    assert "in check" in first.traceback
    assert "wallaroo/worker" not in first.traceback
    assert (first.preview, first.input, first.encoding, first.timestamp_ms) == ("'boom'", b"boom", 17, 5)
    payload = kit.letters(outputs)[2]
    assert (payload.input, payload.encoding, payload.port) == (b"\xff", 0, 0)


def test_counts(kit: Any) -> None:
    app = kit.build(split_and_check)
    stage = Stage(app, kit.stage_of(app, "0/sources/0"))
    stage.run(0, kit.wire([b"a boom gone none", b"\xff", b"drop", b"tuple"]))
    found = [(each.path, each.messages_in, each.messages_out, each.dead_letters) for each in stage.counts()]
    assert found == [
        ("0/sources/0", 4, 2, 1),
        ("0/steps/0", 2, 6, 0),
        ("0/steps/1", 6, 4, 1),
        ("0/sinks/0", 4, 3, 0),
    ]


def test_keys_of_each_type(kit: Any) -> None:
    app = kit.build(keyed)
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(
        0, kit.wire([b"int", b"true", b"float", b"yes", b"none", b"a", b"int", b"\xc3\xa9"])
    )
    messages = {}
    for output in outputs:
        if output.bucket >= 0:
            frame = read_frame(output.frame)
            for at, index in enumerate(frame.key_indexes):
                messages[frame.sequence_of(at)] = frame.keys[index]
    one, seven = (1).to_bytes(8, "big"), (7).to_bytes(8, "big")
    assert messages == {0: seven, 1: one, 2: seven, 6: seven, 3: b"y", 5: b"a", 7: "é".encode()}
    assert [letter.error for letter in kit.letters(outputs)] == [f"returned None; expected {KEY_EXPECTED}"]


def test_frames_are_closed_at_their_limit_and_hold_the_keys_they_use(kit: Any) -> None:
    app = kit.build(keyed)
    stage = Stage(app, kit.stage_of(app, "0/sources/0", buckets=1, frame_bytes=500))
    texts = [chr(ord("A") + at % 20) * 40 for at in range(100)]
    frames = [read_frame(output.frame) for output in stage.run(0, kit.wire([text.encode() for text in texts]))]
    assert len(frames) > 5
    assert all(len(frame.data) <= 600 and set(frame.key_indexes) == set(range(len(frame.keys))) for frame in frames)
    assert b"".join(frame.data for frame in frames).decode() == "".join(texts)
    assert [frame.sequence_of(at) for frame in frames for at in range(frame.header.count)] == list(range(100))


def test_a_message_that_is_changed_later_is_sent_as_it_was(kit: Any) -> None:
    shared: list[str] = []

    @wallaroo.computation("share")
    def share(data: str) -> list[str]:
        shared.append(data)
        return shared

    app = kit.build(lambda builder: builder.to(share).to_state_partition(count, list, "seen", by_first))
    stage = Stage(app, kit.stage_of(app, "0/sources/0", buckets=1))
    (output,) = stage.run(0, kit.wire([b"a", b"b"]))
    frame = read_frame(output.frame)
    assert stage.codec.decode(frame.header.encoding, frame.lengths, frame.data) == [["a"], ["a", "b"]]


def test_what_cannot_be_serialized_is_a_dead_letter(kit: Any) -> None:
    @wallaroo.computation("make")
    def make(data: str) -> Any:
        return threading.Lock() if data == "bad" else (data,)

    @wallaroo.partition
    def one(data: Any) -> str:
        return "one"

    app = kit.build(lambda builder: builder.to(make).to_state_partition(count, list, "seen", one))
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(0, kit.wire([b"bad", b"good"]))
    (letter,) = kit.letters(outputs)
    assert (letter.code, letter.path, letter.sequence, letter.input) == ("C504", "0/steps/1", 0, b"")
    assert letter.error.startswith("lock cannot be serialized; ")
    assert "; use classes of a module's top level, no lock, file, generator or lambda: " in letter.error


def test_text_that_is_not_unicode_is_a_dead_letter_at_the_sink(kit: Any) -> None:
    @wallaroo.encoder
    def half(data: str) -> str:
        return "\ud800" if data == "bad" else data

    app = kit.build(encoder=half)
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(0, kit.wire([b"a", b"bad", b"b"]))
    assert kit.sunk(outputs) == [(0, b"a"), (2, b"b")]
    (letter,) = kit.letters(outputs)
    assert letter.code == "C504" and letter.error.endswith("surrogates not allowed")


def test_long_chains_and_many_loops_do_not_meet_python_limits(kit: Any) -> None:
    @wallaroo.computation_multi("twice")
    def once(data: str) -> list[str]:
        return [data]

    app = kit.build(lambda builder: [builder.to(once if at % 2 else check) for at in range(120)])
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(0, kit.wire([b"a", b"boom"]))
    assert kit.sunk(outputs) == [(0, b"<a>")]
    assert len(kit.letters(outputs)) == 1


def test_a_node_with_two_producers_gets_the_messages_of_both_depth_first(kit: Any) -> None:
    app = kit.build(split_and_check)
    stage = pb.Stage(
        id="d",
        nodes=[
            pb.Node(path="0/sources/0", kind=pb.NODE_KIND_SOURCE, port=0),
            pb.Node(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION_MULTI, inputs=["0/sources/0"]),
            pb.Node(path="0/steps/1", kind=pb.NODE_KIND_COMPUTATION, inputs=["0/sources/0", "0/steps/0"]),
            pb.Node(path="0/sinks/0", kind=pb.NODE_KIND_SINK, inputs=["0/steps/1"], port=1),
        ],
    )
    outputs = Stage(app, stage).run(0, kit.wire([b"a b", b"c"]))
    assert [value for _, value in kit.sunk(outputs)] == [b"<a>", b"<b>", b"<a b>", b"<c>", b"<c>"]


def test_a_header_that_the_decoder_reads_otherwise_by_now(kit: Any) -> None:
    app = kit.build()
    app.pipelines[0].sources[0].payload_length = lambda header: 1 if header[-1] == 2 else int.from_bytes(header, "big")
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(0, kit.wire([b"a", b"bb", b"c"]))
    assert kit.sunk(outputs) == [(0, b"<a>"), (2, b"<c>")]
    (letter,) = kit.letters(outputs)
    assert (letter.code, letter.sequence, letter.input) == ("C506", 1, b"bb")
    assert letter.error == "payload_length returns 1 for header 00000002; the topology's framing expects 2"


@pytest.mark.parametrize("count", [1, 3])
def test_a_journal_frame_that_does_not_hold_its_messages(kit: Any, count: int) -> None:
    app = kit.build()
    frame = write_frame(FrameHeader(0, count, 0, 0, 1, 0), [b"\0\0\0\1a\0\0\0\1b"])
    with pytest.raises(FrameError, match=f"2 wire messages end at byte 10; expected {count} in 10 bytes"):
        Stage(app, kit.stage_of(app, "0/sources/0")).run(0, frame)


def test_unknown_nodes_are_refused(kit: Any) -> None:
    stage = pb.Stage(id="x", nodes=[pb.Node(path="0/sources/3", kind=pb.NODE_KIND_SOURCE)])
    with pytest.raises(
        DiagnosticError, match='W403 worker "main" hosts another application; stage "x" names "0/sources/3", which'
    ):
        Stage(kit.build(), stage)


def test_the_users_serialize_sees_every_message(kit: Any) -> None:
    app = kit.build(keyed)
    app.serializer = wallaroo.message.serialization.Serializer(
        lambda value: b"!" + value.encode(), lambda data: data[1:].decode(), True
    )
    stage = Stage(app, kit.stage_of(app, "0/sources/0", buckets=1))
    (output,) = stage.run(0, kit.wire([b"a", b"b"]))
    frame = read_frame(output.frame)
    assert (frame.header.encoding, frame.data) == (32, b"!a!b")
    assert stage.codec.decode(32, frame.lengths, frame.data) == ["a", "b"]
