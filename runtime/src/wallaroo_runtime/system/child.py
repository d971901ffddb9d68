"""Ends child processes: together with their group, or while another thread waits for them."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_local = threading.local()
Child = subprocess.Popen[bytes] | subprocess.Popen[str]


class Children:
    """The processes for which a thread waits, so that another thread can end them."""

    def __init__(self) -> None:
        self._lock, self._running, self._is_ended = threading.Lock(), set[Child](), False

    def watch(self) -> None:
        """From now on, add each process for which the calling thread enters `endable`."""
        _local.children = self

    def end(self) -> None:
        """Kill the processes, so that the waiting thread goes on. Processes that are added later are killed at once."""
        with self._lock:
            self._is_ended = True
            for child in self._running:
                _kill(child)

    def add(self, child: Child) -> None:
        """Add a process."""
        with self._lock:
            self._running.add(child)
            if self._is_ended:
                _kill(child)

    def remove(self, child: Child) -> None:
        """Forget a process."""
        with self._lock:
            self._running.discard(child)


@contextmanager
def endable(child: Child) -> Iterator[None]:
    """Let another thread end this child during the block, by `Children.end`."""
    children: Children | None = getattr(_local, "children", None)
    if children is None:
        yield
        return
    children.add(child)
    try:
        yield
    finally:
        children.remove(child)


def end_group(child: Child) -> None:
    """Kill a child that leads its own process group, and all other processes of that group."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _kill(child: Child) -> None:
    """Kill a process if it runs, and its group if the process leads it."""
    with suppress(ProcessLookupError):
        if child.poll() is None and os.getpgid(child.pid) == child.pid:
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
