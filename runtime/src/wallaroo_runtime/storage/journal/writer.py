"""Writes a journal: appends frames, syncs them to disk, and removes the processed part."""

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from wallaroo.diagnostic.fault import reach
from wallaroo.message.frame import CONTROL_PORTS, FRAMED, FrameHeader, write_frame
from wallaroo_runtime.durable.file import sync_directory, sync_file
from wallaroo_runtime.storage.journal.head import Position, pack_head, read_committed
from wallaroo_runtime.storage.journal.recovery import recover
from wallaroo_runtime.storage.journal.segment import (
    SEGMENT_HEADER_BYTES,
    SegmentHeader,
    create_segment,
    undone,
    write_all,
)
from wallaroo_runtime.system.lock import lock_directory

SEGMENT_BYTES = 64 * 1024 * 1024


class JournalWriter:
    """Appends frames to a journal. It locks the directory, since only one writer is allowed.

    One thread calls all methods but `sync`. Another thread may call `sync`, one call at a time.

    Args:
        directory: The journal; created if it does not exist.
        segment_bytes: A segment that has this many bytes of frames gets no more frames.
        moved: Called whenever `safe` has moved, in the thread that has moved it.

    Attributes:
        end: Position after the last frame.
        safe: Position up to which readers may read.

    Raises:
        RunError: R610 if another process writes the journal; R698 if it is damaged.
    """

    def __init__(
        self,
        directory: Path,
        segment_bytes: int = SEGMENT_BYTES,
        moved: Callable[[Position], None] = lambda position: None,
    ) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory = directory
        self._segment_bytes, self._moved = segment_bytes, moved
        self._lock_file = lock_directory(directory)
        try:
            self._segments, self._descriptor, self.end, self._sequence = recover(directory)
            self._head = os.open(directory / "head", os.O_RDWR | os.O_CREAT, 0o600)
        except BaseException:
            os.close(self._lock_file)
            raise
        self._mutex = threading.Lock()
        self._retired: list[int] = []
        self._directory_changed = True
        self.safe = Position(0, 0, self.end.journal_id)
        self.sync()
        os.fsync(self._head)

    def append(
        self,
        port: int,
        count: int,
        parts: Sequence[bytes],
        timestamp_ms: int,
        flags: int = 0,
        encoding: int = FRAMED,
    ) -> int:
        """Append one frame of `count` messages. By default `body` has the bytes of the messages as a sender sent them.

        A frame for one of `CONTROL_PORTS` is not counted as a message, but gets a sequence number.

        Returns:
            The offset at which the frame's segment begins.

        Raises:
            OSError: The frame could not be written; nothing of it is left. `NO_ROOM` has the `errno` of a full disk.
        """
        position = self.end
        sequences, messages = (1, 0) if port in CONTROL_PORTS else (count, count)
        frame = write_frame(FrameHeader(port, sequences, self._sequence, flags, encoding, timestamp_ms), parts)
        segment = self._segments[-1]
        if position.offset - segment.base >= self._segment_bytes:
            self._roll()
            segment = self._segments[-1]
        at = SEGMENT_HEADER_BYTES + position.offset - segment.base
        with undone(self._descriptor, at):
            write_all(self._descriptor, frame, at)
        self._sequence += sequences
        with self._mutex:
            self.end = Position(position.offset + len(frame), position.messages + messages, position.journal_id)
        return segment.base

    def _roll(self) -> None:
        position = self.end
        segment, descriptor = create_segment(
            self.directory, SegmentHeader(position.offset, self._sequence, position.journal_id)
        )
        with self._mutex:
            self._retired.append(self._descriptor)
            self._descriptor = descriptor
            self._directory_changed = True
        self._segments.append(segment)

    def sync(self) -> None:
        """Sync all frames that were appended before this call, then let readers see them.

        Raises:
            OSError: The disk failed. The content of the disk is not known, so the writer must no longer be used.
        """
        with self._mutex:
            position, descriptor = self.end, self._descriptor
            retired, self._retired = self._retired, []
            directory_changed, self._directory_changed = self._directory_changed, False
        for old in retired:
            os.fsync(old)
            os.close(old)
        os.fsync(descriptor)
        reach("gateway.after_sync")
        if directory_changed:
            sync_directory(self.directory)
        self._move_head(position)

    def publish(self) -> None:
        """Let readers see all appended frames without a sync: they may not survive a loss of power."""
        for old in self._retired:
            os.close(old)
        self._retired = []
        self._move_head(self.end)

    def _move_head(self, position: Position) -> None:
        reach("gateway.before_publish")
        write_all(self._head, pack_head(position), 0)
        self.safe = position
        self._moved(position)

    def remove_committed(self, before: Callable[[int], None]) -> int:
        """Remove the segments (files of the journal) whose messages are all processed. The last segment always stays.

        Args:
            before: Called with the offset below which everything will be removed.

        Returns:
            The committed offset.
        """
        committed = read_committed(self.directory)
        bound = min(committed, self.safe.offset)
        kept = max((at for at, segment in enumerate(self._segments) if segment.base <= bound), default=0)
        if kept:
            # Recovery reports a missing segment above the committed offset as lost, so this offset must be on the disk.
            sync_file(self.directory / "committed")
            os.fsync(self._head)  # make the head safe: it must never be before the first segment
            before(self._segments[kept].base)
        for _ in range(kept):
            self._segments.pop(0).path.unlink(missing_ok=True)
        return committed

    def close(self) -> None:
        """Sync everything to disk, and release the journal for another writer."""
        try:
            self.sync()
            os.fsync(self._head)
        finally:
            for descriptor in (self._descriptor, self._head, self._lock_file):
                os.close(descriptor)
