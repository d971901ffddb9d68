"""Reads a journal. Any process may do so."""

import os
from bisect import bisect_right
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from wallaroo.message.frame import split_frames
from wallaroo_runtime.durable.file import NO_ROOM
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.storage.journal.head import Position, read_head, write_committed
from wallaroo_runtime.storage.journal.segment import (
    SEGMENT_HEADER_BYTES,
    Segment,
    damaged,
    frame_boundaries,
    list_segments,
    other_journal,
    read_segment_header,
    verify_frames,
)


class JournalReader:
    r"""Reads the frames of a journal that its writer has made readable. These bytes never change.

    A reader holds no file open between calls, and can be pickled.

    Args:
        directory: The journal.
        journal_id: Id that the journal must have; None accepts the journal that the first call finds.

    Example:
        >>> from tempfile import mkdtemp
        >>> from wallaroo_runtime.storage.journal.writer import JournalWriter
        >>> directory = Path(mkdtemp())
        >>> writer = JournalWriter(directory)
        >>> _ = writer.append(0, 1, [b"\x00\x00\x00\x02hi"], timestamp_ms=0)
        >>> writer.close()
        >>> reader = JournalReader(directory)
        >>> end = reader.end()
        >>> end.offset, end.messages, [len(piece) for piece in reader.read(0, end.offset)]
        (46, 1, [46])
    """

    def __init__(self, directory: Path | str, journal_id: int | None = None) -> None:
        self.directory = Path(directory)
        self._journal_id = journal_id

    def end(self) -> Position:
        """Return the position up to which the journal may be read now.

        Raises:
            RunError: R698 if the journal is missing or has another id.
        """
        head = read_head(self.directory)
        if head is None or self._journal_id not in (None, head.journal_id):
            raise self._missing(None if head is None else head.journal_id)
        self._journal_id = head.journal_id
        return head

    def id(self) -> int | None:
        """Return the journal's id, from `head` or a segment; None if there is no journal."""
        if (head := read_head(self.directory)) is not None:
            return head.journal_id
        for segment in list_segments(self.directory):
            with segment.path.open("rb") as file:
                header = read_segment_header(file.fileno())
            if header is not None:
                return header.journal_id
        return None

    def limit(self, start: Position, max_bytes: int) -> Position:
        """Return the end of a micro-batch that begins at `start`: the last frame boundary within `max_bytes`.

        The micro-batch has at least one frame. If no frame follows `start`, return the end of the journal.

        Raises:
            RunError: R698 if the journal is damaged or missing.
        """
        end = self.end()
        if end.offset - start.offset <= max_bytes:
            return end
        chosen, messages = None, start.messages
        for offset, count in self._boundaries(start.offset, end.offset):
            if chosen is not None and offset - start.offset > max_bytes:
                break
            messages += count
            chosen = Position(offset, messages, end.journal_id)
        return chosen or end

    def next_sequence(self, offset: int) -> int:
        """Return the sequence (number) of the first message after an offset; -1 if no frame follows.

        Raises:
            RunError: R698 if the journal is damaged or missing.
        """
        pieces = self.read(offset, self.end().offset)
        return next((header.sequence for piece in pieces for header, *_ in split_frames(piece)), -1)

    def split(self, start: int, end: int, parts: int) -> list[int]:
        """Cut [start, end) at frame boundaries into at most `parts` ranges of about the same size, for tasks.

        Returns:
            The end of each range.

        Raises:
            RunError: R698 if the journal is damaged or missing.
        """
        ends: list[int] = []
        for offset, _ in self._boundaries(start, end):
            # Cut where the next target, a multiple of size / parts, has been reached.
            if offset == end or (offset - start) * parts >= (end - start) * (len(ends) + 1):
                ends.append(offset)
        return ends

    def read(self, start: int, end: int, chunk_bytes: int = 1024 * 1024) -> Iterator[bytes]:
        """Yield the verified frames of [start, end), in pieces of whole frames.

        Args:
            start: A frame boundary.
            end: A frame boundary that `end`, `limit` or `split` has returned.
            chunk_bytes: A piece has at most this many bytes, unless one frame alone has more.

        Raises:
            RunError: R698 if bytes are lost or changed, or the journal is missing or has another id.
        """
        sequence: int | None = None
        for segment, first, stop in self._pieces(start, end):
            with self._opened(segment) as descriptor:
                sequence = yield from _verified(segment, descriptor, (first, stop), chunk_bytes, sequence)

    def commit(self, offset: int) -> None:
        """Record that the journal is processed up to `offset`. A smaller offset than before changes nothing."""
        try:
            write_committed(self.directory, offset)
        except OSError as error:
            # On a full disk (which the gateway reports) the commit of a later batch does the same.
            if error.errno not in NO_ROOM:
                raise

    def _boundaries(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        for segment, first, stop in self._pieces(start, end):
            with self._opened(segment) as descriptor:
                yield from frame_boundaries(descriptor, segment, first, stop)

    def _pieces(self, start: int, end: int) -> Iterator[tuple[Segment, int, int]]:
        """Yield each segment that has a part of [start, end), with the bounds of that part."""
        if start >= end:
            return
        segments = list_segments(self.directory)
        if not segments:
            raise self._missing(None)
        index = bisect_right([segment.base for segment in segments], start) - 1
        if index < 0:
            raise damaged(self.directory, start, f"the first segment begins at {segments[0].base}")
        while start < end:
            last = index + 1 == len(segments)
            stop = end if last else min(end, segments[index + 1].base)
            yield segments[index], start, stop
            start, index = stop, index + 1

    @contextmanager
    def _opened(self, segment: Segment) -> Iterator[int]:
        try:
            descriptor = os.open(segment.path, os.O_RDONLY)
        except FileNotFoundError:
            raise damaged(segment.path, segment.base, "the segment was removed") from None
        try:
            header = read_segment_header(descriptor)
            if header is None or header.base != segment.base:
                raise damaged(segment.path, segment.base, "the file has no valid header")
            if self._journal_id not in (None, header.journal_id):
                raise self._missing(header.journal_id)
            yield descriptor
        finally:
            os.close(descriptor)

    def _missing(self, actual: int | None) -> RunError:
        expected = "any" if self._journal_id is None else f"{self._journal_id:016x}"
        shown = "none" if actual is None else f"{actual:016x}"
        return other_journal(self.directory, expected, shown)


def _verified(
    segment: Segment, descriptor: int, part: tuple[int, int], chunk_bytes: int, sequence: int | None
) -> Generator[bytes, None, int | None]:
    """Yield the frames of a part of a segment, after a check of their order. Return the next expected sequence."""
    at, stop = part
    wanted = chunk_bytes
    while at < stop:
        size = min(max(wanted, chunk_bytes), stop - at)
        data = os.pread(descriptor, size, SEGMENT_HEADER_BYTES + at - segment.base)
        progress = verify_frames(data, sequence)
        if progress.fault:
            raise damaged(segment.path, at + progress.end, progress.fault)
        if not progress.end and (len(data) < size or progress.wanted > stop - at):
            raise damaged(segment.path, at, "the frame is not whole")
        if progress.end:
            yield data[: progress.end]
        at, wanted, sequence = at + progress.end, progress.wanted, progress.sequence
    return sequence
