"""Notes in a file which message user code processes, so that the runtime can read this if the process dies."""

import mmap
import os

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError

BYTES = 32
NOTE_BYTES = 224  # size of the note after the words, if the file has room for a note
INDEX, MESSAGE, PROCESS, PROGRESS = range(4)
FORKED = "a process that user code forked has returned to the worker, and ends: let it end with os._exit"
OUTSIDE = 1 << 62  # in place of a message: the worker reads or writes states, or deserializes messages

Words = list[int] | memoryview


class InFlight:
    """The file in which a stream of calls notes its message in flight, mapped into memory as the list `words`.

    Attributes:
        words: Index of the call, ordinal plus 1 of the message in flight or 0, process id, keys of visits and ticks.

    Raises:
        DiagnosticError: W410 if the file cannot be mapped.
    """

    def __init__(self, path: str) -> None:
        self._map: mmap.mmap | None = None
        self._view: memoryview[int] | None = None
        self.words: Words = [0, 0, os.getpid(), 0]
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
        # A cast view uses the machine's byte order, which is little-endian on all machines that run workers.
        self.words = self._view = memoryview(self._map)[:BYTES].cast("q")
        self.words[PROCESS] = os.getpid()

    def end_forked(self) -> None:
        """End this process if user code has forked it in the call. Only the process that got the call may answer."""
        if os.getpid() == self.words[PROCESS]:
            return
        try:
            os.write(2, f"{FORKED}\n".encode())  # sys.stderr may be locked by a thread that the fork has left out
        finally:
            os._exit(1)

    def note(self, text: str) -> None:
        """Write a text about the work that is done while no message is in user code, e.g. that a state is read."""
        if self._map is not None and len(self._map) > BYTES:
            data = text.encode("utf-8", "backslashreplace")[:NOTE_BYTES].decode("utf-8", "ignore").encode()
            self._map[BYTES:] = data.ljust(NOTE_BYTES, b"\0")

    def __enter__(self) -> "InFlight":
        return self

    def __exit__(self, *error: object) -> None:
        self.end_forked()
        self.words = [0] * (BYTES // 8)
        if self._map is not None and self._view is not None:
            self._view.release()
            self._map.close()
