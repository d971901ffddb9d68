"""Staging files of one task attempt."""

import zlib
from pathlib import Path

import pytest

from wallaroo.frame import FrameError, encode_frame
from wallaroo_runtime.egress import StagedFile, StagingWriter


def test_one_file_per_port_made_with_its_first_frame(tmp_path: Path) -> None:
    directory = tmp_path / "staging"
    writer = StagingWriter(directory, "query", batch=3, partition=1, stage_attempt=0, task_attempt=77)
    assert list(directory.iterdir()) == []
    frames = {5: [encode_frame([b"a", b""], port=5), encode_frame([b"b"], port=5)], 4: [encode_frame([], port=4)]}
    for port, each in frames.items():
        for frame in each:
            writer.write(port, frame)
    files = writer.finish()
    expected = []
    for port, messages in ((4, 0), (5, 3)):
        data, path = b"".join(frames[port]), directory / f"query-3-1-0-77-{port}.frames"
        assert path.read_bytes() == data
        assert path.stat().st_mode & 0o777 == 0o600
        expected.append(StagedFile(port, str(path), len(data), zlib.crc32(data), messages, 1))
    assert files == expected


def test_abort_leaves_nothing(tmp_path: Path) -> None:
    writer = StagingWriter(tmp_path, "query", 3, 1, 0, 77)
    writer.write(5, encode_frame([b"a"], port=5))
    with pytest.raises(FrameError):
        writer.write(5, b"no frame")
    writer.abort()
    assert list(tmp_path.iterdir()) == []
    writer.abort()
    assert StagingWriter(tmp_path, "query", 3, 1, 0, 78, fsync=False).finish() == []
