"""The journal: what a writer promises, and what it does after a crash at any byte."""

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from wallaroo.message.frame import TICK_PORT, split_frames
from wallaroo_runtime.checkpoint.integrity import check_journal
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.journal.head import (
    HEAD_BYTES,
    Position,
    pack_head,
    read_committed,
    read_head,
    write_committed,
)
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.segment import SegmentHeader, create_segment
from wallaroo_runtime.storage.journal.writer import JournalWriter

HEADER_BYTES = 32
FRAME_BYTES = 40 + 6


def fill(directory: Path, count: int, segment_bytes: int = 1 << 20) -> Position:
    writer = JournalWriter(directory, segment_bytes)
    append(writer, count)
    end = writer.end
    writer.close()
    return end


def append(writer: JournalWriter, count: int) -> None:
    for number in range(count):
        writer.append(number % 3, 1, [b"\0\0\0\2", b"%02d" % (number % 100)], timestamp_ms=number)


def content(directory: Path) -> bytes:
    reader = JournalReader(directory)
    return b"".join(reader.read(0, reader.end().offset))


def segments(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.journal"))


def refused(directory: Path) -> str:
    with pytest.raises(RunError) as caught:
        JournalWriter(directory)
    return str(caught.value)


def test_layout_is_that_of_the_architecture_document(tmp_path: Path) -> None:
    end = fill(tmp_path, 3)
    (segment,) = segments(tmp_path)
    data = segment.read_bytes()
    assert segment.name == f"{0:020d}.journal"
    assert data[:4] == b"WJR1"
    assert data[4:8] == b"\1\0\0\0"
    assert data[8:24] == bytes(16)
    assert int.from_bytes(data[24:32], "little") == end.journal_id
    assert len(data) == HEADER_BYTES + 3 * FRAME_BYTES
    assert len((tmp_path / "head").read_bytes()) == HEAD_BYTES == 32
    assert end == Position(3 * FRAME_BYTES, 3, end.journal_id) == read_head(tmp_path)


def test_a_writer_goes_on_where_the_one_before_ended(tmp_path: Path) -> None:
    first = fill(tmp_path, 5, segment_bytes=100)
    second = fill(tmp_path, 5, segment_bytes=100)
    assert second == Position(10 * FRAME_BYTES, 10, first.journal_id)
    assert [int(path.stem) for path in segments(tmp_path)] == [0, 3 * FRAME_BYTES, 6 * FRAME_BYTES, 9 * FRAME_BYTES]


def test_a_torn_frame_is_cut_at_whichever_byte_it_is_torn(tmp_path: Path) -> None:
    made = tmp_path / "made"
    fill(made, 2)
    safe = read_head(made)
    assert safe is not None
    whole = segments(made)[0].read_bytes()
    fill(made, 1)
    longer = segments(made)[0].read_bytes()
    for size in range(len(whole), len(longer)):
        torn = tmp_path / "torn"
        shutil.copytree(made, torn)
        (torn / "head").write_bytes(pack_head(safe))
        os.truncate(segments(torn)[0], size)
        end = fill(torn, 1)
        assert end == Position(3 * FRAME_BYTES, 3, safe.journal_id), size
        assert segments(torn)[0].read_bytes()[: len(whole)] == whole
        shutil.rmtree(torn)


@pytest.mark.parametrize("garbage", [b"\0" * 100, b"WFR1" + b"\xff" * 200, random.Random(5).randbytes(64), b"W"])
def test_garbage_behind_the_head_is_cut(tmp_path: Path, garbage: bytes) -> None:
    end = fill(tmp_path, 2)
    with segments(tmp_path)[0].open("ab") as file:
        file.write(garbage)
    assert fill(tmp_path, 0) == end
    assert segments(tmp_path)[0].stat().st_size == HEADER_BYTES + 2 * FRAME_BYTES


def test_whole_frames_behind_the_head_are_kept(tmp_path: Path) -> None:
    end = fill(tmp_path, 10, segment_bytes=100)
    (tmp_path / "head").write_bytes(pack_head(Position(FRAME_BYTES, 1, end.journal_id)))
    assert fill(tmp_path, 0) == end


@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(["append", "sync", "remove"]), min_size=1, max_size=12))
@example(["append", "sync"])
@example(["append"] * 4 + ["sync", "remove"])
def test_a_loss_of_power_that_leaves_an_old_head_loses_no_frame(steps: list[str]) -> None:
    """The head is written in place, and synced where something relies on it; frames are before readers see them."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        journal, after = Path(folder) / "journal", Path(folder) / "after"
        synced, fsync = dict[str, bytes](), os.fsync

        def note(descriptor: int) -> None:
            fsync(descriptor)
            head = journal / "head"
            if head.exists() and os.path.samestat(os.fstat(descriptor), head.stat()):
                synced["head"] = head.read_bytes()

        patch.setattr(os, "fsync", note)
        writer = JournalWriter(journal, segment_bytes=100)
        for step in steps:
            if step == "append":
                append(writer, 1)
            elif step == "sync":
                writer.sync()
            else:
                write_committed(journal, writer.safe.offset)
                writer.remove_committed(lambda offset: None)
            shutil.copytree(journal, after)
            (after / "head").write_bytes(synced["head"])
            safe = writer.safe
            plan = [{"journal": f"{safe.journal_id:016x}", "offset": safe.offset}]
            check_journal(after, f"{safe.journal_id:016x}", plan)
            again = JournalWriter(after)
            assert again.end == writer.end
            again.close()
            shutil.rmtree(after)
        lost = [{"journal": f"{safe.journal_id:016x}", "offset": writer.end.offset + 1}]
        with pytest.raises(
            RunError, match=f"at offset {writer.end.offset} is damaged; it ends there; the checkpoint has"
        ):
            check_journal(journal, f"{safe.journal_id:016x}", lost)
        writer.close()


def test_a_segment_gets_its_name_when_its_header_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss of power before the first frame is synced leaves a segment with a header, or no segment."""
    fsync, synced = os.fsync, list[tuple[int, list[Path]]]()

    def note(descriptor: int) -> None:
        fsync(descriptor)
        synced.append((os.fstat(descriptor).st_size, list(tmp_path.glob("*.journal"))))

    monkeypatch.setattr(os, "fsync", note)
    segment, descriptor = create_segment(tmp_path, SegmentHeader(0, 0, 7))
    os.close(descriptor)
    assert synced == [(segment.path.stat().st_size, [])]


