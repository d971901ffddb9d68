"""Ends children: with their group, or from another thread than the one that waits for them."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_local = threading.local()
Child = subprocess.Popen[bytes] | subprocess.Popen[str]


class Children:
    """The processes for which a thread waits.

    Attributes:
        is_ended: Whether the processes were ended; later ones are then ended at once.
    """

    def __init__(self) -> None:
        self._lock, self._running, self.is_ended = threading.Lock(), set[Child](), False

    def watch(self) -> None:
        """Add the processes that this thread makes `endable` from now on."""
        _local.children = self

    def end(self) -> None:
        """End the processes; a thread that waits for one sees that it was killed."""
        with self._lock:
            self.is_ended = True
            for child in self._running:
                _kill(child)

    def add(self, child: Child) -> None:
        """Add a process."""
        with self._lock:
            self._running.add(child)
            if self.is_ended:
                _kill(child)

    def remove(self, child: Child) -> None:
        """Forget a process."""
        with self._lock:
            self._running.discard(child)


@contextmanager
def endable(child: Child) -> Iterator[None]:
    """Let another thread end a child of this one."""
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
    """End a child that has a group of its own, and its own children in that group."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _kill(child: Child) -> None:
    """End a process that has not ended, and its group if it has one of its own."""
    with suppress(ProcessLookupError):
        if child.poll() is None and os.getpgid(child.pid) == child.pid:
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
