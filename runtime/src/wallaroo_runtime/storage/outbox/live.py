"""The live log: the output of real-time mode, in order. It is delivered before its micro-batch ends.

It is in the folder `live` of the outbox, in segments `<base offset, 20 digits>.live` of entries. The first entry of a
segment has the state after all earlier segments. The file `head` has the end of the log's safe part.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo.message.frame import HEADER_BYTES, MAX_FRAME_BYTES, FrameError, check_frame
from wallaroo_runtime.durable.record import unpack_line
from wallaroo_runtime.storage.outbox.log import damaged

FOLDER = "live"
_SUFFIX = ".live"
_MAGIC = b"WLE1"
_HEADER = struct.Struct("<4sBBHiIIIQI")
_CHECKSUM = struct.Struct("<I")
ENTRY_BYTES = _HEADER.size + _CHECKSUM.size
BEGIN, OPENING, OUTPUT = 1, 2, 3
_BLOCK_BYTES = 128 * 1024


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the live log: a frame of output, or a line that begins a file or the output of a task attempt.

    Attributes:
        kind: BEGIN for a line with the state of the log at the beginning of a segment, OPENING for a line with the
            attempt whose output follows, OUTPUT for a frame.
        port: Port of the frame; 65535 for dead letters.
        bucket: Bucket whose state gave the output; -1 for a stage without state.
        partition: Spark's partition that delivered the output.
        skip: Number of messages at the beginning of the frame that earlier entries already contain.
        sequence: Sequence of the frame's last message. For dead letters: offset of the frame in the attempt's file of
            dead letters. For an OPENING: size of that file.
        count: Number of results of that sequence in the log, including this frame.
        content: The line or frame.
        offset: Offset at which the entry begins.
    """

    kind: int
    port: int = 0
    bucket: int = 0
    partition: int = 0
    skip: int = 0
    sequence: int = 0
    count: int = 0
    content: bytes = b""
    offset: int = 0

    @property
    def end(self) -> int:
        """Offset at which the entry ends."""
        return self.offset + ENTRY_BYTES + len(self.content)

    def head(self) -> bytes:
        """Return the header of the entry, which comes before the content."""
        numbers = (self.port, self.bucket, self.partition, self.skip, len(self.content), self.sequence, self.count)
        head = _HEADER.pack(_MAGIC, self.kind, 0, *numbers)
        return head + _CHECKSUM.pack(zlib.crc32(head))

    def fits(self) -> bool:
        """Return whether the content of this entry fits its checksum."""
        if self.kind != OUTPUT:
            return self.line() is not None
        try:
            return check_frame(self.content).body_bytes + HEADER_BYTES == len(self.content)
        except FrameError:
            return False

    def line(self) -> dict[str, Any] | None:
        """Return the parsed content of an entry that has a line; None if the line is damaged."""
        return unpack_line(self.content.rstrip(b"\n"))


@dataclass(frozen=True, slots=True)
class LiveSegment:
    """A file of the live log. Its name `base` is the offset of its first entry."""

    path: Path
    base: int


def segment_at(directory: Path, base: int) -> LiveSegment:
    """Return the segment of the live log in `directory` that begins at an offset."""
    return LiveSegment(directory / _name_at(base), base)


def _name_at(base: int) -> str:
    return f"{base:020d}{_SUFFIX}"


def live_segments(directory: Path) -> list[LiveSegment]:
    """Return the segments of the live log in `directory`, in order; empty if there is none."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return []
    stems = sorted(name[: -len(_SUFFIX)] for name in names if name.endswith(_SUFFIX))
    return [segment_at(directory, int(stem)) for stem in stems if stem.isdigit()]


def first_offset(outbox: Path) -> int:
    """Return the offset at which the first segment of an outbox's live log begins; 0 if there is none."""
    segments = live_segments(outbox / FOLDER)
    return segments[0].base if segments else 0


