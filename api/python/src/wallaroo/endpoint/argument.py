"""The application's arguments, for readers that are not passed them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

_arguments: ContextVar[tuple[str, ...]] = ContextVar("_arguments", default=())


@contextmanager
def given(args: Sequence[str]) -> Iterator[None]:
    """Let the setup that runs within have these arguments."""
    token = _arguments.set(tuple(args))
    try:
        yield
    finally:
        _arguments.reset(token)


def current() -> tuple[str, ...]:
    """Return the arguments of the setup that runs; empty outside of one."""
    return _arguments.get()
