"""Prevents user code from closing the worker's own file descriptors."""

import errno
import os
import posix
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_DESCRIPTORS = Path("/proc/self/fd")
_KINDS = ("socket:", "anon_inode:", "pipe:")


def open_descriptors() -> dict[int, str]:
    """Return the open sockets and pipes of this process: the text with which Linux names each, by descriptor."""
    descriptors = {}
    for path in _DESCRIPTORS.iterdir():
        target = _target(int(path.name))
        if target.startswith(_KINDS):
            descriptors[int(path.name)] = target
    return descriptors


def guard_descriptors(own: Mapping[int, str], directory: Path) -> None:
    """Make `os.close` and `os.closerange` raise OSError in this process if they would close the worker's connections.

    Programs call these functions to become daemons, or close a descriptor twice. A worker without its sockets cannot
    answer. The program may close its own descriptors, and child processes may close all.

    Args:
        own: Descriptors of the worker, a result of `open_descriptors`.
        directory: Connections to sockets in this directory belong to the worker, too.
    """
    process, close, closerange = os.getpid(), os.close, os.closerange

    def is_ours(descriptor: int) -> bool:
        target = _target(descriptor)
        return bool(target) and (own.get(descriptor) == target or _is_below(descriptor, target, directory))

    def refuse(call: str) -> None:
        raise OSError(errno.EPERM, f"{call} would close the worker's own connections")

    def guarded_close(fd: Any) -> None:
        if os.getpid() == process and isinstance(fd, int) and is_ours(fd):
            refuse(f"os.close({fd})")
        close(fd)

    def guarded_closerange(fd_low: int, fd_high: int, /) -> None:
        inside = (each for each in open_descriptors() if fd_low <= each < fd_high)
        if os.getpid() == process and any(map(is_ours, inside)):
            refuse(f"os.closerange({fd_low}, {fd_high})")
        closerange(fd_low, fd_high)

    module: Any
    for module in (os, posix):
        module.close, module.closerange = guarded_close, guarded_closerange


def _target(descriptor: int) -> str:
    try:
        return os.readlink(_DESCRIPTORS / str(descriptor))
    except FileNotFoundError:  # the descriptor is not open
        return ""


def _is_below(descriptor: int, target: str, directory: Path) -> bool:
    if not target.startswith("socket:"):
        return False
    # A socket object closes its descriptor when it is deleted, so give it a copy.
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        if copy.family != socket.AF_UNIX:
            return False
        name = copy.getsockname()
    return isinstance(name, str) and Path(name).parent == directory
