"""Named kill points: `WALLAROO_FAULT=POINT:COUNT,...` kills a process when it reaches a point for the COUNTth time.

The points are part of the production code. Each process counts for itself. The process that replaces a killed one would
be killed, too; to prevent this, a directory `WALLAROO_FAULT_DIR` records the kills, and each entry of the variable then
kills only one process.
"""

import os
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path


def parse(text: str) -> dict[str, set[int]]:
    """Parse the value of `WALLAROO_FAULT` into the counts of each point; ignore entries without a count.

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
    """The kill points that the environment requests for a process.

    Args:
        environment: Environment variables; `WALLAROO_FAULT` and `WALLAROO_FAULT_DIR` may be missing.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.points = parse(environment.get("WALLAROO_FAULT", ""))
        self._directory = environment.get("WALLAROO_FAULT_DIR", "")
        self._counts: Counter[str] = Counter()

    def reach(self, point: str) -> None:
        """Count the arrivals of this process at a point, and kill the process at a requested count."""
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
    """Report that this process is at a kill point. Without `WALLAROO_FAULT` this costs one comparison."""
    if _FAULT.points:
        _FAULT.reach(point)
