"""Lets a process know that a signal has asked it to end."""

import signal
import time

STEP_S = 0.1


class Stop:
    """A flag that signal handlers set.

    An event of `threading` would stop the process for ever: a handler runs in the main thread, which may hold the
    event's lock at that moment, as an earlier handler may that it interrupts. Setting a flag takes no lock.

    Example:
        >>> stop = Stop()
        >>> stop.wait(0.0)
        False
        >>> stop.set()
        >>> stop.wait(60.0)
        True
    """

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        """Set it."""
        self._is_set = True

    def is_set(self) -> bool:
        """Say whether it is set."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Wait until it is set, for at most so many seconds; say whether it is."""
        deadline = time.monotonic() + seconds
        while not self._is_set and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, STEP_S))
        return self._is_set


def stop_event() -> Stop:
    """Return a flag that SIGINT and SIGTERM set."""
    stopped = Stop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopped.set())
    return stopped
