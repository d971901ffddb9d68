"""The writing side of the live log: appended by the egress alone, made safe for all that has arrived at once."""

import os
import threading
from dataclasses import replace
from pathlib import Path

from wallaroo.diagnostic.fault import reach
from wallaroo.message.frame import DEAD_LETTER_PORT
from wallaroo_runtime.durable.file import sync_directory
from wallaroo_runtime.durable.line import pack_line
from wallaroo_runtime.storage.journal.head import Position, pack_head
from wallaroo_runtime.storage.journal.segment import write_all
from wallaroo_runtime.storage.outbox.live import BEGIN, FOLDER, OPENING, Entry, live_segments, segment_at
from wallaroo_runtime.storage.outbox.live_recovery import recover
from wallaroo_runtime.storage.outbox.live_state import AttemptWriter

SEGMENT_BYTES = 32 * 1024 * 1024


class LiveLog:
    """Appends to the live log of an outbox.

    One thread at a time appends; `sync` may run at the same time, in any number of threads.

    Args:
        outbox: The directory of the outbox.
        dead_letters: Where files of dead letters go.
        segment_bytes: A segment that has so many bytes gets no more.

    Attributes:
        state: What it says up to its end.
        end: Where it ends.
        safe: How much of it survives a loss of power.
        dropped: How many messages came that it had before; its writer counts them.
        fault: Why it is not known what is on the disk; None: it is known. It must be opened again.

    Raises:
        RunError: R698, it is damaged.
    """

    def __init__(self, outbox: Path, dead_letters: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._outbox, self._letters, self._segment_bytes = outbox, dead_letters, segment_bytes
        self.directory = outbox / FOLDER
        self.directory.mkdir(mode=0o700, exist_ok=True)
        self._appending, self._syncing = threading.Lock(), threading.Lock()
        self._retired: list[int] = []
        self._letter_files: dict[str, int] = {}
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
        """Append the writer that delivers from now on.

        A loss of power can take Spark's newest commit. Then input is repeated from a place where a stream has begun
        before: what the file of its dead letters has stays.

        Raises:
            OSError: The disk failed.
        """
        path = self._letters / writer.letters
        size = path.stat().st_size if path.exists() else 0
        names = {name: getattr(writer, name) for name in AttemptWriter.__dataclass_fields__}
        self.append(Entry(OPENING, sequence=size, content=pack_line(names)))

    def append(self, entry: Entry) -> Entry:
        """Append an entry; returns it as it is in the log.

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
        try:
            write_all(self._descriptor, placed.head() + placed.content, at)
        except OSError:
            os.ftruncate(self._descriptor, at)
            raise
        self.state.add(placed)
        with self._appending:
            self.end = placed.end
        return placed

    def _check(self) -> None:
        """Refuse to go on after a sync that failed: a second one would succeed without having written anything."""
        if self.fault is not None:
            raise OSError(self.fault.errno, self.fault.strerror, str(self.directory))

    def _write_letters(self, entry: Entry) -> None:
        """Write dead letters to their file; the log has them, too, until the file is safe."""
        name = self.state.writers[entry.partition].letters
        if name not in self._letter_files:
            path = self._letters / name
            if not path.exists():
                self.sync()  # who delivers: a file that nobody knows of would keep what comes again in another one
            self._letter_files[name] = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            write_all(self._letter_files[name], entry.content, entry.sequence)
        except OSError:
            os.ftruncate(self._letter_files[name], entry.sequence)
            raise

    def sync(self) -> None:
        """Make safe all that was appended before this call, and the entries that other threads wait for.

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
        """Begin a segment, with all that is known; everything before is safe."""
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
        """Begin another segment. It states the known facts, and no dead letters that a recovery would write again."""
        os.fsync(self._descriptor)
        self._close_letters()
        before = self._descriptor
        self._begin()
        with self._appending:
            self._retired.append(before)  # `sync` may be using it

    def _close_letters(self) -> None:
        """Make files of dead letters safe: their copies in the log may go with its segment."""
        for descriptor in self._letter_files.values():
            os.fsync(descriptor)
            os.close(descriptor)
        if self._letter_files:
            sync_directory(self._letters)
        self._letter_files = {}

    def remove(self, before: int) -> None:
        """Remove segments that end at or before an offset; the last one always stays."""
        while len(self._segments) > 1 and self._segments[1].base <= before:
            self._segments.pop(0).path.unlink(missing_ok=True)

    def close(self) -> None:
        """Make everything safe and close the files."""
        if self.fault is None:
            self.sync()
        self._close_letters()
        os.fsync(self._head)
        for descriptor in (*self._retired, self._descriptor, self._head):
            os.close(descriptor)