def test_segments_behind_a_torn_one_are_removed(tmp_path: Path) -> None:
    end = fill(tmp_path, 10, segment_bytes=100)
    (tmp_path / "head").write_bytes(pack_head(Position(FRAME_BYTES, 1, end.journal_id)))
    os.truncate(segments(tmp_path)[1], HEADER_BYTES + FRAME_BYTES + 7)
    assert fill(tmp_path, 0) == Position(4 * FRAME_BYTES, 4, end.journal_id)
    assert len(segments(tmp_path)) == 2


def test_a_lost_head_is_found_again(tmp_path: Path) -> None:
    end = fill(tmp_path, 10, segment_bytes=100)
    for content_of_head in (b"", b"\0" * 32, b"x"):
        (tmp_path / "head").write_bytes(content_of_head)
        assert fill(tmp_path, 0) == end


@settings(deadline=None)
@given(
    st.lists(st.booleans(), max_size=30), st.integers(1, 300), st.data(), st.sampled_from(["whole", "lost", "behind"])
)
def test_a_journal_with_ticks_goes_on_with_its_sequences_and_messages(
    is_tick: list[bool], segment_bytes: int, data: st.DataObject, head: str
) -> None:
    """A reference counts; the runtime before ticks had sequences wrote them without."""
    old = data.draw(st.integers(0, len(is_tick)))
    with TemporaryDirectory() as folder:
        writer = JournalWriter(Path(folder), segment_bytes)
        ends, sequences, messages, sequence = [writer.end], [], 0, 0
        for number, tick in enumerate(is_tick):
            with old_ticks(writer, number < old):
                writer.append(TICK_PORT if tick else 0, 0 if tick else 3, [] if tick else [b"abc"], number)
            sequences.append(sequence)
            messages += 0 if tick else 3
            sequence += 3 if not tick else 0 if number < old else 1
            ends.append(writer.end)
        assert [end.messages for end in ends[1:]] == [3 * is_tick[:n].count(False) for n in range(1, len(ends))]
        writer.close()
        if head != "whole":
            found = b"" if head == "lost" else pack_head(data.draw(st.sampled_from(ends)))
            (Path(folder) / "head").write_bytes(found)
        again = JournalWriter(Path(folder), segment_bytes)
        assert again.end == ends[-1]
        again.append(TICK_PORT, 0, [], 99)
        again.append(0, 1, [b"x"], 99)
        assert again.end.messages == messages + 1
        again.close()
        reader = JournalReader(folder)
        frames = [header for piece in reader.read(0, reader.end().offset) for header, _, _ in split_frames(piece)]
        assert [each.sequence for each in frames] == [*sequences, sequence, sequence + 1]


@contextmanager
def old_ticks(writer: JournalWriter, are_written: bool) -> Iterator[None]:
    """Let a writer append ticks as they were: of the sequence of the next message."""
    with pytest.MonkeyPatch.context() as patch:
        if are_written:
            patch.setattr("wallaroo_runtime.storage.journal.writer.CONTROL_PORTS", frozenset())
        yield


