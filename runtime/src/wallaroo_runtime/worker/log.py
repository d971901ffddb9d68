"""Keeps a worker's output, with limits for its size and its rate; counts the dropped bytes."""

import time
from collections.abc import Callable
from pathlib import Path

FILE_BYTES = 8 * 1024 * 1024
TAIL_BYTES = 8 * 1024
BURST_BYTES = 4 * 1024 * 1024
RATE_BYTES = 1024 * 1024


class RotatingLog:
    """A log of at most two files, `path` and `path.1`.

    If a program prints more than `RATE_BYTES` per second for long, the log drops the excess. The log's text has the
    number of dropped bytes.
    """

    def __init__(self, path: Path, file_bytes: int = FILE_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self.path, self.file_bytes, self.clock = path, file_bytes, clock
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()
        self._allowance = float(BURST_BYTES)
        self._at = clock()
        self._tail = b""
        self._dropped_now = 0

    def write(self, data: bytes) -> None:
        """Write a block of output, or drop a part of it."""
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        now = self.clock()
        self._allowance = min(BURST_BYTES, self._allowance + (now - self._at) * RATE_BYTES)
        self._at = now
        kept = data[: max(0, int(self._allowance))]
        if kept:
            self._note_dropped()
            self._append(kept)
            self._allowance -= len(kept)
        self._dropped_now += len(data) - len(kept)

    def _note_dropped(self) -> None:
        if self._dropped_now:
            self._append(b"\n[%d bytes of output dropped]\n" % self._dropped_now)
            self._dropped_now = 0

    def _append(self, data: bytes) -> None:
        if self._size + len(data) > self.file_bytes:
            self._rotate()
        self._file.write(data)
        self._size += len(data)

    def _rotate(self) -> None:
        self._file.close()
        older = self.path.with_name(self.path.name + ".1")
        lost = older.stat().st_size if older.exists() else 0
        self.path.replace(older)
        self._file = self.path.open("wb", buffering=0)
        note = b"[%d bytes of older output dropped]\n" % lost if lost else b""
        self._file.write(note)
        self._size = len(note)

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of the worker's output."""
        return "\n".join(self._tail.decode("utf-8", "replace").splitlines()[-lines:])

    def clear_tail(self) -> None:
        """Clear the tail, so that it does not show output of an earlier process."""
        self._tail = b""

    def close(self) -> None:
        """Write the count of dropped output, and close the file."""
        self._note_dropped()
        self._file.close()
