"""Writes small files that other processes may read at any time, and explains failures of paths and of the disk."""

import errno
import json
import os
import pwd
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wallaroo_runtime.errors import USAGE, RunError

# Errors of a system call if the disk, a quota or a limit of the file size leaves no room.
NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
# Errors of a disk that has room but refuses writes, each with its remedy.
_REMEDIES = {
    errno.EROFS: "mount it for writing (`dmesg` may say why it is not)",
    errno.ESTALE: "mount it again",
}
# Errors of a path that the user has to correct, or that belongs to another user.
_OF_PATHS = frozenset((errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR))


def disk_failure(error: OSError, what: object) -> RunError | None:
    """Return the error (R626) that the disk is full or refuses writes; None if a system call failed for another reason.

    Args:
        what: A path on the disk that the user knows, or the name of a service, for the error.
    """
    fix = "free some space" if error.errno in NO_ROOM else _REMEDIES.get(error.errno or 0)
    return RunError.of("R626", what=what, reason=os.strerror(error.errno or 0), fix=fix) if fix else None


def path_failure(error: OSError, done: str = "used") -> RunError | None:
    """Return the error (R616) that a path cannot be used; None if a system call failed for another reason.

    Args:
        done: What could not be done with the path, e.g. `read`.
    """
    if error.errno not in _OF_PATHS or not isinstance(error.filename, str | bytes):
        return None
    path = os.fsdecode(error.filename)
    reason = os.strerror(error.errno) + (_owner(path) if isinstance(error, PermissionError) else "")
    return RunError.of("R616", USAGE, path=path, done=done, reason=reason)


def _owner(path: str) -> str:
    """Return `; PLACE belongs to user NAME` for the longest existing part of a path; empty if this user owns it."""
    place = os.path.abspath(path)
    while True:
        try:
            owner = os.stat(place).st_uid
            break
        except OSError:
            place = os.path.dirname(place)
    if owner == os.geteuid():
        return ""
    return f"; {place} belongs to user {user_name(owner)}"


def user_name(user: int) -> str:
    """Return the name of the user with an id; the id itself if there is no such user."""
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def damage(error: Exception, what: object, reason: str = "") -> RunError:
    """Return the error (R698) that a file is damaged. Raise `error` itself if it is a `PermissionError`.

    Args:
        what: The file.
        reason: What is wrong; by default the text of the error.
    """
    if isinstance(error, PermissionError):
        raise error
    return RunError.of("R698", what=what, reason=reason or error)


def check_open(path: Path) -> None:
    """Check that this user may read a file, or enter a directory. The path need not exist.

    Raises:
        RunError: R616 if this user is refused.
    """
    try:
        if path.is_file():
            path.open("rb").close()
        elif path.is_dir():
            os.stat(f"{path}/.")
    except OSError as error:
        error.filename = str(path)
        if failure := path_failure(error, "read"):
            raise failure from error
        raise


@contextmanager
def disk_told(path: Path) -> Iterator[None]:
    """Turn an error of the block into R626 if the disk is full or refuses writes.

    Args:
        path: A path on the disk that the user knows, for the error.
    """
    try:
        yield
    except OSError as error:
        if failure := disk_failure(error, path):
            raise failure from error
        raise


def private(path: str, flags: int) -> int:
    """Open a file that only this user can read. Pass this function to `open` as `opener`."""
    return os.open(path, flags, 0o600)


def unnoticed(path: str, flags: int) -> int:
    """Open a file without a change of its time of last access. Pass this function to `open` as `opener`."""
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError:  # the file belongs to another user
        return os.open(path, flags)


def noted(path: Path) -> dict[str, Any]:
    """Return the JSON object that another process has noted in a file; empty if there is no such file or object."""
    try:
        with open(path, "rb", opener=unnoticed) as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def replace_file(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Replace the content of a file. A reader sees the old content or the new content, never a mixture.

    Args:
        path: The file; its directory exists.
        content: The new content.
        durable: Whether the new content must survive a loss of power from now on.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)  # the error of a failed write does not name the file
        new.unlink(missing_ok=True)
        raise
    if durable:
        sync_directory(path.parent)


def sync_file(path: Path) -> None:
    """Write the content and the name of a file to the disk, so that they survive a loss of power."""
    _sync(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Write the names in a directory to the disk, so that they survive a loss of power."""
    _sync(directory, os.O_DIRECTORY)


def _sync(path: Path, kind: int = 0) -> None:
    descriptor = os.open(path, os.O_RDONLY | kind)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def refuse_links(directory: Path, left_out: Collection[str] = ()) -> None:
    """Check that a directory has no symbolic links in it. The runtime makes none, so a link is somebody else's.

    Args:
        directory: The directory, which need not exist. Its own path may have links.
        left_out: Names of directories that are not checked, because they are for programs of the user.

    Raises:
        RunError: R711 if there is a link.
    """
    pending = [directory]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except FileNotFoundError:
            continue  # a process that uses the directory has just removed it
        for entry in entries:
            if entry.is_symlink():
                raise RunError.of("R711", path=entry.path)
            if entry.is_dir(follow_symlinks=False) and entry.name not in left_out:
                pending.append(Path(entry.path))
