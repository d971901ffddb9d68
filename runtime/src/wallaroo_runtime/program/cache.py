"""The user's cache of worker binaries, with a limit for its size: the least recently used entries are removed."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from wallaroo_runtime.system.cache import cache_directory
from wallaroo_runtime.system.lock import SHARE, TRY, locked

BOUND_BYTES = 1 << 30  # enough for about sixty binaries


def cached(place: str, name: str, compile_to: Callable[[Path], object], bound_bytes: int = BOUND_BYTES) -> Path:
    """Let the compiler bring a binary of the cache up to date, and return the path of the binary.

    The go command knows best whether a binary is up to date. So each place has a file that go builds in place. The
    returned file is a hard link to it or a copy of it, named after the hash of the content, so that a running
    worker's binary is never replaced.

    Args:
        place: Any text that identifies the program and the target.
        name: File name of the binary.
        compile_to: Makes the file at a path, or leaves it if it is up to date.
        bound_bytes: Limit for the size of the cache; binaries of running workers are kept in any case.
    """
    root = cache_directory() / "go"
    slot = root / "slot" / hashlib.sha256(place.encode()).hexdigest()[:32]
    slot.mkdir(parents=True, exist_ok=True, mode=0o700)
    with locked(root / "lock", SHARE):
        slot.mkdir(exist_ok=True, mode=0o700)  # again: another process may have removed it before the lock
        with locked(slot / "lock"):
            built = slot / name
            if built.exists():
                _put(built, built, shutil.copy2)  # no hard link, since the compiler may write into the file
            compile_to(built)
            final = root / "binary" / hashlib.sha256(built.read_bytes()).hexdigest()[:32] / name
            final.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _put(*((final, built) if final.exists() else (built, final)), os.link)
        now = time.time_ns()  # more exact than the time that the kernel would set
        for used in (slot, final.parent):
            os.utime(used, ns=(now, now))
    # If another build is running, that build applies the limit at its end.
    with suppress(BlockingIOError), locked(root / "lock", TRY):
        _prune(root, bound_bytes)
    return final


def _put(source: Path, target: Path, make: Callable[[Path, Path], object]) -> None:
    """Replace `target` by a link to `source`, or by a copy."""
    temporary = target.with_suffix(".part")
    temporary.unlink(missing_ok=True)
    try:
        make(source, temporary)
    except OSError:
        shutil.copy2(source, temporary)  # the file system has no hard links
    temporary.replace(target)


def _bytes(entry: Path) -> int:
    """Return the size of an entry. Files with two names (hard links) are counted half for each name."""
    return sum(stat.st_size // stat.st_nlink for stat in (file.stat() for file in entry.iterdir()))


def _prune(root: Path, bound_bytes: int) -> None:
    """Remove the least recently used entries beyond the limit, but not the two newest, which the last build needs."""
    entries = sorted([*root.glob("slot/*"), *root.glob("binary/*")], key=lambda entry: -entry.stat().st_mtime_ns)
    total = sum(map(_bytes, entries[:2]))
    running: set[Path] | None = None
    for entry in entries[2:]:
        total += _bytes(entry)
        if total <= bound_bytes:
            continue
        running = _running() if running is None else running
        if not any(file in running for file in entry.iterdir()):
            shutil.rmtree(entry)


def _running() -> set[Path]:
    """Return the paths of all programs that processes of the user run now."""
    programs = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process is another user's, or has ended
            programs.add((process / "exe").readlink())
    return programs
