"""The messages that a call of a worker waits for before it counts: user code has deferred their commit."""

import threading
from collections.abc import Callable

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError

_lock = threading.Lock()
_pending: list["_Deferred"] = []


class _Deferred:
    def __init__(self, what: str) -> None:
        self.what, self.error, self.is_over = what, "", threading.Event()

    def done(self, error: object = None) -> None:
        """Let the message count, or with an error refuse it; only the first call counts."""
        with _lock:
            if not self.is_over.is_set():
                self.error = "" if error is None else str(error) or type(error).__name__
                self.is_over.set()


def begin(what: str) -> Callable[..., None]:
    """Return a function without whose call the worker's call does not end.

    Args:
        what: What cannot happen if it gets an error, e.g. "could not commit message with key 'Ann'".
    """
    deferred = _Deferred(what)
    with _lock:
        _pending.append(deferred)
    return deferred.done


def count() -> int:
    """Return the number of functions that `begin` has returned since the last `settle`."""
    return len(_pending)


def forget(first: int) -> None:
    """Wait for none but the first ones: the messages of the others have failed, and nobody may call their functions.

    Args:
        first: What `count` returned before the message that failed.
    """
    with _lock:
        del _pending[first:]


def settle() -> None:
    """Wait until all functions of `begin` have been called, and forget them.

    Raises:
        DiagnosticError: C528, one of them was called with an error.
    """
    if not _pending:
        return
    with _lock:
        waiting, _pending[:] = list(_pending), []
    for each in waiting:
        each.is_over.wait()
    findings = [Diagnostic.of("C528", what=each.what, error=each.error) for each in waiting if each.error]
    if findings:
        raise DiagnosticError(findings[:1])
