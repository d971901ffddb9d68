"""Poison messages: how a process of a worker ended, which message is the suspect, and what becomes of its call."""

import json
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum, auto
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, Kind, kind_of
from wallaroo.worker._proto import worker_pb2 as pb
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
LEAST_SECONDS = 1.0  # that a message may take, whatever has hung before it
PATIENCE = 4  # times as long as others took


class Cause(Enum):
    """Why a message is a suspect."""

    HUNG = auto()  # the deadline passed
    CRASHED = auto()  # the process ended of its own
    KILLED = auto()  # a signal from outside ended the process; the message need not be the cause


@dataclass(frozen=True, slots=True)
class Suspect:
    """A message that was in flight when the worker ended.

    Attributes:
        index: Of the call in its stream.
        ordinal: Of the message in the call; none when `is_outside`.
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
        memory: What speaks for want of memory.
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

    def suspect(self, name: str) -> Suspect | None:
        """Return what the ending shows about the stream of a file."""
        if self.killed_for or name not in self.at_work:
            return None
        cause = Cause.CRASHED if is_own(self.status) else Cause.KILLED
        return Suspect(*self.at_work[name], cause, self.text, len(self.at_work) > 1)

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


@dataclass(slots=True)
class Quarantine:
    """What is known of one call that broke: which of its messages to leave out, and how it is repeated.

    A call is repeated together with others, or alone: no other call of the process runs a message meanwhile. Once it is
    careful, it stays so: messages run one by one, so that each is in flight while its state is written.

    | the suspect | and | skipped | the call is repeated |
    |---|---|---|---|
    | hung | | yes, C509 | together |
    | ended its process | no other was in flight, or the call ran alone | yes, C508 | together |
    | ended its process | others were in flight too | no | alone |
    | was in flight at a signal from outside | it was so the last time | yes, C508 | together |
    | was in flight at a signal from outside | for the first time | no | alone |
    | no message: user code hung | | no | together, careful |
    | no message: it ended the process | no other was in flight | no | together, careful |
    | no message: it ended the process | others were in flight | no | alone, careful |
    | no message: a signal from outside | | no | together |
    | no message: it hung, or ended the process | careful before, no other to suspect | no | not: W415, `is_beyond` |

    Attributes:
        skips: The messages to leave out.
        is_alone: Whether no other call of the process may run a message meanwhile.
        is_careful: Whether messages run one by one.

    Example:
        >>> quarantine, killed = Quarantine(), Suspect(0, 7, Cause.KILLED, "it was ended by SIGKILL")
        >>> quarantine.learn(killed), quarantine.is_alone, len(quarantine.skips)
        (False, True, 0)
        >>> quarantine.learn(killed), quarantine.is_alone, quarantine.skips[0].code
        (True, False, 'C508')
    """

    skips: list[pb.Skip] = field(default_factory=list)
    is_alone: bool = False
    is_careful: bool = False
    _killed: int = -1

    def learn(self, suspect: Suspect) -> bool:
        """Take note of what happened; return whether it is certain which message is the cause, and it is seen to.

        Raises:
            ValueError: The message was to be left out already.
        """
        if suspect.is_outside:
            return self._learn_outside(suspect)
        if any(skip.ordinal == suspect.ordinal for skip in self.skips):
            msg = f"it runs message {suspect.ordinal} of a call, which it was asked to skip"
            raise ValueError(msg)
        is_certain = {
            Cause.HUNG: True,
            Cause.CRASHED: self.is_alone or not suspect.is_shared,
            Cause.KILLED: self._killed == suspect.ordinal,
        }[suspect.cause]
        if is_certain:
            self.skips.append(_skip(suspect))
        self.is_alone = not is_certain
        self._killed = suspect.ordinal if suspect.cause is Cause.KILLED and not is_certain else -1
        return is_certain

    def seconds(self, deadline: float, slowest: float) -> float:
        """Return how long a message may take: less for each one of the call that has hung before.

        Args:
            deadline: How long it may take where none has.
            slowest: How long other messages took.

        Example:
            >>> quarantine = Quarantine()
            >>> quarantine.seconds(8, 0.1), quarantine.learn(Suspect(0, 7, Cause.HUNG, "8")), quarantine.seconds(8, 0.1)
            (8, True, 4.0)
            >>> quarantine.seconds(8, 1.5)
            6.0
        """
        hung = sum(kind_of(skip.code) is Kind.HUNG for skip in self.skips)
        return min(deadline, max(deadline / 2**hung, LEAST_SECONDS, PATIENCE * slowest)) if hung else deadline

    def is_beyond(self, suspect: Suspect) -> bool:
        """Say whether a state, and no message, ends the worker, as far as can be found out."""
        has_ended = suspect.cause is Cause.HUNG or (
            suspect.cause is Cause.CRASHED and (self.is_alone or not suspect.is_shared)
        )
        return suspect.is_outside and self.is_careful and has_ended

    def _learn_outside(self, suspect: Suspect) -> bool:
        """Let messages run one by one: the message that spoils a state is then in flight while it is written."""
        self.is_careful = self.is_careful or suspect.cause is not Cause.KILLED
        self.is_alone = suspect.is_shared and suspect.cause is Cause.CRASHED
        return suspect.cause is Cause.HUNG


def _skip(suspect: Suspect) -> pb.Skip:
    if suspect.cause is Cause.HUNG:
        finding = Diagnostic.of("C509", seconds=suspect.text)
    else:
        finding = Diagnostic.of("C508", reason=suspect.text)
    return pb.Skip(ordinal=suspect.ordinal, code=finding.code, reason=finding.message)
