"""Finds facts about processes in `/proc`, and lets processes end with their parents."""

import ctypes
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
READY = "WALLAROO_DRIVER_READY"  # descriptor on which a driver reports that it is initialized
_ready = os.environ.pop(READY, "")  # at once: children of this process do not have the descriptor
_libc = ctypes.CDLL(None, use_errno=True)


def dying_with_parent(number: int) -> Callable[[], None]:
    """Return a `preexec_fn`: its process gets a signal when the thread that started the process ends."""
    parent = os.getpid()

    def bind() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(1)

    return bind


def report_ready() -> None:
    """Report to `wallaroo submit`, if it started this driver, that the application is initialized."""
    if _ready:
        with suppress(OSError):
            os.write(int(_ready), b"\n")


def process_start_time(pid: int) -> int | None:
    """Return the time at which a process started, in clock ticks since boot; None if there is no such process.

    A pid alone is no identity, since pids are used again. A zombie counts as gone.
    """
    fields = _stat(pid)
    return None if not fields or fields[0] in (b"Z", b"X") else int(fields[19])


@dataclass(frozen=True, slots=True)
class ProcessId:
    """The identity of a process.

    Attributes:
        pid: Id of the process.
        start_time: Start of the process in clock ticks since boot, since another process may get the same pid.
    """

    pid: int
    start_time: int

    @classmethod
    def of(cls, pid: int) -> "ProcessId":
        """Return the identity of the process that has this pid now."""
        return cls(pid, process_start_time(pid) or 0)

    @property
    def is_alive(self) -> bool:
        """Whether the process still exists."""
        return process_start_time(self.pid) == self.start_time

    def interrupt(self) -> bool:
        """Send SIGTERM to the process, and say whether it existed. A later process with the same pid gets no signal."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.is_alive:
                return False
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True


def alive(note: Mapping[str, Any]) -> ProcessId | None:
    """Return the process whose `pid` and `start_time` a note or status has; None if it no longer exists."""
    process = ProcessId(int(note.get("pid") or 0), int(note.get("start_time") or 0))
    return process if process.pid and process.is_alive else None


def parent_of(pid: int) -> int | None:
    """Return the parent of a process; None if there is no such process."""
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def _stat(pid: int) -> list[bytes]:
    """Return the fields of `/proc/PID/stat` that follow the name, from the state on; empty if the process has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return []
    # The second field is the command in parentheses and may hold anything, parentheses and spaces included.
    return stat[stat.rindex(b")") + 2 :].split()
