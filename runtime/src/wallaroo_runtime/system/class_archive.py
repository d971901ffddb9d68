"""Keeps the JVM's compiled form of a program's classes in a file that the next one maps into its memory.

Half of the processor time of a start goes into reading and checking classes: a run of Spark without messages took 38.8
CPU seconds without such a file and 20.4 with it. The first run of a user leaves the file when it ends: one at a time.
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

# Archives of a program: two, as of two versions of it or of Java, and more while installations are used in turns.
KEPT, KEPT_OF_A_DAY = 2, 8
WRITING_S, ABANDONED_S, DAY_S = 120.0, 3600.0, 86_400.0
LOCK = "lock"
MAKE = "-XX:ArchiveClassesAtExit"
MAGIC = bytes.fromhex("a8ab0bf0")  # the header is written last: a file that begins with it is whole


def archive_option(program: str, *parts: object) -> str:
    """Return the option that lets a virtual machine use the file, or make it; empty where nothing can be kept.

    The virtual machine compares versions, jars and options by itself, and goes on without a file that does not fit.

    Args:
        program: Name of the program.
        parts: What is another one in another version of it, or with other jars. A path stands for what is there now:
            Java refuses, without a word, an archive of a jar with another time or size.
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
        return ""  # a start without it is slower, and nothing else
    return f"{MAKE}={archive.with_suffix(f'.{os.getpid()}')}"


def is_being_made(option: str) -> bool:
    """Say whether `archive_option` lets the virtual machine make the file: of all classes that it has loaded."""
    return option.startswith(MAKE)


class ArchiveWriter:
    """The right of a virtual machine to make the file when it ends, which takes a minute of a processor.

    The virtual machine inherits a descriptor of a lock. The process that started it takes the lock by that descriptor
    once it needs the virtual machine no more, which thus has it to its own end.

    Args:
        options: Those of the virtual machine.

    Attributes:
        directory: Where the file is made; None: it makes none.
        descriptors: What the virtual machine has to inherit.
    """

    def __init__(self, options: str) -> None:
        match = re.search(rf"{MAKE}=([^\"]+)\.\d+", options)
        self._archive = Path(f"{match[1]}.jsa") if match else None
        self.directory = self._archive.parent if self._archive else None
        self.descriptors: tuple[int, ...] = ()
        if self.directory is not None:
            with suppress(OSError):  # without it nothing is written
                self.descriptors = (take_lock(self.directory / LOCK, UNLOCKED),)

    def take(self) -> bool:
        """Say whether the virtual machine, which is about to end, may write: nobody else does, and nobody has."""
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
    """Give the archive of a run its final name; remove one that is not whole and no longer written."""
    for part in archive.parent.glob(f"{archive.stem}.*[0-9]"):
        with suppress(FileNotFoundError), part.open("rb") as file:  # else another start was faster
            if file.read(len(MAGIC)) == MAGIC and not archive.exists():
                part.replace(archive)
            elif time.time() - os.fstat(file.fileno()).st_mtime > WRITING_S:
                part.unlink()


def _prune(directory: Path, program: str) -> None:
    """Keep a program's archives that were used last, each of which has up to 170 MB, and none that nobody took over."""
    used = {path: _modified(path) for path in directory.glob(f"{program}-*.jsa")}
    for number, (old, at) in enumerate(sorted(used.items(), key=lambda item: -item[1])):
        if number >= KEPT_OF_A_DAY or (number >= KEPT and time.time() - at > DAY_S):
            old.unlink(missing_ok=True)
    for part in directory.glob("*.*[0-9]"):
        with suppress(FileNotFoundError):
            if time.time() - part.stat().st_mtime > ABANDONED_S:
                part.unlink()


def _modified(path: Path) -> float:
    """Return when a file was changed; another start may have removed it."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
