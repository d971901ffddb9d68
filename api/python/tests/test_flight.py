"""The message in flight, messages that are skipped, and kill points."""

import os
import pickle
import struct
from pathlib import Path
from typing import Any

import pytest
from call_case import attempt, second_try

import wallaroo
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.bucket.state import BucketState
from wallaroo.worker.stage.flight import BYTES, NOTE_BYTES, OUTSIDE, InFlight
from wallaroo.worker.stage.stage import Stage
from wallaroo.worker.value.value import PICKLED, TEXT

SKIPS = [pb.Skip(ordinal=1, code="C508", reason="it ended"), pb.Skip(ordinal=3, code="C509", reason="it hung")]
SECONDS = 90


class Watch:
    """Looks at the file whenever user code runs."""

    path: Path
    seen: list[tuple[int, int]]
    notes: list[str]

    def look(self) -> tuple[int, int]:
        """Return index and message in flight."""
        index, message, process, rest = struct.unpack("<4Q", self.path.read_bytes()[:BYTES])
        assert (process, rest) == (os.getpid(), 0)
        return index, message


WATCH = Watch()


def noted() -> None:
    """Note what the file has: a state's function that did it by itself would be refused (T234)."""
    WATCH.seen.append(WATCH.look())


@wallaroo.computation("watched")
def watched(data: str) -> str:
    noted()
    return data


@wallaroo.state_computation("counted")
def counted(data: str, state: list[str]) -> tuple[str, bool]:
    state.append(data)
    noted()
    if data == "boom":
        raise ValueError(data)
    return ",".join(state), True


@wallaroo.partition
def first(data: str) -> str:
    return data[0]


@pytest.fixture
def flight(tmp_path: Path) -> Any:
    WATCH.path, WATCH.seen = tmp_path / "flight", []
    WATCH.path.write_bytes(bytes(BYTES))
    with InFlight(str(WATCH.path)) as found:
        yield found


def source_stage(kit: Any) -> Stage:
    app = kit.build(lambda builder: builder.to(watched))
    return Stage(app, kit.stage_of(app, "0/sources/0"))


def state_stage(kit: Any) -> Stage:
    app = kit.build(lambda builder: builder.to_state_partition(counted, list, "seen", first))
    return Stage(app, kit.stage_of(app, "0/steps/0"))


def keyed(*messages: str) -> bytes:
    keys = sorted({message[0] for message in messages})
    return encode_frame(
        [message.encode() for message in messages], port=1, encoding=TEXT, keys=[key.encode() for key in keys],
        key_indexes=[keys.index(message[0]) for message in messages], sequences=range(len(messages)),
    )  # fmt: skip


def test_ordinals_count_over_the_frames_of_a_call(kit: Any, flight: InFlight) -> None:
    stage = source_stage(kit)
    with stage.call(7, flight, ()):
        stage.run(7, kit.wire([b"a", b"drop"], sequence=100) + kit.wire([b"c"], sequence=50))
        assert WATCH.look() == (7, 0)
    with stage.call(8, flight, ()):
        stage.run(8, kit.wire([b"a"]))
    assert WATCH.seen == [(7, 1), (7, 3), (8, 1)]
    assert WATCH.look() == (8, 0)


def test_the_decoder_is_asked_for_a_message(kit: Any, flight: InFlight) -> None:
    class Decoder:
        def header_length(self) -> int:
            return 4

        def payload_length(self, bs: bytes) -> int:
            noted()
            return int.from_bytes(bs, "big")

        def decode(self, bs: bytes) -> str:
            return bs.decode()

    app = kit.build(decoder=Decoder())
    stage = Stage(app, kit.stage_of(app, "0/sources/0"))
    WATCH.seen.clear()  # the front-end has asked as well
    with stage.call(0, flight, [pb.Skip(ordinal=1, code="C509", reason="it hung")]):
        outputs = stage.run(0, kit.wire([b"a", b"bb", b"ccc"]))
    assert WATCH.seen == [(0, 1), (0, 3)], "a message that is skipped is not shown to user code at all"
    assert [letter.code for letter in kit.letters(outputs)] == ["C509"]


def test_skipped_messages_are_dead_letters_of_the_source(kit: Any, flight: InFlight) -> None:
    stage = source_stage(kit)
    with stage.call(0, flight, SKIPS):
        outputs = stage.run(0, kit.wire([b"a", b"b"], sequence=10) + kit.wire([b"c", b"d", b"e"], sequence=20))
        counts = {count.path: count for count in stage.counts()}
    letters = kit.letters(outputs)
    assert [(each.code, each.path, each.step, each.sequence, each.input) for each in letters] == [
        ("C508", "0/sources/0", "line", 11, b"b"),
        ("C509", "0/sources/0", "line", 21, b"d"),
    ]
    assert [(each.error, each.traceback, each.has_key) for each in letters] == [
        ("it ended", "", False),
        ("it hung", "", False),
    ]
    assert [sequence for sequence, _ in kit.sunk(outputs)] == [10, 20, 22]
    source = counts["0/sources/0"]
    assert (source.messages_in, source.messages_out, source.dead_letters) == (5, 3, 2)


