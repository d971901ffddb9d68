"""Keeps the compiled form of a program's Java classes in a file, so that the next JVM starts faster.

Half of the processor time of a start goes into reading and checking classes: a run of Spark without messages took 38.8
CPU seconds without such a file and 20.4 with it. The first run of a user that has processed messages writes the file
when it ends, unless another run is writing.
"""

import fcntl
import hashlib
import os
import re
import time
from contextlib import suppress
from pathlib import Path

from wallaroo_runtime.system.cache import cache_directory
from wallaroo_runtime.system.java import java_program
from wallaroo_runtime.system.lock import TRY, UNLOCKED, take_lock

# Number of a program's archives to keep, e.g. for two versions of it or of Java; more if all were used within a day.
KEPT, KEPT_OF_A_DAY = 2, 8
WRITING_S, ABANDONED_S, DAY_S = 120.0, 3600.0, 86_400.0
LOCK = "lock"
MAKE = "-XX:ArchiveClassesAtExit"
MAGIC = bytes.fromhex("a8ab0bf0")  # the header is written last, so a file that begins with it is whole


def archive_option(program: str, *parts: object) -> str:
    """Return the option that lets a virtual machine use or make the class archive; empty if no archive can be kept.

    The virtual machine compares versions, jars and options by itself, and goes on without a file that does not fit.

    Args:
        program: Name of the program.
        parts: Values that differ between versions of the program, or between jars. A path stands for the current time
            and size of its file, since Java silently refuses an archive of a jar with another time or size.
    """
    java = java_program()
    if java is None or not os.path.exists(java):
        return ""
    directory = cache_directory() / "classes"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        archive = directory / f"{program}-{_key(java, parts)}.jsa"
        _take_over(archive)
        _prune(directory, program)
        if archive.exists():
            os.utime(archive)
            return f"-XX:SharedArchiveFile={archive}"
    except OSError:
        return ""  # without the file a start is only slower
    return f"{MAKE}={archive.with_suffix(f'.{os.getpid()}')}"


def is_being_made(option: str) -> bool:
    """Return whether an option of `archive_option` lets the virtual machine make the class archive."""
    return option.startswith(MAKE)


class ArchiveWriter:
    """Decides whether a virtual machine may write its class archive at its end, which takes a minute of processor time.

    The virtual machine inherits a descriptor of a lock. When this process no longer needs the virtual machine, it takes
    the lock through that descriptor. So the virtual machine holds the lock until it ends.

    Args:
        options: Options of the virtual machine.

    Attributes:
        directory: Directory in which the file is made; None if no file is made.
        descriptors: Descriptors that the virtual machine must inherit.
    """

    def __init__(self, options: str) -> None:
        match = re.search(rf"{MAKE}=([^\"]+)\.\d+", options)
        self._archive = Path(f"{match[1]}.jsa") if match else None
        self.directory = self._archive.parent if self._archive else None
        self.descriptors: tuple[int, ...] = ()
        if self.directory is not None:
            with suppress(OSError):  # if this fails, no file is written
                self.descriptors = (take_lock(self.directory / LOCK, UNLOCKED),)

    def take(self) -> bool:
        """Return whether the virtual machine may write the archive: no other process writes it or has written it."""
        if self._archive is None or not self.descriptors:
            return False
        try:
            fcntl.flock(self.descriptors[0], TRY)
            _take_over(self._archive)
        except OSError:
            return False
        return not self._archive.exists()


def _key(java: str, parts: tuple[object, ...]) -> str:
    paths = [Path(os.path.realpath(java)), *(part for part in parts if isinstance(part, Path))]
    files = [path.stat() for path in paths if path.exists()]
    known = (*parts, paths[0], *((each.st_mtime_ns, each.st_size) for each in files))
    return hashlib.sha256(repr(known).encode()).hexdigest()[:32]


def _take_over(archive: Path) -> None:
    """Rename a complete archive of an earlier run to its final name. Remove an abandoned incomplete archive."""
    for part in archive.parent.glob(f"{archive.stem}.*[0-9]"):
        with suppress(FileNotFoundError), part.open("rb") as file:  # another start may have renamed the file
            if file.read(len(MAGIC)) == MAGIC and not archive.exists():
                part.replace(archive)
            elif time.time() - os.fstat(file.fileno()).st_mtime > WRITING_S:
                part.unlink()


def _prune(directory: Path, program: str) -> None:
    """Remove abandoned files, and a program's archives except the last used ones: each has up to 170 MB."""
    used = {path: _modified(path) for path in directory.glob(f"{program}-*.jsa")}
    for number, (old, at) in enumerate(sorted(used.items(), key=lambda item: -item[1])):
        if number >= KEPT_OF_A_DAY or (number >= KEPT and time.time() - at > DAY_S):
            old.unlink(missing_ok=True)
    for part in directory.glob("*.*[0-9]"):
        with suppress(FileNotFoundError):
            if time.time() - part.stat().st_mtime > ABANDONED_S:
                part.unlink()


def _modified(path: Path) -> float:
    """Return the time at which a file was changed; 0 if another start has removed it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
