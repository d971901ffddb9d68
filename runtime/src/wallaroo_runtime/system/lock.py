"""Locks of files and directories. The kernel releases them when the process ends in any way."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wallaroo_runtime.errors import RunError

WAIT, TRY, SHARE = fcntl.LOCK_EX, fcntl.LOCK_EX | fcntl.LOCK_NB, fcntl.LOCK_SH
UNLOCKED = fcntl.LOCK_UN  # open the file, but lock it only later, through the descriptor


def take_lock(path: Path, how: int = WAIT) -> int:
    """Lock a directory or a file, and return the descriptor that has the lock. Create the file if necessary.

    Raises:
        BlockingIOError: Another process has the lock, and `how` does not wait.
        OSError: The path cannot be opened, or a link is in the file's place.
    """
    kind = os.O_RDONLY | os.O_DIRECTORY if path.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    descriptor = os.open(path, kind | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, how)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def locked(path: Path, how: int = WAIT) -> Iterator[int]:
    """Hold the lock of a file or directory during the block; parameters and errors are those of `take_lock`."""
    descriptor = take_lock(path, how)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def lock_directory(directory: Path, name: str = "lock") -> int:
    """Lock the file `name` of a directory, write this process's id into it, and return its descriptor.

    Raises:
        RunError: R610 if another process has the lock.
        OSError: The file cannot be opened.
    """
    path = directory / name
    try:
        descriptor = take_lock(path, TRY)
    except BlockingIOError as error:
        holder = path.read_bytes()[:32].decode("ascii", "replace").strip() or "unknown"
        raise RunError.of(
            "R610", what=f"checkpoint {directory}", holder=f"another run (process {holder})", own="--checkpoint"
        ) from error
    try:
        os.pwrite(descriptor, b"%-31d\n" % os.getpid(), 0)  # a full disk has the room of the former text
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
