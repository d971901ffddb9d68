"""The first steps of a journal's writer: find its end, and cut off a frame that a crash left half written."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from wallaroo_runtime.durable.file import sync_directory
from wallaroo_runtime.storage.journal.head import Position, read_committed, read_head
from wallaroo_runtime.storage.journal.segment import (
    SEGMENT_HEADER_BYTES,
    Segment,
    SegmentHeader,
    create_segment,
    damaged,
    frame_boundaries,
    list_segments,
    other_journal,
    read_segment_header,
    verify_frames,
)

_CHUNK_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Scan:
    """The undamaged part of a segment, and the reason why that part ends."""

    end: int
    sequence: int
    journal_id: int | None
    fault: str


def recover(directory: Path) -> tuple[list[Segment], int, Position, int]:
    """Open the journal in `directory`, or make a new one.

    Whole frames after the head are kept. The first partial frame is cut off, with everything after it.

    Returns:
        The segments, a descriptor of the last segment, the end, and the sequence of the next frame.

    Raises:
        RunError: R698 if bytes below the head are lost or changed, or head and segments are of two journals.
    """
    for left in directory.glob("*.new"):
        left.unlink()
    head = read_head(directory)
    segments = list_segments(directory)
    if not segments:
        if head is not None and head.offset:
            raise damaged(directory, 0, f"no segment is left; the head is at {head.offset}")
        journal_id = head.journal_id if head is not None else secrets.randbits(63) | 1
        segment, descriptor = create_segment(directory, SegmentHeader(0, 0, journal_id))
        return [segment], descriptor, Position(0, 0, journal_id), 0
    safe, kept, scan = _look(directory, head, segments)
    if head is not None and scan.journal_id != head.journal_id:
        raise other_journal(directory, f"{head.journal_id:016x}", _shown(scan.journal_id))
    if scan.end < safe:
        raise damaged(segments[kept].path, scan.end, scan.fault or f"the file ends here; the head is at {safe}")
    assert scan.journal_id is not None
    end = Position(scan.end, _messages(segments[: kept + 1], head, scan.end), scan.journal_id)
    descriptor = _cut(directory, segments, kept, scan.end)
    return segments[: kept + 1], descriptor, end, scan.sequence


def whole_end(directory: Path) -> int:
    """Return the end that `recover` would find, without changing anything.

    Frames are synced and the head is not, so after a loss of power the head may be older than the frames.

    Raises:
        RunError: R698, as `recover`.
    """
    segments = list_segments(directory)
    return _look(directory, read_head(directory), segments)[2].end if segments else 0


def _look(directory: Path, head: Position | None, segments: list[Segment]) -> tuple[int, int, Scan]:
    """Return the offset in `head`, and the index and undamaged part of the last segment (file) to keep."""
    safe = segments[-1].base if head is None else head.offset
    first = _first_to_verify(directory, segments, safe)
    return safe, *_verify(segments, first, safe)


def _messages(segments: list[Segment], head: Position | None, end: int) -> int:
    """Return the number of messages before `end`: the file `head` has a number, and later frames are counted."""
    start, messages = (segments[0].base, 0) if head is None else (head.offset, head.messages)
    if head is None and start:
        reason = f"the file head is lost or not whole; only it knows how many messages there were before {start}"
        raise damaged(segments[0].path.parent, start, reason)
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        first, stop = max(start, segment.base), end if following is None else following.base
        if first < stop:
            with segment.path.open("rb") as file:
                messages += sum(count for _, count in frame_boundaries(file.fileno(), segment, first, stop))
    return messages


def _shown(journal_id: int | None) -> str:
    return "none" if journal_id is None else f"{journal_id:016x}"


def _first_to_verify(directory: Path, segments: list[Segment], safe: int) -> int:
    """Return the index of the segment (file) in which the offset of `head` is. Earlier segments must be complete."""
    if segments[0].base > safe:
        raise damaged(segments[0].path, safe, f"the first segment begins at {segments[0].base}; the head is at {safe}")
    if segments[0].base > (committed := read_committed(directory)):
        reason = f"the first segment begins at {segments[0].base}; only what is below {committed} may be missing"
        raise damaged(directory, committed, reason)
    first = max(index for index, segment in enumerate(segments) if segment.base <= safe)
    for segment, following in zip(segments[:first], segments[1:], strict=False):
        if segment.base + segment.size() != following.base:
            reason = f"the file has {segment.size()} bytes of frames; expected {following.base - segment.base}"
            raise damaged(segment.path, segment.base, reason)
    return first


def _verify(segments: list[Segment], first: int, safe: int) -> tuple[int, Scan]:
    """Verify the segments (files) from `first` on. Return the index and the undamaged part of the last one to keep."""
    kept, good = first, _scan(segments[first], None)
    if good.journal_id is None:
        raise damaged(segments[first].path, segments[first].base, good.fault)
    for index in range(first + 1, len(segments)):
        if good.fault or good.end != segments[index].base:
            break
        scan = _scan(segments[index], good.sequence)
        if scan.journal_id != good.journal_id:
            break
        kept, good = index, scan
    if good.fault and good.end < safe:
        raise damaged(segments[kept].path, good.end, good.fault)
    return kept, good


def _scan(segment: Segment, sequence: int | None) -> Scan:
    descriptor = os.open(segment.path, os.O_RDONLY)
    try:
        header = read_segment_header(descriptor)
        if header is None or header.base != segment.base or sequence not in (None, header.sequence):
            return Scan(segment.base, sequence or 0, None, "the file has no valid header")
        at, sequence, wanted = segment.base, header.sequence, _CHUNK_BYTES
        while data := os.pread(descriptor, max(wanted, _CHUNK_BYTES), SEGMENT_HEADER_BYTES + at - segment.base):
            progress = verify_frames(data, sequence)
            at += progress.end
            sequence = header.sequence if progress.sequence is None else progress.sequence
            torn = not progress.end and len(data) < progress.wanted
            if progress.fault or torn:
                return Scan(at, sequence, header.journal_id, progress.fault or "the last frame is not whole")
            wanted = progress.wanted
        return Scan(at, sequence, header.journal_id, "")
    finally:
        os.close(descriptor)


def _cut(directory: Path, segments: list[Segment], kept: int, end: int) -> int:
    """Remove everything after `end`, and sync the rest to disk. Return a descriptor of the last kept segment."""
    for segment in reversed(segments[kept + 1 :]):
        segment.path.unlink()
    descriptor = os.open(segments[kept].path, os.O_RDWR)
    os.ftruncate(descriptor, SEGMENT_HEADER_BYTES + end - segments[kept].base)
    os.fsync(descriptor)
    sync_directory(directory)
    return descriptor
