"""Notes which message is in flight where the runtime finds it after this process is gone."""

import mmap
import os
from types import TracebackType

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError

BYTES = 32
NOTE_BYTES = 224  # after the words, where the file has them
INDEX, MESSAGE, PROCESS, PROGRESS = range(4)
OUTSIDE = 1 << 62  # in place of a message: states are read or written, or messages read back

Words = list[int] | memoryview


class InFlight:
    """The file that a stream's opening names, mapped into memory; with no name, a list that nobody reads.

    Attributes:
        words: Index of the call, 1 + ordinal of the message in flight or 0, process id, keys visited.

    Raises:
        DiagnosticError: It cannot be mapped (W410).
    """

    def __init__(self, path: str) -> None:
        self._map: mmap.mmap | None = None
        self._view: memoryview[int] | None = None
        self.words: Words = [0] * (BYTES // 8)
        if not path:
            return
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                has_note = os.fstat(descriptor).st_size >= BYTES + NOTE_BYTES
                self._map = mmap.mmap(descriptor, BYTES + NOTE_BYTES if has_note else BYTES)
            finally:
                os.close(descriptor)
        except (OSError, ValueError) as err:
            reason = f"the client sent an in-flight file that cannot be mapped; {path}: {err}"
            raise DiagnosticError([Diagnostic.of("W410", worker="main", reason=reason)]) from err
        # A cast view takes the machine's byte order, which is little-endian wherever a worker runs.
        self.words = self._view = memoryview(self._map)[:BYTES].cast("q")
        self.words[PROCESS] = os.getpid()

    def note(self, text: str) -> None:
        """Note the work that goes on while no message is in flight; costs more than a word."""
        if self._map is not None and len(self._map) > BYTES:
            data = text.encode("utf-8", "backslashreplace")[:NOTE_BYTES].decode("utf-8", "ignore").encode()
            self._map[BYTES:] = data.ljust(NOTE_BYTES, b"\0")

    def __enter__(self) -> "InFlight":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.words = [0] * (BYTES // 8)
        if self._map is not None and self._view is not None:
            self._view.release()
            self._map.close()
