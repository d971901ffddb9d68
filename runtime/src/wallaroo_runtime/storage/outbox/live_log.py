"""Writes the live log (output of real-time mode): only the egress appends, and one sync makes all entries safe."""

import os
import threading
from dataclasses import asdict, replace
from pathlib import Path

from wallaroo.diagnostic.fault import reach
from wallaroo.message.frame import DEAD_LETTER_PORT
from wallaroo_runtime.durable.file import sync_directory
from wallaroo_runtime.durable.record import pack_line
from wallaroo_runtime.storage.journal.head import Position, pack_head
from wallaroo_runtime.storage.journal.segment import undone, write_all
from wallaroo_runtime.storage.outbox.live import BEGIN, FOLDER, OPENING, Entry, live_segments, segment_at
from wallaroo_runtime.storage.outbox.live_recovery import recover
from wallaroo_runtime.storage.outbox.live_state import AttemptWriter

SEGMENT_BYTES = 32 * 1024 * 1024


class LiveLog:
    """Appends to the live log of an outbox.

    One thread at a time appends; `sync` may run at the same time, in any number of threads.

    Args:
        outbox: The directory of the outbox.
        dead_letters: Directory of the files of dead letters.
        segment_bytes: A segment that has so many bytes gets no more entries.

    Attributes:
        state: State of the log at its end.
        end: Offset at which the log ends.
        safe: Offset up to which the log survives a loss of power.
        dropped: Number of repeated messages that were not appended, counted by `AttemptReceiver`.
        fault: Error of a failed sync, after which the log must be opened again, because the content of the disk is not
            known; else None.

    Raises:
        RunError: R698 if the log is damaged.
    """

    def __init__(self, outbox: Path, dead_letters: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._outbox, self._letters, self._segment_bytes = outbox, dead_letters, segment_bytes
        self.directory = outbox / FOLDER
        self.directory.mkdir(mode=0o700, exist_ok=True)
        self._appending, self._syncing = threading.Lock(), threading.Lock()
        self._retired: list[int] = []
        self._letter_files: dict[str, int] = {}
        self._opened = 0  # offset after the entry of the latest writer
        self.state, self.end = recover(outbox, dead_letters)
        self.safe = self.end
        self.dropped = 0
        self.fault: OSError | None = None
        self._segments = live_segments(self.directory)
        if self._segments:
            self._descriptor = os.open(self._segments[-1].path, os.O_WRONLY | os.O_CLOEXEC)
        self._head = os.open(self.directory / "head", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not self._segments:
            self._begin()
        self._write_head()
        os.fsync(self._head)
        sync_directory(self.directory)

    def open(self, writer: AttemptWriter) -> None:
        """Append an entry for the task attempt that delivers from now on.

        The entry is needed because a loss of power can remove Spark's newest commit. Then input is repeated from the
        beginning of an earlier stream, and the dead letters of that stream stay in their file.

        Raises:
            OSError: The disk failed.
        """
        path = self._letters / writer.letters
        size = path.stat().st_size if path.exists() else 0
        self._opened = self.append(Entry(OPENING, sequence=size, content=pack_line(asdict(writer)))).end

    def append(self, entry: Entry) -> Entry:
        """Append an entry, and return it with its offset in the log.

        Raises:
            OSError: The disk failed; nothing of the entry is left.
        """
        self._check()
        if self.end - self._segments[-1].base >= self._segment_bytes:
            self.roll()
        placed = replace(entry, offset=self.end)
        if entry.kind != BEGIN and entry.port == DEAD_LETTER_PORT:
            self._write_letters(placed)
        at = self.end - self._segments[-1].base
        with undone(self._descriptor, at):
            write_all(self._descriptor, placed.head() + placed.content, at)
        self.state.add(placed)
        with self._appending:
            self.end = placed.end
        return placed

    def _check(self) -> None:
        """Refuse to go on after a failed sync: a second sync would succeed without having written anything."""
        if self.fault is not None:
            raise OSError(self.fault.errno, self.fault.strerror, str(self.directory))

    def _write_letters(self, entry: Entry) -> None:
        """Write dead letters to their file. Until the file is synced, the log has a copy of them."""
        name = self.state.writers[entry.partition].letters
        if self.safe < self._opened:
            self.sync()  # the log must have the file's name and size, so that recovery can cut letters from it
        if name not in self._letter_files:
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
            self._letter_files[name] = os.open(self._letters / name, flags, 0o600)
        with undone(self._letter_files[name], entry.sequence):
            write_all(self._letter_files[name], entry.content, entry.sequence)

    def sync(self) -> None:
        """Sync all entries that were appended before this call. Waiting threads share one sync.

        Raises:
            OSError: The disk failed.
        """
        wanted = self.end
        with self._syncing:
            if self.safe >= wanted:
                return
            self._check()
            with self._appending:
                end, descriptor = self.end, self._descriptor
                retired, self._retired = self._retired, []
            try:
                os.fdatasync(descriptor)
            except OSError as error:
                self.fault = error
                raise
            reach("egress.after_sync")
            for old in retired:
                os.close(old)
            self.safe = max(self.safe, end)
            self._write_head()

    def _write_head(self) -> None:
        write_all(self._head, pack_head(Position(self.safe, 0, 0)), 0)

    def _begin(self) -> None:
        """Begin a segment (file). Its first entry is the state of the log. Earlier segments must be safe already."""
        segment = segment_at(self.directory, self.end)
        first = Entry(BEGIN, content=pack_line(self.state.to_json()), offset=self.end)
        new = segment.path.with_suffix(".new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            write_all(descriptor, first.head() + first.content, 0)
            os.fsync(descriptor)
            new.rename(segment.path)
        except OSError:
            os.close(descriptor)
            new.unlink(missing_ok=True)
            raise
        sync_directory(self.directory)
        with self._appending:
            self._descriptor, self.end, self.safe = descriptor, first.end, first.end
        self._segments.append(segment)

    def roll(self) -> None:
        """Sync the files of dead letters, then begin a segment (file): after a crash only the last segment is read."""
        os.fsync(self._descriptor)
        self._close_letters()
        before = self._descriptor
        self._begin()
        with self._appending:
            self._retired.append(before)  # closed later, because `sync` may be using the descriptor

    def _close_letters(self) -> None:
        """Sync and close the files of dead letters, so that the log no longer needs its copies of them."""
        for descriptor in self._letter_files.values():
            os.fsync(descriptor)
            os.close(descriptor)
        if self._letter_files:
            sync_directory(self._letters)
        self._letter_files = {}

    def remove(self, before: int) -> None:
        """Remove the segments (files) that end at or before an offset, except the last one."""
        while len(self._segments) > 1 and self._segments[1].base <= before:
            self._segments.pop(0).path.unlink(missing_ok=True)

    def close(self) -> None:
        """Sync everything to disk, and close the files."""
        if self.fault is None:
            self.sync()
        self._close_letters()
        os.fsync(self._head)
        for descriptor in (*self._retired, self._descriptor, self._head):
            os.close(descriptor)
