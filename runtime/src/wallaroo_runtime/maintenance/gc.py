"""Finds and removes unused checkpoints, logs and cached files in the state and cache directories of this user."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo_runtime.checkpoint.directory import MANIFEST
from wallaroo_runtime.checkpoint.lock import LOCK
from wallaroo_runtime.checkpoint.registry import CHOSEN, state_directory
from wallaroo_runtime.monitor.endpoint import is_served
from wallaroo_runtime.system.cache import cache_directory
from wallaroo_runtime.system.disk import measure
from wallaroo_runtime.system.lock import TRY, locked

DAY_S = 86_400.0
GONE = ".gone-"  # begins the name of a directory that is being removed
CRASHES = "crashes"
LEFTOVER_S = 3600.0  # a younger directory may be about to be used
LOGS = "logs"  # a run that ended before it had a checkpoint leaves only logs and a lock
GO, CLASSES = "go", "classes"
ENTRIES_OF_GO = ("slot", "binary")


@dataclass(frozen=True, slots=True)
class Unused:
    """A file or directory in the state or cache directory of the user that no process uses.

    Attributes:
        kind: `checkpoint`, `leftover` of a run that never had a checkpoint, `crash` (report of a crash), `note` (record
            of a checkpoint that the user has chosen with an option), or `cache`.
        path: File or directory to remove.
        bytes: Size of its files on the disk.
        reason: Why the file or directory counts as unused.
        last_use: Time when a file in it was last read or changed, in seconds since 1970.
        lock: File that is locked while a process uses it; None if there is no such file.
    """

    kind: str
    path: Path
    bytes: int
    reason: str
    last_use: float
    lock: Path | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the fields that `wallaroo gc --json` prints."""
        return {"kind": self.kind, "path": str(self.path), "bytes": self.bytes, "reason": self.reason}


def find_unused(days: float, *, checkpoints: bool) -> Iterator[Unused]:
    """Yield unused files and directories: leftovers after an hour without use, all others after `days` days.

    Args:
        days: Number of days without use.
        checkpoints: Whether to yield unused checkpoints, too.
    """
    now, root = time.time(), state_directory()
    for path in _children(root):
        if path.is_symlink():
            continue  # the user has made this link to another place
        is_gone = path.name.startswith(GONE)
        if (path / MANIFEST).is_file() and not is_gone:
            if checkpoints and not is_served(path):
                yield from _old("checkpoint", path, now, days, path / LOCK)
        elif (is_gone or _is_leftover(path)) and now - (last := _last_use(path)) >= LEFTOVER_S and not is_served(path):
            reason = "an earlier gc was ended" if is_gone else "its run began no checkpoint"
            yield Unused("leftover", path, measure(path), reason, last, path / LOCK)
    for kind, folder in (("crash", CRASHES), ("note", CHOSEN)):
        for path in _children(root / folder):
            yield from _old(kind, path, now, days)
    yield from _caches(now, days)


def _caches(now: float, days: float) -> Iterator[Unused]:
    root = cache_directory()
    go = root / GO
    paths = [path for path in _children(root) if path not in (go, root / CLASSES)] + _children(root / CLASSES)
    paths += [path for name in ENTRIES_OF_GO for path in _children(go / name)]
    for path in paths:
        lock = go / "lock" if go in path.parents else None
        yield from _old("cache", path, now, days, lock)


def _old(kind: str, path: Path, now: float, days: float, lock: Path | None = None) -> Iterator[Unused]:
    """Yield a file or directory if it was last used at least `days` days ago, unless it was removed meanwhile."""
    with suppress(FileNotFoundError):
        ago = (now - (last := _last_use(path))) / DAY_S
        if ago >= days:
            yield Unused(kind, path, measure(path), f"not used for {int(ago):,} days", last, lock)


def _is_leftover(path: Path) -> bool:
    """Say whether a directory has only the lock and logs of a run, which ended before it had a checkpoint."""
    if path.is_symlink() or not path.is_dir() or not (path / LOCK).is_file():
        return False
    return {entry.name for entry in path.iterdir()} <= {LOCK, LOGS}


def _last_use(path: Path) -> float:
    """Return the time when a file, or any file in a directory, was last read or changed, in seconds since 1970."""
    status = path.lstat()
    latest = status.st_mtime  # this function reads directories itself, so their access times do not count
    if not path.is_dir() or path.is_symlink():
        return latest if path.is_symlink() else max(latest, status.st_atime)
    for folder, names, files in os.walk(path):
        for name in (*files, *names):
            with suppress(FileNotFoundError):
                status = os.lstat(os.path.join(folder, name))
                latest = max(latest, status.st_mtime, status.st_atime if name in files else 0.0)
    return latest


def _children(directory: Path) -> list[Path]:
    return sorted(directory.iterdir()) if directory.is_dir() and not directory.is_symlink() else []


@contextmanager
def held(entry: Unused) -> Iterator[bool]:
    """Lock an unused file or directory during the block. If True is yielded, the block may remove it.

    False means that a process holds the lock, or has used the entry since it was found.
    """
    with ExitStack() as stack:
        is_free = True
        try:
            if entry.lock is not None and entry.lock.exists():
                stack.enter_context(locked(entry.lock, TRY))
        except (BlockingIOError, FileNotFoundError):
            is_free = False
        yield is_free and not _is_used(entry)


def remove(path: Path) -> None:
    """Remove a file or directory. A run that begins meanwhile finds the whole directory, or no directory."""
    if path.is_dir() and not path.is_symlink():
        name = path.name.removeprefix(GONE)
        shutil.rmtree(path.rename(path.with_name(f"{GONE}{os.getpid()}-{name}")))
    else:
        path.unlink(missing_ok=True)


def _is_used(entry: Unused) -> bool:
    try:
        if _last_use(entry.path) > entry.last_use:
            return True
    except FileNotFoundError:
        return True  # another process has removed it
    return entry.kind in ("checkpoint", "leftover") and is_served(entry.path)
