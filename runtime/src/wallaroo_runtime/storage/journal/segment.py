"""Segments: the files that hold the frames of a journal."""

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wallaroo.message.frame import CONTROL_PORTS, HEADER, HEADER_BYTES, MAGIC, MAX_BODY_BYTES
from wallaroo_runtime.errors import RunError

SEGMENT_MAGIC = b"WJR1"
_SEGMENT = struct.Struct("<4sIQQQ")
SEGMENT_HEADER_BYTES = _SEGMENT.size
_VERSION = 1
_BLOCK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of a journal; `base`, its name, is the offset of its first frame."""

    path: Path
    base: int

    def size(self) -> int:
        """Return the number of frame bytes in the file now."""
        return max(0, self.path.stat().st_size - SEGMENT_HEADER_BYTES)


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """The header of a segment: offset and sequence of its first frame, and the id of the journal."""

    base: int
    sequence: int
    journal_id: int


def list_segments(directory: Path) -> list[Segment]:
    """Return the segments of a journal in order; empty if the journal has no segments."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    stems = sorted(name[:-8] for name in names if name.endswith(".journal") and name[:-8].isdigit())
    return [Segment(directory / f"{stem}.journal", int(stem)) for stem in stems]


def create_segment(directory: Path, header: SegmentHeader) -> tuple[Segment, int]:
    """Make an empty segment, and return it with an open descriptor.

    The file gets its final name after its header is synced, so that no segment is ever without a header.
    """
    path = directory / f"{header.base:020d}.journal"
    new = path.with_suffix(".new")
    descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        content = _SEGMENT.pack(SEGMENT_MAGIC, _VERSION, header.base, header.sequence, header.journal_id)
        write_all(descriptor, content, 0)
        os.fsync(descriptor)
        new.rename(path)
    except OSError:
        os.close(descriptor)
        new.unlink(missing_ok=True)
        raise
    return Segment(path, header.base), descriptor


def read_segment_header(descriptor: int) -> SegmentHeader | None:
    """Read the header of an open segment; None if the file does not begin with a header."""
    content = os.pread(descriptor, SEGMENT_HEADER_BYTES, 0)
    if len(content) < SEGMENT_HEADER_BYTES:
        return None
    magic, version, base, sequence, journal_id = _SEGMENT.unpack(content)
    return SegmentHeader(base, sequence, journal_id) if (magic, version) == (SEGMENT_MAGIC, _VERSION) else None


def write_all(descriptor: int, content: bytes, at: int) -> None:
    """Write all of `content` at a position of a file.

    Raises:
        OSError: Not everything could be written; a part may have been written.
    """
    rest = memoryview(content)
    while rest:
        written = os.pwrite(descriptor, rest, at)
        rest, at = rest[written:], at + written


@contextmanager
def undone(descriptor: int, size: int) -> Iterator[None]:
    """If a write in the `with` block fails, cut the file to its former size, so that no part of the write is left."""
    try:
        yield
    except OSError:
        os.ftruncate(descriptor, size)
        raise


@dataclass(frozen=True, slots=True)
class GoodFrames:
    """The undamaged frames at the beginning of some bytes.

    Attributes:
        end: Position after the last good frame.
        sequence: Sequence number of the next frame; None if it is not known, because there is no good frame.
        wanted: Known size of the frame at `end` if it is not whole; at least the size of a header.
        fault: Reason why the frame at `end` is wrong; empty if it is only not whole.
    """

    end: int
    sequence: int | None
    wanted: int
    fault: str


def verify_frames(data: bytes, sequence: int | None = None) -> GoodFrames:
    """Verify layout, checksums and sequence numbers of the frames at the start of `data`.

    Args:
        data: Bytes that begin at a frame boundary.
        sequence: Sequence number that the first frame must have; None accepts any number.
    """
    at, size, view, unpack, crc = 0, len(data), memoryview(data), HEADER.unpack_from, zlib.crc32
    while size - at >= HEADER_BYTES:
        magic, flags, _, _, count, body_bytes, first, _, reserved, checksum = unpack(data, at)
        if magic != MAGIC or body_bytes > MAX_BODY_BYTES or flags & ~31 or reserved:
            return GoodFrames(at, sequence, HEADER_BYTES, "no frame begins here")
        body = at + HEADER_BYTES
        end = body + body_bytes
        if end > size:
            return GoodFrames(at, sequence, end - at, "")
        if crc(view[body:end], crc(view[at : at + 36])) != checksum:
            return GoodFrames(at, sequence, HEADER_BYTES, "the checksum of the frame does not fit")
        if sequence is not None and first != sequence:
            return GoodFrames(at, sequence, HEADER_BYTES, f"the frame has sequence {first}; expected {sequence}")
        sequence, at = first + count, end
    return GoodFrames(at, sequence, HEADER_BYTES, "")


def frame_boundaries(descriptor: int, segment: Segment, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield end and number of messages of each frame in [start, stop) of a segment. Read only headers.

    Raises:
        RunError: R698 if the segment is damaged.
    """
    block, base, at = b"", start, start
    while at < stop:
        index = at - base
        if index + HEADER_BYTES > len(block):
            # Each large frame costs one small read; small frames share a block.
            block, base, index = os.pread(descriptor, _BLOCK_BYTES, SEGMENT_HEADER_BYTES + at - segment.base), at, 0
            if len(block) < HEADER_BYTES:
                raise damaged(segment.path, at, "the file ends here")
        magic, _, _, port, count, body_bytes, *_ = HEADER.unpack_from(block, index)
        at += HEADER_BYTES + body_bytes
        if magic != MAGIC or body_bytes > MAX_BODY_BYTES or at > stop:
            raise damaged(segment.path, base + index, "no frame begins here")
        yield at, 0 if port in CONTROL_PORTS else count


def other_journal(path: Path, expected: str, actual: str) -> RunError:
    """Return the error for a journal with another id than the checkpoint refers to."""
    return RunError.of(
        "R698", what=f"journal {path}", reason=f"the checkpoint refers to journal {expected}; found {actual}"
    )


def damaged(path: Path, offset: int, reason: str) -> RunError:
    """Return the error for a journal that lost or changed bytes that were safe on disk (R698)."""
    return RunError.of("R698", what=f"journal {path} at offset {offset}", reason=reason)
