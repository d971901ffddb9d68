"""Files that a connector reads slowly."""

import contextlib
import struct
import time
from pathlib import Path

import pytest

from wallaroo import experimental

SECONDS = 90


def test_a_throttled_file_gives_few_messages_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"".join(struct.pack(">I", 1) + bytes((number,)) for number in range(6)))
    source = experimental.ThrottledFileReader(str(path), most_unacknowledged=2)
    assert [next(source) for _ in range(3)] == [(b"\0", 5), (b"\1", 10), (None, 10)]
    source.wallaroo_acked(5)
    assert [next(source) for _ in range(2)] == [(b"\2", 15), (None, 15)]
    source.reset(5)
    assert [next(source) for _ in range(3)] == [(b"\1", 10), (b"\2", 15), (None, 15)]
    source.wallaroo_acked(15)
    assert [next(source)[0] for _ in range(3)] == [b"\3", b"\4", None]
    source.wallaroo_acked(25)
    assert next(source) == (b"\5", 30)
    with pytest.raises(StopIteration):
        next(source)
    source.close()


def test_a_throttled_file_keeps_to_its_rate(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(struct.pack(">IB", 1, 7) * 5)
    source = experimental.ThrottledFileReader(str(path), rate=20)
    begin, given, asked = time.monotonic(), 0, 0
    with contextlib.suppress(StopIteration):
        while time.monotonic() < begin + SECONDS:
            asked += 1
            given += next(source)[0] is not None
    # The first comes at once, the end with the time of the sixth.
    assert given == 5
    assert time.monotonic() - begin >= 0.2
    assert asked > given
    source.close()
