"""Lets a process wait until another process writes files, without frequent checks."""

import ctypes
import os
import select
from pathlib import Path
from types import TracebackType

LOOK_S = 0.01  # pause between checks if the system reports no writes
IN_MODIFY, IN_MOVED_TO = 0x2, 0x80
_libc = ctypes.CDLL(None, use_errno=True)


class FileWatch:
    """Lets a `with` block wait for writes, by `inotify` of Linux; on other systems `wait` returns often.

    Args:
        path: A file; or a directory, for all files in it and files that are renamed into it.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file, FileWatch(Path(file.name)) as watch:
        ...     _ = os.pwrite(file.fileno(), b"new", 0)
        ...     watch.wait(60)
    """

    def __init__(self, path: Path) -> None:
        self._path, self._descriptor = path, -1

    def __enter__(self) -> "FileWatch":
        begin = getattr(_libc, "inotify_init1", None)
        self._descriptor = begin(os.O_NONBLOCK | os.O_CLOEXEC) if begin else -1
        kinds = IN_MODIFY | IN_MOVED_TO
        if self._descriptor >= 0 and _libc.inotify_add_watch(self._descriptor, os.fsencode(self._path), kinds) < 0:
            self._close()  # the path does not exist, or the user has too many watches
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def wait(self, seconds: float) -> None:
        """Wait for the next write, for at most `seconds`. It may return earlier, so the caller must check the file."""
        if self._descriptor < 0:
            select.select([], [], [], min(seconds, LOOK_S))
        elif select.select([self._descriptor], [], [], seconds)[0]:
            os.read(self._descriptor, 65536)

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
