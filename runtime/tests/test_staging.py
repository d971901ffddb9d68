"""Staging files of one task attempt."""

import resource
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from wallaroo.message.frame import FrameError, encode_frame
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.outbox.staging import StagedFile, StagingWriter


def test_one_file_per_port_made_with_its_first_frame(tmp_path: Path) -> None:
    directory = tmp_path / "staging"
    writer = StagingWriter(directory, "query", batch=3, partition=1, task_attempt=77)
    assert list(directory.iterdir()) == []
    frames = {5: [encode_frame([b"a", b""], port=5), encode_frame([b"b"], port=5)], 4: [encode_frame([], port=4)]}
    for port, each in frames.items():
        for frame in each:
            writer.write(port, frame)
    files = writer.finish()
    expected = []
    for port, messages in ((4, 0), (5, 3)):
        data, path = b"".join(frames[port]), directory / f"query-3-1-77-{port}.frames"
        assert path.read_bytes() == data
        assert path.stat().st_mode & 0o777 == 0o600
        expected.append(StagedFile(port, str(path), len(data), zlib.crc32(data), messages, 1))
    assert files == expected


def test_abort_leaves_nothing(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "query", 3, 1, 77)
    writer.write(5, encode_frame([b"a"], port=5))
    with pytest.raises(FrameError):
        writer.write(5, b"no frame")
    writer.abort()
    assert list(tmp_path.iterdir()) == []
    writer.abort()
    assert StagingWriter(tmp_path, "query", 3, 1, 78).finish() == []


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    """Let no file grow beyond a size: the same kind of error as a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_no_room_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "query", 3, 1, 77)
    writer.write(5, encode_frame([b"a" * 50_000], port=5))
    with file_limit(10_000), pytest.raises(RunError) as caught:
        writer.finish()
    with file_limit(10_000):
        writer.abort()
    assert str(caught.value) == (
        f"R626 the disk of {tmp_path} takes nothing more; File too large\n"
        "  fix: free some space, and repeat it; a run continues from its checkpoint, "
        "and nothing that was acknowledged is lost"
    )
    assert list(tmp_path.iterdir()) == []
