"""Gathers messages into frames of the journal, and decides when to write and to sync these frames."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.diagnostic.fault import reach
from wallaroo.message.frame import FRAMED, PLAIN, column
from wallaroo_runtime.durable.file import NO_ROOM, disk_failure
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.clock import Clock
from wallaroo_runtime.gateway.source_progress import SourceProgress
from wallaroo_runtime.service.histogram import Histogram
from wallaroo_runtime.storage.journal.head import read_committed
from wallaroo_runtime.storage.journal.writer import JournalWriter

FRAME_BODY_BYTES = 1024 * 1024
_RETRY_S = 0.2
_COMMITTED_S = 1.0
PACE_S, PACED_RATE, RATE_S = 0.003, 8000.0, 0.01
_COMMITTED_WHILE_FULL_S = 0.02


class SyncThread:
    """Runs `JournalWriter.sync` parallel to the event loop, one call at a time.

    Args:
        writer: The journal.
        wake: Called in the thread after each call.
    """

    def __init__(self, writer: JournalWriter, wake: Callable[[], None]) -> None:
        self._writer, self._wake = writer, wake
        self._wanted = threading.Event()
        self._stopping = False
        self.busy = False
        self.error: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="journal-sync", daemon=True)
        self._thread.start()

    def request(self) -> None:
        """Start a call of `sync`; not allowed while `busy`."""
        self.busy = True
        self._wanted.set()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._stopping:
                return
            try:
                self._writer.sync()
            except OSError as error:
                self.error = error
            self.busy = False
            self._wake()

    def close(self) -> None:
        """Wait for the call of `sync` in progress, and end the thread that makes these calls."""
        self._stopping = True
        self._wanted.set()
        self._thread.join()


@dataclass(slots=True)
class Gathered:
    """Messages of one source that are gathered for one frame.

    Attributes:
        points: For records of a topic: offset after the last record, by port of the source and partition.
        read_ms: When the gateway had the messages, in milliseconds since 1970; 0 if their latency is not measured.
        end: Offset of the journal after the frame; -1 until the frame is written.
    """

    port: int
    timestamp_ms: int
    count: int = 0
    size: int = 0
    parts: list[bytes] = field(default_factory=list)
    flags: int = 0
    encoding: int = FRAMED
    points: Mapping[tuple[int, int], int] = field(default_factory=dict)
    read_ms: int = 0
    end: int = -1


class SyncPace:
    """Chooses the time between syncs. At high rates a short wait costs less than more frequent syncs.

    Attributes:
        interval_s: Least time between the starts of two syncs.
    """

    def __init__(self) -> None:
        self.interval_s = 0.0
        self._at, self._messages = 0.0, 0

    def look(self, now: float, messages: int) -> None:
        """Adapt `interval_s`, the time between syncs, to the rate. `messages` counts all messages so far."""
        elapsed = now - self._at
        if elapsed >= RATE_S:
            self.interval_s = PACE_S if messages - self._messages > PACED_RATE * elapsed else 0.0
            self._at, self._messages = now, messages


class Intake:
    """Gathers messages into frames, writes the frames to the journal, and syncs them to disk as the policy demands.

    Messages of one source share a frame until it has 1 MiB or the next sync is due, because readers see nothing before
    the sync. A message of another source ends the frame, so the journal has the order of arrival.

    Args:
        writer: The journal.
        policy: When to sync: batch, interval or never.
        interval_s: Least time between the starts of two syncs, for the policy interval.
        backlog_bytes: Limit for the bytes that are journaled and not committed.
        past: Facts from earlier frames of the journal, by which sources continue where they ended.
        wake: Makes the event loop call `turn`; any thread may call it.

    Attributes:
        now_ms: Function that returns the time of arrival for a message that arrives now.
        is_awaited: Whether a source waits until its messages are processed; the committed offset is then read often.
    """

    def __init__(
        self,
        writer: JournalWriter,
        policy: str,
        interval_s: float,
        backlog_bytes: int,
        past: SourceProgress,
        wake: Callable[[], None],
    ) -> None:
        self.writer = writer
        self.past = past
        self.is_awaited = False
        self._policy, self._backlog_bytes = policy, backlog_bytes
        self._interval_s = interval_s if policy == "interval" else 0.0
        self._sync = None if policy == "never" else SyncThread(writer, wake)
        self._pace = SyncPace()
        self._gathered: Gathered | None = None
        self._waiting: deque[Gathered] = deque()
        self._unsafe = deque[tuple[int, int, int]]()  # of measured frames: end, time when read, number of messages
        self._read, self._journal = Histogram(), Histogram()
        self.now_ms = Clock().now_ms
        self._sync_began = -math.inf  # so the first sync is due at once
        self._retry_at = 0.0
        self._committed_at = 0.0
        self.committed = read_committed(writer.directory)
        self.messages = 0
        self.bytes = 0
        self.disk_is_full = False

    @property
    def backlog(self) -> int:
        """Bytes that are journaled and not committed."""
        return self.writer.end.offset - self.committed

    @property
    def accepts(self) -> bool:
        """True if sources may be read: the disk and the backlog have room."""
        return not self.disk_is_full and self.backlog < self._backlog_bytes

    def status(self) -> dict[str, Any]:
        """Return counts and offsets, for the status file."""
        return {
            "messages": self.messages,
            "bytes": self.bytes,
            "journal_id": f"{self.writer.end.journal_id:016x}",
            "end": self.writer.end.offset,
            "safe": self.writer.safe.offset,
            "committed": self.committed,
            "backlog_bytes": self.backlog,
            "reads": self.accepts,
            "waits": self.is_awaited,
            "latency_ms": {"read": self._read.to_counts(), "journal": self._journal.to_counts()},
        }

    @property
    def taken(self) -> int:
        """The number of messages so far: in the journal, or gathered for it. `is_safe` takes such a number."""
        return self.writer.end.messages + sum(gathered.count for gathered in self._all())

    def is_safe(self, taken: int) -> bool:
        """Return whether the first `taken` messages are safe on disk."""
        return self.writer.safe.messages >= taken

    def has_safe(self, frame: Gathered) -> bool:
        """Return whether a frame in the journal is safe. With the policy `never`, a written frame counts as safe."""
        return 0 <= frame.end <= self.writer.safe.offset

    def take(self, port: int, count: int, data: bytes) -> None:
        """Take `count` whole messages of a source. While the disk is full, they wait in memory."""
        gathered = self._gathered
        if gathered is None or port != gathered.port or gathered.size + len(data) > FRAME_BODY_BYTES:
            self._seal()
            gathered = self._gathered = Gathered(port, now_ms := self.now_ms(), read_ms=now_ms)
        gathered.parts.append(data)
        gathered.count += count
        gathered.size += len(data)
        self.messages += count
        self.bytes += len(data)
        self._write()

    def take_values(self, port: int, values: Sequence[bytes], encoding: int) -> None:
        """Take messages of a generator as one frame, without framing. If the disk is full, it waits in memory."""
        parts = [column(list(map(len, values))), *values]
        size, now_ms = sum(map(len, parts)), self.now_ms()
        self.take_whole(Gathered(port, now_ms, len(values), size, parts, 0, encoding, read_ms=now_ms))

    def take_whole(self, frame: Gathered) -> None:
        """Take messages that are gathered already, as one frame. The frame waits in memory if the disk is full."""
        self._seal()
        self._gathered = frame
        self.messages += frame.count
        self.bytes += frame.size
        self.flush()

    def control(self, port: int, *value: bytes) -> Gathered:
        """Take a tick, or a visit with its `value`. It comes after the messages that were taken so far."""
        parts = [column(list(map(len, value))), *value] if value else []
        self.take_whole(frame := Gathered(port, self.now_ms(), parts=parts, encoding=PLAIN if value else FRAMED))
        return frame

    def flush(self) -> None:
        """Write the gathered messages. If the disk is full, they wait in memory."""
        self._seal()
        self._write()

    def _seal(self) -> None:
        if self._gathered is not None:
            self._waiting.append(self._gathered)
            self._gathered = None

    def _write(self) -> None:
        while self._waiting:
            frame = self._waiting[0]
            try:
                base = self.writer.append(
                    frame.port, frame.count, frame.parts, frame.timestamp_ms, frame.flags, frame.encoding
                )
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                self.disk_is_full = True
                self._retry_at = time.monotonic() + _RETRY_S
                return
            frame.end = self.writer.end.offset
            if frame.read_ms:
                self._unsafe.append((frame.end, frame.read_ms, frame.count))
            if frame.points:
                self.past.note(base, frame.points)
                if frame.read_ms:
                    self._read.add(frame.read_ms - frame.timestamp_ms, frame.count)
            reach("gateway.after_append")
            self._waiting.popleft()
        self.disk_is_full = False

    def _all(self) -> Iterator["Gathered"]:
        yield from self._waiting
        if self._gathered is not None:
            yield self._gathered

    def turn(self, now: float) -> None:
        """Begin a sync, and read the committed offset, each of them if it is due.

        Called in every turn of the event loop.

        Raises:
            OSError: The disk failed.
        """
        if self._sync is not None and self._sync.error is not None:
            raise self._sync.error
        if self.disk_is_full and now < self._retry_at:
            return
        busy = self._sync is not None and self._sync.busy
        self._pace.look(now, self.messages)
        if not busy and now >= self._sync_due:
            self._begin_sync(now)
        self._measure()
        wait = _COMMITTED_WHILE_FULL_S if self._is_full else _COMMITTED_S
        if now >= self._committed_at + wait:
            self._committed_at = now
            self.committed = max(self.committed, self.writer.remove_committed(self._remember))

    def _measure(self) -> None:
        """Count how long the messages took that are now in the readable part of the journal."""
        while self._unsafe and self._unsafe[0][0] <= self.writer.safe.offset:
            _, read_ms, count = self._unsafe.popleft()
            self._journal.add(self.now_ms() - read_ms, count)

    @property
    def _sync_due(self) -> float:
        return self._sync_began + max(self._interval_s, self._pace.interval_s)

    @property
    def _is_full(self) -> bool:
        return self.is_awaited or self.backlog >= self._backlog_bytes

    def _remember(self, offset: int) -> None:
        self.past.move(offset)
        self.past.save()

    def _begin_sync(self, now: float) -> None:
        self.flush()
        if self.writer.safe == self.writer.end:
            return
        self._sync_began = now
        if self._sync is None:
            self.writer.publish()
        else:
            self._sync.request()

    def timeout(self, now: float) -> float | None:
        """Return the seconds until `turn` must be called; None if no call is needed before new input comes."""
        if self.disk_is_full:
            return max(0.0, self._retry_at - now)
        if self._is_full:
            return _COMMITTED_WHILE_FULL_S
        busy = self._sync is not None and self._sync.busy
        if busy or (self._gathered is None and self.writer.safe == self.writer.end):
            return None
        return max(0.0, self._sync_due - now)

    def close(self, failure: OSError | RunError | None = None) -> list[Diagnostic]:
        """Write all taken messages and make them safe, as long as the disk has room.

        Args:
            failure: Error that ended journaling; None if the gateway was stopped.

        Returns:
            Findings to report: the error, and the number of senders' messages that could not be written (R800). Only
            senders cannot repeat their messages. All other sources have positions and continue there.
        """
        if not isinstance(failure, OSError):
            try:
                self.flush()
                if self._sync is not None:
                    self._sync.close()
                self.writer.close()
            except OSError as error:
                failure = error
        findings = [] if failure is None else _findings_of(failure, self.writer)
        if refused := sum(frame.count for frame in self._all() if frame.encoding == FRAMED):
            findings.append(Diagnostic.of("R800", path=self.writer.directory, count=f"{refused:,}"))
        return findings


def _findings_of(error: OSError | RunError, writer: JournalWriter) -> list[Diagnostic]:
    if isinstance(error, OSError):
        error = disk_failure(error, writer.directory) or error
    if isinstance(error, RunError):
        return list(error.diagnostics)
    reason = f"the disk failed; {error.strerror}"
    return [Diagnostic.of("R698", what=f"journal {writer.directory} at offset {writer.safe.offset}", reason=reason)]
