"""Checks that user functions take the arguments of their calls, and return results and not promises."""

import functools
import inspect
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.diagnostic.error import WallarooParameterError
from wallaroo.diagnostic.location import called_from, declared_at

_CACHED = type(functools.cache(lambda: None))
_DEFERRED = (
    (inspect.iscoroutinefunction, "`async def`", "write `def`, and run what is awaited: `return asyncio.run(...)`"),
    (inspect.isasyncgenfunction, "an async generator", "write `def`, and run what is awaited with asyncio.run(...)"),
    (inspect.isgeneratorfunction, "a generator function", "return the result in place of `yield`"),
)
_OTHER_TYPES = {"complex", "list", "dict", "set", "None", "NoneType"}


def call_finding(
    kind: str, name: str, function: Callable[..., Any], parameters: tuple[str, ...], *, may_yield: bool = False
) -> Diagnostic | None:
    """Return T202 if a function does not take its arguments, T207 if it is async or a generator, else None.

    Args:
        kind: Kind of the part, for the text of the finding.
        name: Name of the part.
        function: Function or other object that will be called.
        parameters: Names of the arguments of the call.
        may_yield: Whether `function` may be a generator function.
    """
    target = target_of(function)
    for is_deferred, form, fix in _DEFERRED[:2] if may_yield else _DEFERRED:
        if is_deferred(target):
            if form == "a generator function" and kind in ("computation", "state_computation"):
                fix = f"return the message in place of `yield`, or declare it as {kind}_multi"
            return Diagnostic.of(
                "T207", **declared_at(target).shown()._asdict(), method=f'{kind} "{name}"', parameter="function",
                actual=f"{shown_name(target)}, {form}", expected="a function that returns its result", fix=fix,
            )  # fmt: skip
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None  # written in C, without a signature: only a call shows faults
    taken = len(signature.parameters)
    named = ", ".join(each.name for each in signature.parameters.values() if each.kind is each.KEYWORD_ONLY)
    try:
        signature.bind(*parameters)
    except TypeError:
        finding = Diagnostic.of(
            "T202",
            **declared_at(function).shown()._asdict(),
            kind=kind,
            name=name,
            function=shown_name(function),
            actual=(f"{taken} parameter" if taken == 1 else f"{taken} parameters")
            + (f", but {named} by name alone" if named else ""),
            expected=f"{len(parameters)}, by their places" if named else len(parameters),
            signature=_definition(function, parameters),
        )
        is_callable = isinstance(function, type) and inspect.isfunction(getattr(function, "__call__", None))  # noqa: B004
        return replace(finding, fix=f"pass an object of it: {shown_name(function)}()") if is_callable else finding
    return None


def target_of(function: Any) -> Any:
    """Return the function that finally runs in a call: unwrap partials, caches, methods and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, _CACHED):
            function = function.__wrapped__
        elif inspect.ismethod(function) or isinstance(function, (staticmethod, classmethod)):
            function = function.__func__
        elif hasattr(type(function), "is_direct"):  # a decorated function
            function = function.function
        elif (
            inspect.isroutine(function)
            or isinstance(function, type)
            or not inspect.isfunction(call := type(function).__call__)
        ):
            return function
        else:
            return call


def takes(function: object, parameter: str) -> bool:
    """Return whether a function has a parameter of this name, e.g. `timers`, which only such functions get.

    Example:
        >>> takes(lambda key, accumulator, bounds=None: key, "bounds"), takes(lambda key, accumulator: key, "bounds")
        (True, False)
    """
    try:
        return callable(function) and parameter in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def partition_finding(state: str, function: Callable[..., Any], owner: object) -> Diagnostic | None:
    """Return T208 if the annotated result type of a partition function cannot be a key, else None."""
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


def check_lengths(method: str, header_length: int, length_fmt: str) -> None:
    """Check `length_fmt`, the format of `struct` with which a decoder reads the payload's length from the header.

    Raises:
        WallarooParameterError: T207 if `length_fmt` has another size, or does not begin with an integer.
    """
    try:
        size = struct.calcsize(length_fmt)
        is_length = list(map(type, struct.unpack(length_fmt, bytes(size))))[:1] == [int]
    except (struct.error, TypeError):
        size, is_length = -1, False
    if size != header_length or not is_length:
        raise WallarooParameterError.of(
            called_from(), method=method, parameter="length_fmt", actual=shown(length_fmt),
            expected=f"a struct format that begins with an integer, of header_length = {shown(header_length)} bytes",
            fix='for a length of 4 bytes, big-endian, write decoder(header_length=4, length_fmt=">I")',
        )  # fmt: skip
