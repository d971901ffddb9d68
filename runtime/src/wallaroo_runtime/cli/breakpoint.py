"""What `breakpoint()` does in `wallaroo test`, which runs user code in this process."""

import os
import sys
from bdb import BdbQuit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pdb import Pdb

from wallaroo.worker.debugger import BREAKPOINT, refuse_breakpoints


class _Debugger(Pdb):
    """Python's debugger; `q` and Ctrl-C at its prompt end more than the function that it is in."""

    def __init__(self, quit_all: Callable[[], None]) -> None:
        super().__init__()
        self._quit_all = quit_all

    def _cmdloop(self) -> None:
        try:
            self.cmdloop()
        except KeyboardInterrupt:
            self.message("")
            self.set_quit()

    def set_quit(self) -> None:
        """Take the user's leave."""
        self._quit_all()
        super().set_quit()


class _Hook:
    """Stops at each `breakpoint()`, until the user has left the debugger."""

    def __init__(self) -> None:
        self.is_over = False

    def _end(self) -> None:
        self.is_over = True

    def __call__(self, *_: object, **__: object) -> None:
        if self.is_over:
            raise BdbQuit
        _Debugger(self._end).set_trace(sys._getframe(1))


@contextmanager
def breakpoints() -> Iterator[Callable[[], None]]:
    """Let `breakpoint()` stop at a terminal, and otherwise say what to do; gives what is to be called after each case.

    A worker takes what ends the debugger for an error of the message: only then does the command end.

    Raises:
        KeyboardInterrupt: From what it gives: the user has left the debugger.
    """
    before, hook = sys.breakpointhook, _Hook()
    if not sys.stdin.isatty():
        refuse_breakpoints()
    elif BREAKPOINT not in os.environ:
        sys.breakpointhook = hook

    def check() -> None:
        if hook.is_over:
            print("broken off at a breakpoint", file=sys.stderr)
            raise KeyboardInterrupt

    try:
        yield check
    finally:
        sys.breakpointhook = before
