"""Lets `breakpoint()` in user code fail with advice in a worker without a terminal."""

import os
import sys

DEBUG = "WALLAROO_DEBUG"  # set if the worker has a terminal, e.g. by a user who starts it for `run --attach`
BREAKPOINT = "PYTHONBREAKPOINT"  # Python's variable by which a user chooses a debugger


class NoTerminalError(RuntimeError):
    """`breakpoint()` was called in a worker of an ordinary run."""


def has_terminal() -> bool:
    """Return whether this worker has a terminal for a debugger."""
    return os.environ.get(DEBUG) == "1"


def refuse_breakpoints() -> None:
    """Make `breakpoint()` raise an error with advice, unless there is a terminal, or the user has named a debugger."""
    if not has_terminal() and BREAKPOINT not in os.environ:
        sys.breakpointhook = _refuse


def _refuse(*_: object, **__: object) -> None:
    msg = "breakpoint() has no terminal in this run: use `wallaroo run --debug`, or test it with wallaroo.testing"
    raise NoTerminalError(msg)
