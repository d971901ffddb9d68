"""The files in which workers note the message in flight; SPECIFICATION.md, section 4, describes their content."""

import contextlib
import itertools
import os
import struct
import threading
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

PREFIX = "flight-"
LEFT = ".left"  # ends the name of a file whose stream was given up while a message was in flight
NOTE_BYTES = 224
OUTSIDE = 1 << 62  # in place of a message: states are read or written, or messages read back
_WORDS = struct.Struct("<4Q")
_numbers = itertools.count()


class Mark(NamedTuple):
    """What a file says.

    Attributes:
        call: Its number in the stream.
        message: 1 + ordinal of the message in flight; 0: none; `OUTSIDE`: user code runs for no message.
        process: Id of the process that runs the stream; 0: it does not say.
        progress: Grows while the message in flight is a visit, which takes as long as there are keys.
    """

    call: int = 0
    message: int = 0
    process: int = 0
    progress: int = 0


class InFlight(Enum):
    """What is in flight in a process, as a stream sees it."""

    OWN = auto()  # a message of the stream
    OTHER = auto()  # a message of another stream, which may be in its way
    NONE = auto()


class FlightFile:
    """The file of one stream, made by the client.

    Args:
        directory: The worker's private directory.

    Raises:
        OSError: It cannot be made; most likely the worker is gone.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / f"{PREFIX}{os.getpid()}-{next(_numbers)}"
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.ftruncate(self._descriptor, _WORDS.size + NOTE_BYTES)
        self._lock = threading.Lock()  # two threads look, and either may close

    def read(self) -> Mark:
        """Return what the worker has noted; of a process that is gone, the last of it."""
        with self._lock:
            return _parse(os.pread(self._descriptor, _WORDS.size, 0)) if self._descriptor >= 0 else Mark()

    def note(self) -> str:
        """Return what the worker has noted of what it does for no message; empty: nothing."""
        with self._lock:
            data = os.pread(self._descriptor, NOTE_BYTES, _WORDS.size) if self._descriptor >= 0 else b""
        return data.rstrip(b"\0").decode("utf-8", "replace")

    def look(self) -> tuple[object, InFlight]:
        """Return what changes with the call's progress, and what is in flight."""
        mine = self.read()
        if mine.message:
            return mine, InFlight.OWN
        found = _marks(self.path.parent)
        others = {name: mark for name, mark in found if not name.endswith(LEFT) or mark.process == mine.process}
        return others, InFlight.OTHER if any(mark.message for mark in others.values()) else InFlight.NONE

    def close(self) -> None:
        """Remove the file; one with a message in flight is left to the supervisor, as that may yet end the process."""
        is_at_work = self.read().message != 0
        with self._lock:
            if self._descriptor < 0:
                return
            os.close(self._descriptor)
            self._descriptor = -1
        with contextlib.suppress(FileNotFoundError):
            if is_at_work:
                self.path.rename(f"{self.path}{LEFT}")
            else:
                self.path.unlink()


def at_work(directory: Path, process: int) -> dict[str, tuple[int, int]]:
    """Return index and ordinal of the messages in flight in a process, by the name of their stream's file.

    Files that a client left, or whose client was killed, are removed.
    """
    found = {}
    for name, mark in _marks(directory):
        if mark.message and mark.process in (process, 0):
            found[name] = (mark.call, mark.message - 1)
        client = name.removeprefix(PREFIX).partition("-")[0]
        if name.endswith(LEFT) or not Path(f"/proc/{client}").exists():
            (directory / name).unlink(missing_ok=True)
    return found


def _marks(directory: Path) -> Iterator[tuple[str, Mark]]:
    for path in sorted(directory.glob(PREFIX + "*")):
        with contextlib.suppress(FileNotFoundError):  # its stream has just ended
            yield path.name, _parse(path.read_bytes()[: _WORDS.size])


def _parse(data: bytes) -> Mark:
    return Mark(*_WORDS.unpack(data)) if len(data) == _WORDS.size else Mark()
