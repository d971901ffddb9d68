"""The end of a worker process, and the messages that were in flight, as files record them.

SPECIFICATION.md, section 4, describes the content of the files.
"""

import contextlib
import json
import signal
import struct
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from wallaroo_runtime.worker.launch import status_text

ENDED = "ended.json"
# Signals that a fault of the program itself raises. Any other signal counts as sent from outside.
FAULT_SIGNALS = frozenset(
    {
        signal.SIGABRT,
        signal.SIGBUS,
        signal.SIGFPE,
        signal.SIGILL,
        signal.SIGSEGV,
        signal.SIGSYS,
        signal.SIGTRAP,
    }
)
PREFIX = "flight-"
LEFT = ".left"  # suffix of a file whose stream ended while a message was in flight
OUTSIDE = 1 << 62  # value of `message` while states are read or written, or messages are read back
WORDS = struct.Struct("<4Q")


class Mark(NamedTuple):
    """The content of the file in which a worker notes the message that one stream is processing.

    Attributes:
        call: Number of the call in the stream.
        message: 1 + ordinal of the message in flight; 0 if there is none; `OUTSIDE` if user code runs for no message.
        process: Id of the process that runs the stream; 0 if the file does not have it.
        progress: Number that grows while the message in flight is a visit, which may take long for many keys.
    """

    call: int = 0
    message: int = 0
    process: int = 0
    progress: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of one process of a worker.

    Attributes:
        status: Exit status, or minus a signal's number. If the worker has several processes, it is the status of the
            first process that ended.
        killed_for: Reason for which the supervisor killed the process; empty if the supervisor did not kill it.
        at_work: The messages in flight in that process, by name of their stream's file.
        is_excused: Whether the cause is known and handled, so that the end does not count against the budget.
        memory: Signs of a lack of memory, in words.
    """

    status: int
    killed_for: str
    at_work: Mapping[str, tuple[int, int]]
    is_excused: bool
    memory: str = ""

    @property
    def text(self) -> str:
        """How the process ended, in words."""
        return self.killed_for or "; ".join(filter(None, [status_text(self.status), self.memory]))

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object, with the text."""
        return {**asdict(self), "text": self.text}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Ending":
        """Read the form that `to_json` wrote."""
        fields = {name: value[name] for name in ("status", "killed_for", "is_excused", "memory")}
        return cls(**{**fields, "at_work": {name: (at[0], at[1]) for name, at in value["at_work"].items()}})


def is_own(status: int) -> bool:
    """Return whether a process ended by itself, and not by a signal from outside."""
    return status >= 0 or -status in FAULT_SIGNALS


def look_back(directory: Path, process: int, status: int) -> tuple[int, dict[str, tuple[int, int]]]:
    """Find the process of a worker that ended first. Return its exit status, and its messages in flight.

    A worker may have several processes. If one ends, the worker notes which, and ends the others.

    Args:
        directory: Directory of the worker.
        process: Id of the process that the supervisor started.
    """
    path = directory / ENDED
    try:
        note = json.loads(path.read_bytes())
        process, status = int(note["process_id"]), int(note["status"])
    except FileNotFoundError:
        pass  # no note: `process` itself ended first
    except (ValueError, KeyError, TypeError):
        path.unlink()
        return status, {}
    path.unlink(missing_ok=True)
    return status, at_work(directory, process)


def at_work(directory: Path, process: int) -> dict[str, tuple[int, int]]:
    """Return the messages in flight of a worker process, by the name of the file in which it noted each message.

    A message is given by the number of the call in its stream, and by its ordinal in the call. Files whose client has
    ended the stream, or was killed, are removed.
    """
    messages = {}
    for name, mark in marks(directory):
        if mark.message and mark.process in (process, 0):
            messages[name] = (mark.call, mark.message - 1)
        client = name.removeprefix(PREFIX).partition("-")[0]
        if name.endswith(LEFT) or not Path(f"/proc/{client}").exists():
            (directory / name).unlink(missing_ok=True)
    return messages


def marks(directory: Path) -> Iterator[tuple[str, Mark]]:
    """Yield name and content of each file in which a worker notes the message that a stream is processing."""
    for path in sorted(directory.glob(PREFIX + "*")):
        with contextlib.suppress(FileNotFoundError):  # the stream has just ended, and its file is gone
            yield path.name, parse(path.read_bytes()[: WORDS.size])


def parse(data: bytes) -> Mark:
    """Return a worker's note about its message in flight, from the file's bytes; an empty note if bytes are missing."""
    return Mark(*WORDS.unpack(data)) if len(data) == WORDS.size else Mark()
