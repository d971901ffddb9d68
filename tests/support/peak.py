"""How much memory the processes of a program need at most, and when it says what."""

import re
import threading
import time
from pathlib import Path

from support.goka import Processor


class Peaks:
    """Looks at the processes of a program, and at its output, ten times a second.

    Args:
        program: It.
        lines: Of its output, whose times are noted.
    """

    def __init__(self, program: Processor, *lines: str) -> None:
        self._program, self._lines = program, lines
        self._bytes, self._times = dict[str, int](), dict[str, float]()
        self._over, self._thread = threading.Event(), threading.Thread(target=self._run)

    def __enter__(self) -> "Peaks":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._look()
        self._over.set()
        self._thread.join()

    def __str__(self) -> str:
        return ", ".join(f"{name} {size / 2**20:,.0f} MiB" for name, size in sorted(self._bytes.items()))

    def seconds(self, begin: str, end: str) -> float:
        """Return the time between two lines of the output."""
        return self._times[end] - self._times[begin]

    def _run(self) -> None:
        while not self._over.wait(0.1):
            self._look()

    def _look(self) -> None:
        output = self._program.output()
        for line in self._lines:
            if line in output:
                self._times.setdefault(line, time.monotonic())
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (found := _peak(entry, str(self._program.directory))):
                self._bytes[found[0]] = max(found[1], self._bytes.get(found[0], 0))


def _peak(entry: Path, directory: str) -> tuple[str, int] | None:
    """Return what a process is, if it is of a program, and how much memory it has needed at most."""
    try:
        if directory.encode() not in (entry / "environ").read_bytes():
            return None
        command = (entry / "cmdline").read_bytes().decode(errors="replace")
        status = (entry / "status").read_text()
    except OSError:
        return None  # it has ended
    names = {"java": "JVM", "daemon": "task", "wallaroo.worker": "worker", "gateway": "gateway", "egress": "egress"}
    name = next((name for part, name in names.items() if part in command), "driver")
    size = re.search(r"VmHWM:\s+(\d+) kB", status)
    return (name, int(size[1]) * 1024) if size else None
