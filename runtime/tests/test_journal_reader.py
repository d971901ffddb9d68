"""The reading side of a journal."""

import os
import pickle
import threading
import time
from contextlib import suppress
from itertools import chain, pairwise, repeat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo.message.frame import TICK_PORT, split_frames
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.journal.head import Position
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.system import file_watch

SIZES = st.lists(st.one_of(st.just(0), st.integers(0, 3000)), max_size=40)


def write(directory: Path, sizes: list[int], segment_bytes: int) -> list[int]:
    """Write frames with bodies of these sizes, and a tick where it is 0; returns all boundaries."""
    writer = JournalWriter(directory, segment_bytes)
    boundaries = [0]
    for size in sizes:
        writer.append(*((1, 2, [b"x" * size]) if size else (TICK_PORT, 0, [])), 0)
        boundaries.append(writer.end.offset)
    writer.close()
    return boundaries


@settings(max_examples=60, deadline=None)
@given(SIZES, st.integers(1, 5000), st.integers(1, 8000), st.integers(1, 9), st.data())
def test_ranges_are_whole_frames_and_together_the_journal(
    sizes: list[int], segment_bytes: int, limit: int, parts: int, data: st.DataObject
) -> None:
    with TemporaryDirectory() as directory:
        boundaries = write(Path(directory), sizes, segment_bytes)
        messages = [2 * sum(size > 0 for size in sizes[:at]) for at in range(len(boundaries))]
        reader = JournalReader(directory)
        end = reader.end()
        assert (end.offset, end.messages) == (boundaries[-1], messages[-1])
        at = data.draw(st.sampled_from(boundaries))
        begin = Position(at, messages[boundaries.index(at)], end.journal_id)
        found = reader.limit(begin, limit)
        within = [offset for offset in boundaries if at < offset <= at + limit]
        following = [offset for offset in boundaries if offset > at]
        assert found.offset == (within[-1] if within else following[0] if following else at)
        assert found.messages == messages[boundaries.index(found.offset)]

        ends = reader.split(at, end.offset, parts)
        assert len(ends) <= parts
        assert (ends[-1] if ends else at) == end.offset
        assert set(ends) <= set(boundaries)
        ranges = list(pairwise([at, *ends]))
        target = (end.offset - at) / parts
        assert all(0 < last - first <= target + 3040 for first, last in ranges)

        pieces = [piece for first, last in ranges for piece in reader.read(first, last, limit)]
        assert all(len(piece) <= max(limit, 3040) for piece in pieces)
        frames = [header for piece in pieces for header, _, _ in split_frames(piece)]
        assert [header.body_bytes for header in frames] == sizes[boundaries.index(at) :]
        for first, second in pairwise(frames):
            assert second.sequence == first.sequence + (1 if first.port == TICK_PORT else 2)


def test_a_frame_larger_than_a_piece_comes_alone(tmp_path: Path) -> None:
    write(tmp_path, [10, 100_000, 10], 1 << 20)
    reader = JournalReader(tmp_path)
    assert [len(piece) for piece in reader.read(0, reader.end().offset, 1000)] == [50, 100_040, 50]


def test_a_reader_survives_pickling_and_keeps_the_identity(tmp_path: Path) -> None:
    write(tmp_path / "a", [1], 100)
    write(tmp_path / "b", [1], 100)
    reader = JournalReader(tmp_path / "a")
    end = reader.end()
    copy = pickle.loads(pickle.dumps(reader))
    assert copy.end() == end
    copy.directory = tmp_path / "b"
    other = JournalReader(tmp_path / "b").end()
    with pytest.raises(RunError) as caught:
        copy.end()
    assert str(caught.value) == (
        f"R698 journal {tmp_path / 'b'} is damaged; the checkpoint refers to journal {end.journal_id:016x}; found "
        f"{other.journal_id:016x}\n  fix: restore all of the checkpoint from one backup (application.json, spark, "
        "journal and "
        "outbox belong together), or --fresh to start over; if a backup is damaged, take another one"
    )
    with pytest.raises(RunError, match="R698"):
        list(copy.read(0, end.offset))