def entry_at(block: bytes, at: int, offset: int) -> tuple[Entry | None, int]:
    """Read the entry that begins at index `at` of a block of the live log.

    Returns:
        The entry, None if the block does not have all of it; and its size, as far as that is known.

    Raises:
        ValueError: No entry begins there.
    """
    if len(block) - at < ENTRY_BYTES:
        return None, ENTRY_BYTES
    magic, kind, _, port, bucket, partition, skip, size, sequence, count = _HEADER.unpack_from(block, at)
    (checksum,) = _CHECKSUM.unpack_from(block, at + _HEADER.size)
    if magic != _MAGIC or checksum != zlib.crc32(block[at : at + _HEADER.size]) or size > 2 * MAX_FRAME_BYTES:
        reason = f"no entry begins at {offset}"
        raise ValueError(reason)
    begin = at + ENTRY_BYTES
    if begin + size > len(block):
        return None, ENTRY_BYTES + size
    content = block[begin : begin + size]
    return Entry(kind, port, bucket, partition, skip, sequence, count, content, offset), ENTRY_BYTES + size


def whole_entries(segment: LiveSegment) -> list[Entry]:
    """Return the undamaged entries at the beginning of a segment (file of the log), up to the first damaged one."""
    content = segment.path.read_bytes()
    entries: list[Entry] = []
    at = 0
    while at < len(content):
        try:
            entry, size = entry_at(content, at, segment.base + at)
        except ValueError:
            break
        if entry is None or not entry.fits():
            break
        entries.append(entry)
        at += size
    return entries


class LiveReader:
    """Reads the live log while it is written, including bytes that are not safe yet.

    Args:
        directory: The outbox.
        offset: Offset of the first entry to read.

    Attributes:
        offset: Offset of the next entry.
    """

    def __init__(self, directory: Path, offset: int = 0) -> None:
        self._outbox, self._directory, self.offset = directory, directory / FOLDER, offset
        self._prefix = f"{self._directory}/"  # a string, since each message uses it and paths are slow
        self._segment: LiveSegment | None = None
        self._descriptor = -1

    def entries(self, end: int | None = None) -> Iterator[Entry]:
        """Yield the existing entries that begin before the offset `end`; all existing entries if `end` is None.

        Raises:
            RunError: R698 if the log is damaged.
        """
        while end is None or self.offset < end:
            entry = None
            for entry in self._block(end):
                self.offset = entry.end
                yield entry
            if entry is None and not self._open():
                return

    def _block(self, end: int | None) -> Iterator[Entry]:
        """Yield the whole entries of the next block of the open segment (file), but none from the offset `end` on."""
        if self._segment is None:
            return
        begin, size = self.offset, _BLOCK_BYTES
        block = os.pread(self._descriptor, size, begin - self._segment.base)
        at = 0
        while at < len(block) and (end is None or begin + at < end):
            entry, needed = self._entry(block, at, begin + at)
            if entry is None and not at and needed > len(block) == size:
                size = needed  # the entry is larger than a block
                block = os.pread(self._descriptor, size, begin - self._segment.base)
                entry, _ = self._entry(block, 0, begin)
            if entry is None:
                return  # the entry is not whole in this block, or not whole yet
            yield entry
            at += needed

    def _entry(self, block: bytes, at: int, offset: int) -> tuple[Entry | None, int]:
        try:
            return entry_at(block, at, offset)
        except ValueError as error:
            raise damaged(self._outbox, f"its live log: {error}") from error

    def _open(self) -> bool:
        """Open the segment (file) of the next entry if the open one is read. Return whether to look for entries.

        Removed segments are skipped, because nothing in them is still needed.
        """
        if self._segment is not None and not self._is_over():
            return False
        segments = live_segments(self._directory)
        if not segments or self._segment is not None and segments[-1].base <= self._segment.base:
            return False
        candidates = [segment for segment in segments if segment.base <= self.offset] or segments[:1]
        self.close()
        try:
            self._descriptor = os.open(candidates[-1].path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return True  # removed meanwhile: look again
        self._segment, self.offset = candidates[-1], max(self.offset, candidates[-1].base)
        return True

    def _is_over(self) -> bool:
        """Return whether the open segment was read completely and gets no more entries."""
        assert self._segment is not None
        stat = os.fstat(self._descriptor)
        if self.offset < self._segment.base + stat.st_size:
            return False  # the last entry is not whole yet
        is_removed = not stat.st_nlink
        return is_removed or self.offset > self._segment.base and os.path.exists(self._prefix + _name_at(self.offset))

    def close(self) -> None:
        """Close the open segment. The next call opens it again."""
        if self._segment is not None:
            os.close(self._descriptor)
        self._segment = None
