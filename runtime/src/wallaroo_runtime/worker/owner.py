"""The process a supervisor lives and dies with: the executor's JVM."""

import os
from dataclasses import dataclass
from pathlib import Path

START_TIME_FIELD = 22 - 3  # counted from the field after the command's name


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, told apart from a later one with the same id by its start time."""

    pid: int
    start_time: int

    def is_alive(self) -> bool:
        """Say whether exactly this process still runs."""
        return start_time(self.pid) == self.start_time


def _stat(pid: int) -> list[str]:
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    # The command's name stands in parentheses and may itself contain some.
    return text[text.rindex(")") + 2 :].split()


def start_time(pid: int) -> int:
    """Return when the process started, in clock ticks since boot; 0 when it is gone or a zombie."""
    try:
        fields = _stat(pid)
    except (OSError, ValueError):
        return 0
    return 0 if fields[0] in "ZX" else int(fields[START_TIME_FIELD])


def is_java(pid: int) -> bool:
    """Say whether the process runs a Java virtual machine."""
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name.startswith("java")
    except OSError:
        return False


def find_owner() -> Owner:
    """Return the executor JVM above this PySpark worker process, or this process when there is none.

    A PySpark worker is forked by a daemon, which the JVM started; both are recycled at Spark's discretion.
    """
    pid = os.getppid()
    while pid > 1:
        if is_java(pid):
            return Owner(pid, start_time(pid))
        try:
            pid = int(_stat(pid)[1])
        except (OSError, ValueError):
            break
    return Owner(os.getpid(), start_time(os.getpid()))
