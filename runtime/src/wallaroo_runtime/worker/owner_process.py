"""The process with which a supervisor ends: the executor's JVM."""

import os
from pathlib import Path

from wallaroo_runtime.system.process import ProcessId, parent_of


def is_java(pid: int) -> bool:
    """Return whether the process runs a Java virtual machine."""
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name.startswith("java")
    except OSError:
        return False


def find_owner() -> ProcessId:
    """Return the executor's JVM that started this process (`worker/here.py`), or this process if there is no JVM."""
    pid = os.getppid()
    while pid > 1 and not is_java(pid):
        pid = parent_of(pid) or 0
    return ProcessId.of(pid if pid > 1 else os.getpid())
