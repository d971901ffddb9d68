"""Keeps user code from closing what the worker itself has open."""

import errno
import os
from pathlib import Path

_DESCRIPTORS = Path("/proc/self/fd")
_OURS = ("socket:", "anon_inode:", "pipe:")


def guard_descriptors() -> None:
    """Let `os.closerange` raise OSError in this process where it would close the worker's sockets.

    Programs call it to become daemons; a worker whose sockets are gone can answer nobody. Child processes may call it.
    """
    process, close = os.getpid(), os.closerange

    def closerange(fd_low: int, fd_high: int, /) -> None:
        if os.getpid() == process and any(fd_low <= each < fd_high for each in _own()):
            raise OSError(errno.EPERM, f"os.closerange({fd_low}, {fd_high}) would close the worker's own connections")
        close(fd_low, fd_high)

    os.closerange = closerange


def _own() -> list[int]:
    found = []
    for path in _DESCRIPTORS.iterdir():
        try:
            target = os.readlink(path)
        except FileNotFoundError:  # that of the listing itself
            continue
        if target.startswith(_OURS):
            found.append(int(path.name))
    return found