def test_a_journal_that_is_not_there(tmp_path: Path) -> None:
    for act in (lambda r: r.end(), lambda r: list(r.read(0, 10)), lambda r: r.split(0, 10, 2)):
        with pytest.raises(RunError, match=r"R698 .* refers to journal 000000000000000a; found none"):
            act(JournalReader(tmp_path / "none", 10))


@pytest.mark.parametrize("at", [32, 40, 50, 68, 73])
def test_damaged_bytes_are_not_handed_out(tmp_path: Path, at: int) -> None:
    write(tmp_path, [10, 10], 1 << 20)
    (segment,) = tmp_path.glob("*.journal")
    data = bytearray(segment.read_bytes())
    data[at] ^= 0x20
    segment.write_bytes(data)
    reader = JournalReader(tmp_path)
    with pytest.raises(RunError, match=r"R698 .* at offset 0 is damaged;"):
        list(reader.read(0, reader.end().offset))


def test_a_start_that_is_no_boundary_and_a_file_that_ends_early(tmp_path: Path) -> None:
    boundaries = write(tmp_path, [10, 10], 1 << 20)
    reader = JournalReader(tmp_path)
    with pytest.raises(RunError, match="R698"):
        list(reader.read(3, boundaries[-1]))
    with pytest.raises(RunError, match="R698"):
        reader.split(3, boundaries[-1], 2)
    (segment,) = tmp_path.glob("*.journal")
    segment.write_bytes(segment.read_bytes()[:-1])
    with pytest.raises(RunError, match="R698"):
        list(reader.read(0, boundaries[-1]))


def test_a_segment_that_was_removed(tmp_path: Path) -> None:
    boundaries = write(tmp_path, [10, 10], 1)
    sorted(tmp_path.glob("*.journal"))[0].unlink()
    with pytest.raises(RunError, match=rf"R698 .* at offset 0 is damaged; the first segment begins at {boundaries[1]}"):
        list(JournalReader(tmp_path).read(0, boundaries[-1]))


def test_commit_only_moves_forward(tmp_path: Path) -> None:
    write(tmp_path, [], 1)
    reader = JournalReader(tmp_path)
    for offset, expected in ((5, b"5 84b12bae\n"), (3, b"5 84b12bae\n"), (7, b"7 6abf4a82\n")):
        reader.commit(offset)
        assert (tmp_path / "committed").read_bytes() == expected
    assert reader.end() == Position(0, 0, reader.end().journal_id)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=12), st.booleans())
def test_who_watches_the_head_hears_of_each_position(steps: list[tuple[int, int]], is_told: bool) -> None:
    """A write that nobody heard of would cost 300 s: pauses of both sides are drawn, and whether the system reports."""
    with TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
        if not is_told:
            patch.setattr(file_watch, "_libc", None)
        writer = JournalWriter(Path(directory))
        reader, offset, open_files = JournalReader(directory), 0, watches_and_heads()
        ends: list[int] = []

        def wait(seconds: float) -> int:
            deadline = time.monotonic() + seconds
            with file_watch.FileWatch(reader.directory / "head") as head:
                while (end := reader.end().offset) <= offset and (left := deadline - time.monotonic()) > 0:
                    head.wait(left)
            return end

        def write_all() -> None:
            for pause, _ in steps:
                time.sleep(pause / 1000)
                writer.append(1, 1, [b"x"], 0)
                ends.append(writer.end.offset)
                writer.sync()
                writer.publish()

        thread = threading.Thread(target=write_all)
        begun = time.monotonic()
        thread.start()
        pauses = chain((pause for _, pause in steps), repeat(0))
        while len(ends) < len(steps) or offset < ends[-1]:
            time.sleep(next(pauses) / 1000)
            found = wait(300)
            assert offset < found <= ends[-1]
            offset = found
        thread.join()
        assert time.monotonic() - begun < 150
        assert wait(0.001) == offset
        assert watches_and_heads() == open_files
        writer.close()


def watches_and_heads() -> int:
    """Return the number of these open files. Files of other tests may be closed at any moment, as garbage."""
    count = 0
    for file in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # it listed the files
            count += os.readlink(file).endswith(("inotify", "/head"))
    return count