def test_without_its_head_a_journal_whose_begin_is_gone_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, 10, segment_bytes=100)
    JournalReader(tmp_path).commit(4 * FRAME_BYTES)
    writer = JournalWriter(tmp_path, 100)
    writer.remove_committed(lambda _: None)
    writer.close()
    (tmp_path / "head").write_bytes(b"")
    assert refused(tmp_path) == (
        f"R698 journal {tmp_path} at offset {3 * FRAME_BYTES} is damaged; the file head is lost or not whole; only it "
        f"knows how many messages there were before {3 * FRAME_BYTES}\n"
        "  fix: restore all of the checkpoint from one backup (application.json, spark, journal and outbox belong "
        "together), or --fresh to start over; if a backup is damaged, take another one"
    )


def test_damage_below_the_head_is_refused(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    segment = segments(tmp_path)[0]
    data = bytearray(segment.read_bytes())
    data[HEADER_BYTES + FRAME_BYTES + 42] ^= 1
    segment.write_bytes(data)
    assert refused(tmp_path) == (
        f"R698 journal {segment} at offset {FRAME_BYTES} is damaged; the checksum of the frame does not fit\n"
        "  fix: restore all of the checkpoint from one backup (application.json, spark, journal and outbox belong "
        "together), or --fresh to start over; if a backup is damaged, take another one"
    )
    assert segment.read_bytes() == data  # nothing was cut


@pytest.mark.parametrize("lost", [0, 1, 2, 3])
def test_a_lost_segment_is_refused(tmp_path: Path, lost: int) -> None:
    fill(tmp_path, 10, segment_bytes=100)
    segments(tmp_path)[lost].unlink()
    assert refused(tmp_path).startswith("R698")


@pytest.mark.parametrize("size", [0, 10, HEADER_BYTES, HEADER_BYTES + FRAME_BYTES - 1])
@pytest.mark.parametrize("cut", [0, 1, 3])
def test_a_segment_that_ends_below_the_head_is_refused(tmp_path: Path, size: int, cut: int) -> None:
    fill(tmp_path, 10, segment_bytes=100)
    os.truncate(segments(tmp_path)[cut], size)
    assert refused(tmp_path).startswith("R698")


def test_two_writers_are_one_too_many(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    message = f"R610 checkpoint {tmp_path} is in use by another run (process {os.getpid()})"
    assert refused(tmp_path).startswith(message)
    writer.close()
    JournalWriter(tmp_path).close()


def test_the_head_of_another_journal_is_refused(tmp_path: Path) -> None:
    fill(tmp_path / "a", 1)
    fill(tmp_path / "b", 1)
    shutil.copy(tmp_path / "a" / "head", tmp_path / "b" / "head")
    assert refused(tmp_path / "b").startswith("R698")


def test_segments_below_the_committed_offset_are_removed_but_for_the_last(tmp_path: Path) -> None:
    fill(tmp_path, 10, segment_bytes=100)
    reader = JournalReader(tmp_path)
    reader.commit(4 * FRAME_BYTES)
    reader.commit(2 * FRAME_BYTES)
    writer = JournalWriter(tmp_path, 100)
    gone: list[int] = []
    assert writer.remove_committed(gone.append) == 4 * FRAME_BYTES == read_committed(tmp_path)
    assert [int(path.stem) // FRAME_BYTES for path in segments(tmp_path)] == [3, 6, 9]
    reader.commit(10 * FRAME_BYTES)
    writer.remove_committed(gone.append)
    assert [int(path.stem) // FRAME_BYTES for path in segments(tmp_path)] == [9]
    assert gone == [3 * FRAME_BYTES, 9 * FRAME_BYTES]
    append(writer, 1)
    writer.close()
    assert fill(tmp_path, 0).messages == 11


def test_readers_see_nothing_before_it_is_safe(tmp_path: Path) -> None:
    writer = JournalWriter(tmp_path)
    reader = JournalReader(tmp_path)
    append(writer, 1)
    assert reader.end().offset == 0
    writer.sync()
    assert reader.end().offset == FRAME_BYTES
    append(writer, 1)
    writer.publish()
    assert reader.end() == writer.end
    writer.close()


def test_nothing_is_left_of_a_frame_that_did_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = JournalWriter(tmp_path)
    append(writer, 1)
    real = os.pwrite
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", lambda fd, data, at: real(fd, data[:10], at) if len(data) > 10 else fail())
        with pytest.raises(OSError, match="No space"):
            append(writer, 1)
    assert segments(tmp_path)[0].stat().st_size == HEADER_BYTES + FRAME_BYTES
    append(writer, 1)
    writer.close()
    assert len(content(tmp_path)) == 2 * FRAME_BYTES


def fail() -> int:
    raise OSError(28, os.strerror(28))
