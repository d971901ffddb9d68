"""Places at which tests let a worker die, in the code that production runs."""

import os
import signal
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

BEFORE_COMPUTE, AFTER_COMPUTE, AFTER_REPLY = "worker.before_compute", "worker.after_compute", "worker.after_reply"


def parse(text: str) -> dict[str, set[int]]:
    """Read what `WALLAROO_FAULT` says of points of a worker: at which times a process dies there.

    Example:
        >>> parse("worker.after_reply:3,driver.after_commit:1")
        {'worker.after_reply': {3}}
    """
    found: dict[str, set[int]] = {}
    for entry in text.split(","):
        point, _, count = entry.rpartition(":")
        if point in (BEFORE_COMPUTE, AFTER_COMPUTE, AFTER_REPLY) and count.isdecimal():
            found.setdefault(point, set()).add(int(count))
    return found


class Fault:
    """What this process has been told to die of.

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
    """Tell that this process is at a point; costs one comparison unless a test has asked for a fault."""
    if _FAULT.points:
        _FAULT.reach(point)
