"""Keeps other users away from Spark's temporary files, which contain messages, and remain if a run is killed."""

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
    """Return the temporary directory of this process, with mode 0700. Later runs remove it if this process cannot.

    A lock marks the directory as used. The system releases the lock however the process ends, in any container.

    Raises:
        RunError: R712 if something of another user is in its place.
    """
    return _taken()[0]


def temporary_lock() -> int:
    """Return the descriptor of the lock of `temporary_directory`. A process that inherits it holds the lock, too.

    Raises:
        RunError: See `temporary_directory`.
    """
    return _taken()[1]


@cache
def _taken() -> tuple[Path, int]:
    directory, descriptor = take(private_root())
    atexit.register(_remove_own, directory, os.getpid())
    return directory, descriptor


def take(root: Path) -> tuple[Path, int]:
    """Make a temporary directory in `root`, and remove the directories of processes that have ended.

    Returns:
        The directory, and the descriptor of its lock.

    Raises:
        RunError: See `temporary_directory`.
    """
    root.mkdir(mode=0o700, exist_ok=True)
    _check(root)
    with locked(root / LOCK):  # so that no process removes a new directory that is not locked yet
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
        shutil.rmtree(directory, ignore_errors=True)  # if files stay, the next start removes them


def _remove_own(directory: Path, pid: int) -> None:
    if os.getpid() == pid:  # not in a fork, which runs the same exit functions
        shutil.rmtree(directory, ignore_errors=True)
