"""Finds the part of a message or state that cannot be pickled."""

import pickle
from collections.abc import Iterator
from itertools import islice
from typing import Any

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.location import one_line

REMEDY = (
    "no lock, file, generator or lambda: leave such a field out with __getstate__, or define serialize and "
    "deserialize next to application_setup"
)
MAX_DEPTH = 8
MAX_PARTS = 1000  # how many parts are tried at each depth
_REFUSALS = (TypeError, AttributeError, pickle.PicklingError)


def reason_of(value: Any, error: BaseException) -> str:
    """Return the reason why a value cannot be serialized, on one line, with the path of the part that pickle refuses.

    Example:
        >>> from threading import Lock
        >>> value = {"guards": [1, Lock()]}
        >>> try:
        ...     pickle.dumps(value)
        ... except TypeError as error:
        ...     reason_of(value, error)
        "TypeError: cannot pickle '_thread.lock' object; at dict['guards'][1]"
    """
    reason = one_line(error)
    path = _path(value, reason) if isinstance(error, _REFUSALS) else ""
    return f"{reason}; at {type(value).__name__}{path}" if path else reason


def _path(value: Any, reason: str) -> str:
    path = ""
    for _ in range(MAX_DEPTH):
        refused = next((each for each in islice(_parts(value), MAX_PARTS) if is_refused(each[1], reason)), None)
        if refused is None:
            break
        step, value = refused
        path += step
    return path


def is_refused(value: Any, reason: str) -> bool:
    """Return whether pickle refuses a value with the error text `reason`."""
    try:
        pickle.dumps(value, 5)
    except BaseException as error:
        return one_line(error) == reason
    return False


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of an object that pickle writes, each with its path in the object."""
    if isinstance(value, (list, tuple)):
        yield from ((f"[{number}]", part) for number, part in enumerate(value))
    if isinstance(value, dict):
        yield from ((f"[{shown(key)}]", part) for key, part in value.items())
    try:
        reduced = value.__reduce_ex__(5)
    except BaseException:
        return  # no parts: pickle refuses the object itself
    if not isinstance(reduced, tuple):
        return
    state, items = (*reduced[2:4], None, None)[:2]
    if isinstance(state, list):  # the state of a frozen dataclass with slots is a list
        state = dict(zip(getattr(value, "__dataclass_fields__", ()), state, strict=False))
    for fields in state if isinstance(state, tuple) else (state,):
        if isinstance(fields, dict):
            yield from ((f".{name}", part) for name, part in fields.items())
    if items is not None and not isinstance(value, list):
        yield from ((f"[{number}]", part) for number, part in enumerate(items))
