"""Messages whose commit user code has deferred: a worker's call ends only after user code has confirmed them."""

import threading
from collections.abc import Callable

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError

_lock = threading.Lock()
_pending: list["_Deferred"] = []


class _Deferred:
    def __init__(self, what: str) -> None:
        self.what, self.error, self.is_over = what, "", threading.Event()

    def done(self, error: object = None) -> None:
        """Confirm the message, or with an error refuse it. Only the first call has an effect."""
        with _lock:
            if not self.is_over.is_set():
                self.error = "" if error is None else str(error) or type(error).__name__
                self.is_over.set()


def begin(what: str) -> Callable[..., None]:
    """Defer the commit of a message: the worker's call does not end before the returned function is called.

    Args:
        what: Text of the error if the function is called with an error, e.g. "could not commit message with key 'Ann'".
    """
    deferred = _Deferred(what)
    with _lock:
        _pending.append(deferred)
    return deferred.done


def count() -> int:
    """Return the number of functions that `begin` has returned since the last `settle`."""
    return len(_pending)


def forget(first: int) -> None:
    """Forget the deferrals after the first `first`: their message has failed, so their functions may never be called.

    Args:
        first: Result of `count` before the message that failed.
    """
    with _lock:
        del _pending[first:]


def settle() -> None:
    """Wait until user code has called all functions that `begin` returned, and forget these functions.

    Raises:
        DiagnosticError: C528 if one of them was called with an error.
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
