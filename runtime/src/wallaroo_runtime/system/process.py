"""The system's facts about a process, and processes that end with their parents."""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def dying_with_parent(number: int) -> Callable[[], None]:
    """Return the `preexec_fn` of a process that must get a signal when the thread that starts it ends."""
    parent = os.getpid()

    def bind() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:
            os._exit(1)

    return bind


def process_start_time(pid: int) -> int | None:
    """Return the time at which a process started, in clock ticks since boot; None if there is no such process.

    A pid alone is no identity, since pids are used again. A zombie counts as gone.
    """
    fields = _stat(pid)
    return None if not fields or fields[0] in (b"Z", b"X") else int(fields[19])


def parent_of(pid: int) -> int | None:
    """Return the parent of a process; None if there is no such process."""
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def _stat(pid: int) -> list[bytes]:
    """Return the fields of a process from its state on; empty if the process has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return []
    # The second field is the command in parentheses and may hold anything, parentheses and spaces included.
    return stat[stat.rindex(b")") + 2 :].split()