def test_skipped_messages_leave_the_state_alone(kit: Any, flight: InFlight) -> None:
    stage, state = state_stage(kit), BucketState(state_stage(kit).codec)
    with stage.call(2, flight, SKIPS):
        result = attempt(stage, pb.Bucket(index=2), [keyed("a1", "a2"), keyed("a3", "b1", "a4")], state)
        assert result is not None
    assert kit.sunk(result.outputs) == [(0, b"<a1>"), (0, b"<a1,a3>"), (2, b"<a1,a3,a4>")]
    assert [(each.code, each.path, each.key, each.preview) for each in kit.letters(result.outputs)] == [
        ("C508", "0/steps/0", b"a", "'a2'"),
        ("C509", "0/steps/0", b"b", "'b1'"),
    ]
    assert list(state.table(1)) == [b"a"], "a skipped message gives its key no state"
    assert WATCH.seen == [(2, 1), (2, 3), (2, 5)]


def test_a_replay_tells_the_same_ordinals(kit: Any, flight: InFlight) -> None:
    stage = state_stage(kit)
    call, frames = pb.Bucket(index=1), [keyed("a1"), keyed("boom", "a2", "a3")]
    skips = [pb.Skip(ordinal=2, code="C508", reason="it ended")]
    with stage.call(1, flight, skips):
        assert attempt(stage, call, frames, BucketState(stage.codec)) is None
    assert WATCH.look() == (1, 0)
    with stage.call(1, flight, skips):
        outputs = second_try(stage, call, frames, BucketState(stage.codec)).outputs
    assert WATCH.seen == [(1, 1), (1, 2), (1, 1), (1, 2), (1, 4)]
    assert [(each.code, each.sequence) for each in kit.letters(outputs)] == [("C508", 1), ("C501", 0)]
    assert kit.sunk(outputs) == [(0, b"<a1>"), (2, b"<a1,a3>")]


def test_files_that_cannot_be_mapped(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"x")
    for name in (path, tmp_path / "missing"):
        with pytest.raises(DiagnosticError, match="W410 .*the client sent an in-flight file that cannot be mapped; "):
            InFlight(str(name))


class Noted(list[str]):
    """A state that looks at the file when it is written or read."""

    def __reduce__(self) -> Any:
        note_all()
        return made, (list(self),)


def made(items: list[str]) -> Noted:
    note_all()
    return Noted(items)


def note_all() -> None:
    noted()
    WATCH.notes.append(WATCH.path.read_bytes()[BYTES:].rstrip(b"\0").decode())


def test_who_writes_and_reads_states_is_noted(kit: Any, tmp_path: Path) -> None:
    app = kit.build(lambda builder: builder.to_state_partition(counted, Noted, "seen", first))
    stage = Stage(app, kit.stage_of(app, "0/steps/0"))
    WATCH.path, WATCH.seen, WATCH.notes = tmp_path / "flight", [], []
    WATCH.path.write_bytes(bytes(BYTES + NOTE_BYTES))
    state = BucketState(stage.codec)
    with InFlight(str(WATCH.path)) as flight:
        with stage.call(6, flight, []):
            result = attempt(stage, pb.Bucket(index=6), [keyed("ab", "bc")], state)
        assert result is not None
        assert WATCH.seen == [(6, 1), (6, 2), (6, OUTSIDE), (6, OUTSIDE)], "written at the end, for no message"
        assert WATCH.notes == ["", ""], "which costs a word and no text"
        again = BucketState(stage.codec)
        again.read([entry for change in result.changes for entry in change.entries])
        WATCH.seen.clear(), WATCH.notes.clear()
        with stage.call(7, flight, []):
            attempt(stage, pb.Bucket(index=7, careful=True), [keyed("ax")], again)
        read, wrote = (f'{verb} the state of step "counted", key {"a"!r}' for verb in ("read", "wrote"))
        assert WATCH.notes == [read, read, wrote]
        assert WATCH.seen == [(7, OUTSIDE), (7, 1), (7, 1), (7, OUTSIDE)], "read, run, written after it, and at the end"
        assert WATCH.look() == (7, 0)


def test_a_message_is_at_work_while_it_is_read_back_and_a_skipped_one_is_not_read(kit: Any, flight: InFlight) -> None:
    stage, data = state_stage(kit), pickle.dumps(Noted(["x"]))
    WATCH.notes = []
    frame = encode_frame([data] * 4, port=1, encoding=PICKLED, keys=[b"a"], key_indexes=[0] * 4)
    WATCH.seen.clear()
    with stage.call(8, flight, SKIPS):
        result = attempt(stage, pb.Bucket(index=8, careful=True), [frame], BucketState(stage.codec))
    assert result is not None
    # Noted is no text, so that the computation fails on it, with the state of before: two dead letters more.
    assert [each for each in WATCH.seen if each[1] != OUTSIDE][:2] == [(8, 1), (8, 3)]
    letters = kit.letters(result.outputs)
    assert sorted((letter.code, letter.error) for letter in letters if letter.code in ("C508", "C509")) == [
        ("C508", "it ended"),
        ("C509", "it hung"),
    ]
