"""How a process of a worker ended, and which message is the suspect."""

import json
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

from wallaroo_runtime.worker.flight import OUTSIDE, at_work
from wallaroo_runtime.worker.launch import status_text

ENDED = "ended.json"
# What a fault of the program itself raises; any other signal came from outside, for all we know.
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


class Cause(Enum):
    """What a message is accused of."""

    HUNG = auto()  # the deadline passed
    CRASHED = auto()  # the process ended of its own
    KILLED = auto()  # a signal from outside ended the process; the message need not be the cause


@dataclass(frozen=True, slots=True)
class Blame:
    """A message that was in flight when the worker ended.

    Attributes:
        index: Of the call in its stream.
        ordinal: Of the message in the call; none when `is_outside`.
        cause: What happened.
        text: The same in words.
        is_shared: Whether other messages were in flight in the same process.
        note: What the worker did for no message, as it notes in a careful call.
    """

    index: int
    ordinal: int
    cause: Cause
    text: str
    is_shared: bool = False
    note: str = ""

    @property
    def is_outside(self) -> bool:
        """Whether user code ran for no message: states were read or written, or messages read back."""
        return self.ordinal == OUTSIDE - 1


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of one process of a worker.

    Attributes:
        status: Exit status, or minus a signal's number; of the first of several processes.
        killed_for: Why the supervisor killed it; empty: it did not.
        at_work: The messages in flight in that process, by name of their stream's file.
        is_excused: Whether the cause is known and dealt with, so that the end is no reason to give up.
    """

    status: int
    killed_for: str
    at_work: Mapping[str, tuple[int, int]]
    is_excused: bool

    @property
    def text(self) -> str:
        """How the process ended, in words."""
        return self.killed_for or status_text(self.status)

    def told(self, worker: str, process: int, following: int) -> str:
        """Return the text for people.

        Example:
            >>> Ending(-9, "", {"a": (0, 3)}, False).told("main", 12, 15).partition("; ")[2]
            '1 message was in flight; process 15 repeats what was not answered'
        """
        count = len(self.at_work)
        flight = f"{count or 'no'} message{'' if count == 1 else 's'} {'was' if count == 1 else 'were'} in flight"
        after = f"process {following} repeats what was not answered"
        return f'worker "{worker}", process {process}: {self.text}; {flight}; {after}'

    def blame(self, name: str) -> Blame | None:
        """Return what the ending shows about the stream of a file."""
        if self.killed_for or name not in self.at_work:
            return None
        cause = Cause.CRASHED if is_own(self.status) else Cause.KILLED
        return Blame(*self.at_work[name], cause, self.text, len(self.at_work) > 1)

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Ending":
        """Read what `to_json` gave."""
        return cls(**{**value, "at_work": {name: (at[0], at[1]) for name, at in value["at_work"].items()}})


def is_own(status: int) -> bool:
    """Say whether a process ended of its own."""
    return status >= 0 or -status in FAULT_SIGNALS


def look_back(directory: Path, process: int, status: int) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return status and messages in flight of the process that was the first to end.

    Args:
        directory: The worker's.
        process: The one that the supervisor started.
        status: Its own status.
    """
    path = directory / ENDED
    try:
        told = json.loads(path.read_bytes())
        process, status = int(told["process_id"]), int(told["status"])
    except FileNotFoundError:
        pass  # it was this process
    except (ValueError, KeyError, TypeError):
        path.unlink()
        return status, {}
    path.unlink(missing_ok=True)
    return status, at_work(directory, process)
