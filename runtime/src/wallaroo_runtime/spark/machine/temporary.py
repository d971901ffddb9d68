"""Keeps Spark's temporary files on disk from other users: blocks hold messages, and stay when a run is killed."""

import atexit
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.system.lock import TRY, locked, take_lock
from wallaroo_runtime.worker.directory import private_root

PREFIX, LOCK = "spark-", "spark.lock"


def temporary_directory() -> Path:
    """Return the directory of this process, 0700, which later runs remove when this one could not.

    A lock says that it is in use: the system gives it back however the process ends, in any container.

    Raises:
        RunError: R712, another user has put something in its place.
    """
    return _taken()[0]


def temporary_lock() -> int:
    """Return the descriptor of that lock; a process that inherits it has the lock, too.

    Raises:
        RunError: As `temporary_directory`.
    """
    return _taken()[1]


@cache
def _taken() -> tuple[Path, int]:
    directory, descriptor = take(private_root())
    atexit.register(_remove_own, directory, os.getpid())
    return directory, descriptor


def take(root: Path) -> tuple[Path, int]:
    """Make a directory below one of this user's, and remove those of processes that have ended.

    Returns:
        The directory, and the descriptor of its lock.

    Raises:
        RunError: As `temporary_directory`.
    """
    root.mkdir(mode=0o700, exist_ok=True)
    _check(root)
    with locked(root / LOCK):  # nobody takes a directory without a lock for an abandoned one
        for path in root.glob(f"{PREFIX}*"):
            if path.is_dir():
                _remove_unless_used(path)
        directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        return directory, take_lock(directory / LOCK)


def _check(path: Path) -> None:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise RunError.of("R712", USAGE, path=path, reason="it is no directory")
    if status.st_uid != os.getuid():
        raise RunError.of("R712", USAGE, path=path, reason=f"it belongs to the user with number {status.st_uid}")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise RunError.of(
            "R712", USAGE, path=path, reason=f"others may enter it, its mode is {status.st_mode & 0o777:o}"
        )


def _remove_unless_used(directory: Path) -> None:
    with suppress(BlockingIOError), locked(directory / LOCK, TRY):
        shutil.rmtree(directory, ignore_errors=True)  # what cannot be removed now is left to the next start


def _remove_own(directory: Path, pid: int) -> None:
    if os.getpid() == pid:  # a fork ends as this process does
        shutil.rmtree(directory, ignore_errors=True)
