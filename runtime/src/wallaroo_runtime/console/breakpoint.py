"""The behaviour of `breakpoint()` in a command that runs user code itself: `wallaroo test` and the engine memory."""

import os
import signal
import sys
import threading
from bdb import BdbQuit
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pdb import Pdb
from types import FrameType

from wallaroo.worker.host.debugger import BREAKPOINT, refuse_breakpoints
from wallaroo_runtime.run.signals import kept_signals
from wallaroo_runtime.system.stop import SIGNALS

BROKEN_OFF = "broken off at a breakpoint"


def never() -> bool:
    """Say that nobody has asked for the end."""
    return False


class Debugging:
    """Stops at each `breakpoint()`, until the user has left the debugger.

    Args:
        is_stopped: Says whether a signal has asked for the end; then nothing stops.
        alone: Gives the debugger the terminal.

    Attributes:
        is_over: Whether the user has left it, by `q` or a signal.
    """

    def __init__(self, is_stopped: Callable[[], bool], alone: Callable[[], AbstractContextManager[object]]) -> None:
        self.is_over, self.alone, self._is_stopped = False, alone, is_stopped

    def __call__(self, *_: object, **__: object) -> None:
        """Stop in the caller.

        Raises:
            BdbQuit: The user has left the debugger.
        """
        if self.is_left():
            raise BdbQuit
        _Debugger(self).set_trace(sys._getframe(1))

    def is_left(self) -> bool:
        """Say whether it is over, as it is once somebody has asked for the end."""
        self.is_over = self.is_over or self._is_stopped()
        return self.is_over

    def leave(self) -> None:
        """Stop nowhere from now on."""
        self.is_over = True

    def check(self) -> None:
        """End the command if it is over: a worker takes the debugger's exit for an error of the message.

        Raises:
            KeyboardInterrupt: It is.
        """
        if self.is_over:
            print(BROKEN_OFF, file=sys.stderr)
            raise KeyboardInterrupt


class _Debugger(Pdb):
    """Python's debugger; `q` and Ctrl-C at its prompt end more than the function that it is in."""

    def __init__(self, debugging: Debugging) -> None:
        super().__init__(nosigint=True)  # after `c` Ctrl-C is the command's
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
        """Ask for nothing more if a signal came while a command ran."""
        if not self._debugging.is_over and self._debugging.is_left():
            self.set_quit()
        return stop or self._debugging.is_over

    def set_quit(self) -> None:
        """Take the user's leave."""
        self._debugging.leave()
        super().set_quit()


@contextmanager
def _interrupting() -> Iterator[None]:
    """Let signals of the command interrupt a wait for the terminal, too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def interrupt(number: int, frame: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        assert callable(handler)
        handler(number, frame)
        raise KeyboardInterrupt

    with kept_signals():
        for number, handler in before.items():
            if callable(handler):
                signal.signal(number, interrupt)
        yield


@contextmanager
def breakpoints(
    is_stopped: Callable[[], bool] = never,
    alone: Callable[[], AbstractContextManager[object]] = nullcontext,
    *,
    has_terminal: bool = True,
) -> Iterator[Debugging]:
    """Let `breakpoint()` stop at a terminal, and otherwise print advice.

    Args:
        is_stopped: Says whether a signal has asked for the end.
        alone: Gives the debugger the terminal while it has a prompt.
        has_terminal: Whether it may have the terminal, if there is one.
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
