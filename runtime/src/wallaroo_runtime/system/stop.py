"""Lets a process know that a signal has asked it to end."""

import os
import select
import signal
import sys
import time
import weakref
from typing import NoReturn

SIGNALLED = 128  # and the number of a signal: exit code of what it has ended, as in a shell
LONGEST_S = 3600.0  # what a system call can wait has a limit


class Stop:
    """A flag that signal handlers set.

    An event of `threading` would stop the process for ever: a handler runs in the main thread, which may hold the
    event's lock at that moment, as an earlier handler may that it interrupts. Setting a flag takes no lock, nor does a
    descriptor that wakes who waits.

    Attributes:
        number: Of the first signal; 0: there was none.

    Example:
        >>> stop = Stop()
        >>> stop.wait(0.0)
        False
        >>> stop.set()
        >>> stop.wait(60.0)
        True
    """

    def __init__(self) -> None:
        self._is_set, self.number = False, 0
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        weakref.finalize(self, os.close, self._wake)

    def set(self) -> None:
        """Set it."""
        self._is_set = True
        os.eventfd_write(self._wake, 1)

    def is_set(self) -> bool:
        """Say whether it is set."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Wait until it is set, for at most so many seconds; say whether it is."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        while not self._is_set and (left := deadline - time.monotonic()) > 0:
            poll.poll(min(left, LONGEST_S) * 1000)
        return self._is_set


def end_in_order() -> None:
    """Let SIGTERM end a command as an exception does: what it has begun is ended and removed, and the exit code is 143.

    Commands with a flag of their own take its place. The first signal counts: `timeout`, for example, sends it to the
    process and again to its group.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)
    sys.exit(SIGNALLED + number)


def stop_event() -> Stop:
    """Return a flag that SIGINT and SIGTERM set."""
    stopped = Stop()

    def take(number: int, _frame: object) -> None:
        stopped.number = stopped.number or number
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, take)
    return stopped
