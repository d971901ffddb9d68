"""Deferred commits of Goka: user code confirms a message later, and until then the worker's call does not end."""

import threading
from collections.abc import Callable

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError

_lock = threading.Lock()
_pending: list["_DeferredCommit"] = []


class _DeferredCommit:
    """A message that user code will confirm or refuse later."""

    def __init__(self, what: str) -> None:
        self.what, self.error, self.is_over = what, "", threading.Event()

    def done(self, error: object = None) -> None:
        """Confirm the message, or refuse it if there is an error. Only the first call has an effect."""
        with _lock:
            if not self.is_over.is_set():
                self.error = "" if error is None else str(error) or type(error).__name__
                self.is_over.set()


def begin(what: str) -> Callable[..., None]:
    """Defer the commit of a message: the worker's call ends only after the returned function was called.

    User code calls this function without an argument to confirm the message, or with an error to refuse it.

    Args:
        what: Beginning of the error's text (C528) if it is refused, e.g. "could not commit message with key 'Ann'".
    """
    deferred = _DeferredCommit(what)
    with _lock:
        _pending.append(deferred)
    return deferred.done


def count() -> int:
    """Return the number of deferred commits, for `forget` if the next message fails."""
    return len(_pending)


def forget(first: int) -> None:
    """Forget the deferred commits of a failed message, because user code may never confirm them.

    Args:
        first: Result of `count` before this message.
    """
    with _lock:
        del _pending[first:]


def settle() -> None:
    """Wait until user code has confirmed or refused all deferred commits. A worker calls this before a call ends.

    Raises:
        DiagnosticError: C528 if user code refused one of them.
    """
    if not _pending:
        return
    with _lock:
        waiting, _pending[:] = list(_pending), []
    for each in waiting:
        each.is_over.wait()
    findings = [Diagnostic.of("C528", what=each.what, error=each.error) for each in waiting if each.error]
    if findings:
        raise DiagnosticError(findings[0])
