"""Measures the memory of a run's processes on this machine."""

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

from wallaroo_runtime.system.process import parent_of

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(pid: int) -> int:
    """Return the memory that a process uses, shared pages included; 0 if the process has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * PAGE_BYTES
    except (OSError, IndexError, ValueError):
        return 0


class ProcessFamily:
    """A snapshot of the processes of this machine, to find the children of a process and their memory."""

    def __init__(self) -> None:
        self._children: Mapping[int, list[int]] = _children()

    def resident_bytes(self, pid: int) -> int:
        """Return the memory of a process and its descendants."""
        return sum(map(resident_bytes, self._with_descendants(pid)))

    def named(self, parent: int, name: str) -> list[int]:
        """Return the ids of those children of a process that run a program with this name, e.g. `java`."""
        return [child for child in self._children.get(parent, ()) if _name_of(child) == name]

    def _with_descendants(self, pid: int) -> Iterator[int]:
        yield pid
        for child in self._children.get(pid, ()):
            yield from self._with_descendants(child)


def _name_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _children() -> dict[int, list[int]]:
    children: dict[int, list[int]] = defaultdict(list)
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(PermissionError):  # of another user, if /proc is mounted with hidepid=1
            if (parent := parent_of(int(entry.name))) is not None:
                children[parent].append(int(entry.name))
    return children
