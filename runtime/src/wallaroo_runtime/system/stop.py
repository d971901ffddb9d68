"""Lets a process know that a signal has asked it to end."""

import os
import select
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
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


class Raised:
    """What a signal handler raises: again only if it has been lost.

    Python drops what is raised in a callback, such as `__del__` or those of a fork. While one is on its way, another
    would break off what ends things.

    Args:
        kind: A class of Python: weak references to those of C cannot be made.
        values: Of the exception.

    Example:
        >>> raised = Raised(Ended, 143)
        >>> try:
        ...     raised.throw()
        ... except Ended:
        ...     raised.is_on_its_way()
        True
        >>> raised.is_on_its_way()
        False
    """

    def __init__(self, kind: type[BaseException], *values: object) -> None:
        self._kind, self._values = kind, values
        self._last: weakref.ref[BaseException] | None = None

    def is_on_its_way(self) -> bool:
        """Say whether the last one is still referred to, as it is until it has been handled or dropped."""
        return self._last is not None and self._last() is not None

    @property
    def was_thrown(self) -> bool:
        """Whether there has been one."""
        return self._last is not None

    def throw(self) -> NoReturn:
        """Raise it."""
        made = self._kind(*self._values)
        self._last = weakref.ref(made)
        try:
            raise made
        finally:
            del made  # its traceback has this frame: it would refer to itself


class Ended(SystemExit):
    """SIGTERM has ended a command."""


def end_in_order() -> None:
    """Let SIGTERM end a command as an exception does: what it has begun is ended and removed, and the exit code is 143.

    Commands with a flag of their own take its place. The first signal counts: `timeout`, for example, sends it to the
    process and again to its group.
    """
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _end)


_ended = Raised(Ended, SIGNALLED + signal.SIGTERM)


def _end(_number: int, _frame: object) -> None:
    if not _ended.is_on_its_way():
        _ended.throw()


def end_for_good() -> None:
    """Ignore SIGTERM from now on if it has ended the command: the exit code is there."""
    if _ended.was_thrown and signal.getsignal(signal.SIGTERM) is _end:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


@contextmanager
def signals_kill() -> Iterator[None]:
    """Let signals kill a command that imports what it needs, without a word: callbacks there drop what they raise.

    Signals of a process that has handlers of its own stay its own.
    """
    own = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _end}
    is_main = threading.current_thread() is threading.main_thread()
    before = {number: handler for number, handler in own.items() if is_main and signal.getsignal(number) is handler}
    for number in before:
        signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_event() -> Stop:
    """Return a flag that SIGINT and SIGTERM set."""
    stopped = Stop()

    def take(number: int, _frame: object) -> None:
        stopped.number = stopped.number or number
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, take)
    return stopped
