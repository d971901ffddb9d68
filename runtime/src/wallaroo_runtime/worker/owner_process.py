"""The process with which a supervisor ends: the executor's JVM."""

import os
from dataclasses import dataclass
from pathlib import Path

from wallaroo_runtime.system.process import parent_of, process_start_time


@dataclass(frozen=True, slots=True)
class Owner:
    """A process. Its start time distinguishes it from a later process with the same id."""

    pid: int
    start_time: int

    def is_alive(self) -> bool:
        """Return whether this process still runs."""
        return process_start_time(self.pid) == self.start_time


def is_java(pid: int) -> bool:
    """Return whether the process runs a Java virtual machine."""
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name.startswith("java")
    except OSError:
        return False


def find_owner() -> Owner:
    """Return the executor's JVM that started this process (`worker/here.py`), or this process if there is no JVM."""
    pid = os.getppid()
    while pid > 1 and not is_java(pid):
        pid = parent_of(pid) or 0
    owner_pid = pid if pid > 1 else os.getpid()
    return Owner(owner_pid, process_start_time(owner_pid) or 0)
