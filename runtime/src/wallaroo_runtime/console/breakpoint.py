"""Handles `breakpoint()` in commands that run user code in their own process, e.g. `wallaroo test`."""

import os
import signal
import sys
from bdb import BdbQuit
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pdb import Pdb
from types import FrameType

from wallaroo.worker.host.debugger import BREAKPOINT, refuse_breakpoints
from wallaroo_runtime.run.signals import kept_signals

BROKEN_OFF = "broken off at a breakpoint"


class Debugging:
    """Handles calls of `breakpoint()`: opens the debugger, unless the user has already left it.

    Args:
        is_stopped: Returns whether a signal has asked the command to end. Then breakpoints have no effect.
        alone: Returns a context in which only the debugger reads standard input.

    Attributes:
        is_over: Whether the user has left the debugger, by `q` or a signal.
    """

    def __init__(self, is_stopped: Callable[[], bool], alone: Callable[[], AbstractContextManager[object]]) -> None:
        self.is_over, self.alone, self._is_stopped = False, alone, is_stopped

    def __call__(self, *_: object, **__: object) -> None:
        """Open the debugger in the code that has called `breakpoint()`.

        Raises:
            BdbQuit: The user has left the debugger.
        """
        if self.is_left():
            raise BdbQuit
        _Debugger(self).set_trace(sys._getframe(1))

    def is_left(self) -> bool:
        """Say whether the user has left the debugger, or a signal has asked the command to end."""
        self.is_over = self.is_over or self._is_stopped()
        return self.is_over

    def check(self) -> None:
        """End the command if the user has left the debugger. Else the worker would count this as a message that failed.

        Raises:
            KeyboardInterrupt: The debugger was left.
        """
        if self.is_over:
            print(BROKEN_OFF, file=sys.stderr)
            raise KeyboardInterrupt


class _Debugger(Pdb):
    """Python's debugger. But `q` and Ctrl-C at its prompt end the `wallaroo` command, not only the user's function."""

    def __init__(self, debugging: Debugging) -> None:
        super().__init__(nosigint=True)  # after the debugger's command `c`, our command handles Ctrl-C
        self._debugging = debugging

    def _cmdloop(self) -> None:
        if self._debugging.is_left():
            self.set_quit()
            return
        try:
            with self._debugging.alone(), _interrupting():
                self.cmdloop()
        except KeyboardInterrupt:
            self.message("")
            self.set_quit()

    def postcmd(self, stop: bool, line: str) -> bool:
        """After a command of the debugger, show no further prompt if a signal came meanwhile."""
        if not self._debugging.is_over and self._debugging.is_left():
            self.set_quit()
        return stop or self._debugging.is_over

    def set_quit(self) -> None:
        """Leave the debugger for good: later breakpoints have no effect."""
        self._debugging.is_over = True
        super().set_quit()


@contextmanager
def _interrupting() -> Iterator[None]:
    """While the debugger waits for input, let the signals that end the command also interrupt the debugger."""
    with kept_signals() as before:

        def interrupt(number: int, frame: FrameType | None) -> None:
            before[number](number, frame)
            raise KeyboardInterrupt

        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, interrupt)
        yield


@contextmanager
def breakpoints(
    is_stopped: Callable[[], bool] = lambda: False,
    alone: Callable[[], AbstractContextManager[object]] = nullcontext,
    *,
    has_terminal: bool = True,
) -> Iterator[Debugging]:
    """Let `breakpoint()` open the debugger in the block if there is a terminal. Otherwise it prints advice.

    Args:
        is_stopped: Returns whether a signal has asked the command to end.
        alone: Returns a context in which only the debugger reads standard input, while it shows a prompt.
        has_terminal: Whether the debugger may use the terminal, if there is one.
    """
    before, debugging = sys.breakpointhook, Debugging(is_stopped, alone)
    if not has_terminal or sys.stdin is None or not sys.stdin.isatty():
        refuse_breakpoints()
    elif BREAKPOINT not in os.environ:
        sys.breakpointhook = debugging
    try:
        yield debugging
    finally:
        sys.breakpointhook = before
