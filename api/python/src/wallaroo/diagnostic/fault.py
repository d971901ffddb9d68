"""Named kill points: `WALLAROO_FAULT=POINT:COUNT,...` lets a process die when it comes to a point the COUNTth time.

They stand in the code that production runs. A count is of one process. So that the process which takes its place is
not killed again and again, a directory `WALLAROO_FAULT_DIR` remembers what was done: each entry of the variable then
kills one process, once.
"""

import os
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path


def parse(text: str) -> dict[str, set[int]]:
    """Read the variable; points that this process never reaches, and entries without a count, have no effect.

    Example:
        >>> parse("gateway.after_append:3,worker.after_reply:1")
        {'gateway.after_append': {3}, 'worker.after_reply': {1}}
    """
    counts: dict[str, set[int]] = {}
    for entry in text.split(","):
        point, _, count = entry.rpartition(":")
        if point and count.isdecimal():
            counts.setdefault(point, set()).add(int(count))
    return counts


class Fault:
    """The faults that a process was asked to die of.

    Args:
        environment: With or without `WALLAROO_FAULT` and `WALLAROO_FAULT_DIR`.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.points = parse(environment.get("WALLAROO_FAULT", ""))
        self._directory = environment.get("WALLAROO_FAULT_DIR", "")
        self._counts: Counter[str] = Counter()

    def reach(self, point: str) -> None:
        """Die when the time has come."""
        self._counts[point] += 1
        count = self._counts[point]
        if count in self.points.get(point, ()) and self._is_first(f"{point}:{count}"):
            os.kill(os.getpid(), signal.SIGKILL)

    def _is_first(self, name: str) -> bool:
        if not self._directory:
            return True
        try:
            Path(self._directory, name).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


_FAULT = Fault(os.environ)


def reach(point: str) -> None:
    """Report that this process is at a point; costs one comparison unless a test has asked for a fault."""
    if _FAULT.points:
        _FAULT.reach(point)
