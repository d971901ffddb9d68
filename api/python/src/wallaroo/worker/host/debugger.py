"""The behaviour of `breakpoint()` in a worker."""

import os
import sys

DEBUG = "WALLAROO_DEBUG"  # set where the worker has a terminal: who starts it for `wallaroo run --attach` does that
BREAKPOINT = "PYTHONBREAKPOINT"  # Python's own: a debugger of the user's


class NoTerminalError(RuntimeError):
    """`breakpoint()` was called in a worker of an ordinary run."""


def has_terminal() -> bool:
    """Return whether this worker is debugged."""
    return os.environ.get(DEBUG) == "1"


def refuse_breakpoints() -> None:
    """Make `breakpoint()` print advice, unless there is a terminal, or the user has named a debugger."""
    if not has_terminal() and BREAKPOINT not in os.environ:
        sys.breakpointhook = _refuse


def _refuse(*_: object, **__: object) -> None:
    msg = "breakpoint() has no terminal in this run: use `wallaroo run --debug`, or test it with wallaroo.testing"
    raise NoTerminalError(msg)
