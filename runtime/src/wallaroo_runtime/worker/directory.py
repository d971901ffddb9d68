"""Private directories of workers, short enough for the path of a socket."""

import contextlib
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.system.lock import take_lock
from wallaroo_runtime.system.process import ProcessId
from wallaroo_runtime.worker.spec import WorkerSpec

SOCKET_PATH_BYTES = 108
LONGEST_REST = len("/wallaroo-4294967295/0123456789abcdef/0123456789abcdef0123456789abcdef/supervisor.sock.new")


def private_root() -> Path:
    """Return the directory of this user for files of processes on this machine. It need not exist."""
    usual = Path(tempfile.gettempdir())
    fits = len(os.fsencode(usual)) + LONGEST_REST < SOCKET_PATH_BYTES
    return (usual if fits else Path("/tmp")) / f"wallaroo-{os.getuid()}"


def make_private(path: Path) -> None:
    """Make a directory that only this user can enter, or check that an existing directory is private.

    Raises:
        RunError: W401 if another user owns the directory or may enter it.
    """
    path.mkdir(mode=0o700, exist_ok=True)
    _check_private(path)


def check_existing(directory: Path) -> None:
    """Check that a worker's directory and its parents, if they exist, are private, so that a socket there is trusted.

    Raises:
        RunError: W401, as `make_private`.
    """
    for path in (directory.parent.parent, directory.parent, directory):
        with contextlib.suppress(FileNotFoundError):
            _check_private(path)


def _check_private(path: Path) -> None:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o077:
        raise RunError.of(
            "W401",
            WORKER,
            worker=path.name,
            reason=f"{path} is not a directory that only this user may enter",
            fix=f"remove {path}",
        )


def worker_directory(spec: WorkerSpec, owner: ProcessId) -> Path:
    """Return the directory of this worker on this executor. It need not exist."""
    identity = f"{spec.run}\0{owner.pid}\0{owner.start_time}"
    parent = private_root() / hashlib.sha256(identity.encode()).hexdigest()[:16]
    name = spec.name if re.fullmatch(r"[A-Za-z0-9_-]{1,15}", spec.name) else "worker"
    return parent / f"{name}-{spec.digest()}"


def lock_path(directory: Path) -> Path:
    """Return the file, next to a worker's directory, whose lock is needed to start the supervisor."""
    return directory.with_name(directory.name + ".lock")


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a worker's directory. The parents of the directory exist during the block."""
    path = lock_path(directory)
    while True:
        make_private(path.parent.parent)
        make_private(path.parent)
        try:
            descriptor = take_lock(path)
        except FileNotFoundError:
            continue  # the last supervisor of this executor has just removed the parent
        try:
            # A supervisor removes the file at its end. So check that this lock is not the lock of a removed file.
            if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
                yield
                return
        finally:
            os.close(descriptor)
