"""The process a supervisor lives and dies with: the executor's JVM."""

import os
from dataclasses import dataclass
from pathlib import Path

from wallaroo_runtime.system.process import parent_of, process_start_time

ABOVE = "WALLAROO_ABOVE"  # variable of a fork: the process that it would have above it if it had been started


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, told apart from a later one with the same id by its start time."""

    pid: int
    start_time: int

    def is_alive(self) -> bool:
        """Say whether exactly this process still runs."""
        return process_start_time(self.pid) == self.start_time


def is_java(pid: int) -> bool:
    """Say whether the process runs a Java virtual machine."""
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name.startswith("java")
    except OSError:
        return False


def find_owner() -> Owner:
    """Return the executor JVM above this PySpark worker process, or this process when there is none.

    A PySpark worker is forked by a daemon, which the JVM started, or a client of the server of forks in its place; both
    are recycled at Spark's discretion.
    """
    pid = int(os.environ.get(ABOVE) or os.getppid())
    while pid > 1 and not is_java(pid):
        pid = parent_of(pid) or 0
    found = pid if pid > 1 else os.getpid()
    return Owner(found, process_start_time(found) or 0)
