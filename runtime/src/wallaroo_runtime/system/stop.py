"""Handles the signals that ask a process to end."""

import contextlib
import os
import select
import signal
import stat
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)  # signals that ask a process to end
SIGNALLED = 128  # added to a signal's number, this is the exit code of a process that the signal has ended
LOOK_S = 0.2  # the longest single wait: a signal that the kernel gives to another thread does not end it


class Stop:
    """A flag that signal handlers set.

    An event of `threading` could block the process forever: a handler runs in the main thread, which may hold the
    event's lock at that moment. An earlier handler that is interrupted may hold it, too. Setting a flag takes no lock,
    and neither does writing to a descriptor, which wakes a waiting thread.

    Attributes:
        number: Number of the first signal; 0 if there was none.

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
        """Set the flag."""
        self._is_set = True
        os.eventfd_write(self._wake, 1)

    def is_set(self) -> bool:
        """Return whether the flag is set."""
        return self._is_set

    def wait(self, seconds: float) -> bool:
        """Wait until the flag is set, for at most `seconds`. Return whether it is set."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        while not self._is_set and (left := deadline - time.monotonic()) > 0:
            poll.poll(min(left, LOOK_S) * 1000)
        return self._is_set


class Raised:
    """Raises an exception in a signal handler, and detects whether Python has dropped it, so that it must be repeated.

    Python drops an exception that is raised in a callback, such as `__del__` or a callback of a fork. But while an
    exception is on its way, another one would interrupt the cleanup.

    Args:
        kind: Exception class that is written in Python, because classes in C have no weak references.

    Example:
        >>> raised = Raised(Ended)
        >>> try:
        ...     raised.throw(143)
        ... except Ended:
        ...     raised.is_on_its_way()
        True
        >>> raised.is_on_its_way()
        False
    """

    def __init__(self, kind: type[BaseException]) -> None:
        self._kind = kind
        self._last: weakref.ref[BaseException] | None = None

    def is_on_its_way(self) -> bool:
        """Return whether the last exception is neither handled nor dropped yet."""
        return self._last is not None and self._last() is not None

    @property
    def was_thrown(self) -> bool:
        """True if an exception was thrown."""
        return self._last is not None

    def throw(self, *values: object) -> NoReturn:
        """Raise the exception with these values."""
        error = self._kind(*values)
        self._last = weakref.ref(error)
        try:
            raise error
        finally:
            del error  # the error's traceback refers to this frame, so avoid a cycle


class Ended(SystemExit):
    """The exception by which SIGTERM or SIGHUP ends a command."""


def end_in_order() -> None:
    """Let SIGTERM and SIGHUP raise `Ended`, so that a command cleans up. The exit code is 143 or 129.

    Commands with a flag of their own replace these handlers. Only the first signal counts: `timeout`, for example,
    sends it to the process and again to its group.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


_ended = Raised(Ended)


def _end(number: int, _frame: object) -> None:
    if not _ended.is_on_its_way():
        leave_terminal(number)
        _ended.throw(SIGNALLED + number)


def end_for_good() -> None:
    """Ignore further signals if a signal has ended the command, since the exit code is then decided."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if _ended.was_thrown and signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_IGN)


def handle_ending(handler: Callable[[int, FrameType | None], object]) -> dict[int, Any]:
    """Install a handler for the signals that ask a process to end. An ignored SIGHUP stays ignored (`nohup`).

    Returns:
        The former handlers, by signal.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        leave_terminal(number)
        handler(number, frame)

    taken = [number for number in SIGNALS if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN]
    return {number: signal.signal(number, handle) for number in taken}


def leave_terminal(number: int) -> None:
    """Drop further output if the signal is SIGHUP, since the terminal is gone and writes would fail."""
    if number != signal.SIGHUP:
        return
    for descriptor in range(3):
        with contextlib.suppress(OSError):
            if stat.S_ISCHR(os.fstat(descriptor).st_mode) and not os.isatty(descriptor):
                nowhere = os.open(os.devnull, os.O_RDWR)
                os.dup2(nowhere, descriptor)
                os.close(nowhere)


@contextmanager
def signals_kill() -> Iterator[None]:
    """Let signals kill a command during a block with imports, where Python drops exceptions of signal handlers.

    If the process has other handlers for these signals, they stay.
    """
    own = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _end, signal.SIGHUP: _end}
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
    """Return a flag that SIGINT, SIGTERM and SIGHUP set."""
    stopped = Stop()

    def take(number: int, _frame: object) -> None:
        stopped.number = stopped.number or number
        stopped.set()

    handle_ending(take)
    return stopped
