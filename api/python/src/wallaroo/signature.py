"""Checks that user functions can be called with what they will get."""

import inspect
from collections.abc import Callable
from typing import Any

from wallaroo.diagnostic import Diagnostic
from wallaroo.location import declared_at

_OTHER_TYPES = {"complex", "list", "dict", "set", "None", "NoneType"}


def arity_finding(kind: str, name: str, function: Callable[..., Any], parameters: tuple[str, ...]) -> Diagnostic | None:
    """Return T202 when `function` cannot be called with one argument for each of `parameters`."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None  # written in C, without a signature: only a call can tell
    taken = len(signature.parameters)
    try:
        signature.bind(*parameters)
    except TypeError:
        return Diagnostic.of(
            "T202",
            **declared_at(function).shown()._asdict(),
            kind=kind,
            name=name,
            function=shown_name(function),
            actual=f"{taken} parameter" if taken == 1 else f"{taken} parameters",
            expected=len(parameters),
            signature=_definition(function, parameters),
        )
    return None


def takes_bounds(output: object) -> bool:
    """Return whether the `output` of an aggregation has the parameter `bounds`.

    Example:
        >>> takes_bounds(lambda key, accumulator, bounds=None: key), takes_bounds(lambda key, accumulator: key)
        (True, False)
    """
    try:
        return callable(output) and "bounds" in inspect.signature(output).parameters
    except (TypeError, ValueError):
        return False


def partition_finding(state: str, function: Callable[..., Any], owner: object) -> Diagnostic | None:
    """Return T208 when a partition function's annotation says that it returns what cannot be a key."""
    target = inspect.unwrap(function)
    annotation = getattr(target, "__annotations__", {}).get("return", "")
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", repr(annotation))
    if name.split("[")[0] not in _OTHER_TYPES:
        return None
    return Diagnostic.of(
        "T208", **declared_at(target).shown()._asdict(), state=state, type=shown_name(owner), actual=name,
        expected="str, bytes or int",
    )  # fmt: skip


def shown_name(component: object) -> str:
    """Return the name by which a user knows a function, class or object."""
    name = getattr(component, "__qualname__", None) or type(component).__qualname__
    return str(name).replace("<locals>.", "").replace("application_setup.", "")


def _definition(function: Callable[..., Any], parameters: tuple[str, ...]) -> str:
    name = "__init__" if isinstance(function, type) else getattr(function, "__name__", type(function).__name__)
    if isinstance(function, type):
        parameters = ("self", *parameters)
    bound = ("self", *parameters) if inspect.ismethod(function) else parameters
    return f"`def {name}({', '.join(bound)})`"
