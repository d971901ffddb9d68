"""The application's arguments, for code that does not get them as a parameter."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_arguments: ContextVar[tuple[str, ...]] = ContextVar("_arguments", default=())


@contextmanager
def given(args: Sequence[str]) -> Iterator[None]:
    """Set the arguments that `current` returns while this context is open, i.e. during the application's setup."""
    token = _arguments.set(tuple(args))
    try:
        yield
    finally:
        _arguments.reset(token)


def current() -> tuple[str, ...]:
    """Return the arguments of the setup that runs now; empty if no setup runs."""
    return _arguments.get()
