"""Finds states that cannot change, and functions that assign a new state to their parameter, which has no effect."""

import dataclasses
import dis
import enum
import inspect
import numbers
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType
from typing import Any

from wallaroo.check.change import variables
from wallaroo.component.signature import target_of
from wallaroo.diagnostic.diagnostic import shown
from wallaroo.message.output import is_promise

_VALUES = (numbers.Number, str, bytes, range, type(None))
_MODULES_OF_VALUES = {"datetime", "decimal", "fractions", "ipaddress", "pathlib", "uuid", "zoneinfo"}
_IN_PLACE = ("__iadd__", "__ior__", "__iand__", "__isub__", "__imul__")


class NotInPlaceError(Exception):
    """User code made a new state or accumulator instead of changing its argument. Code: C522."""

    def __init__(self, did: str, value: Any) -> None:
        if inspect.iscoroutine(value):
            value.close()  # else Python would warn that nobody awaits it
        super().__init__(f"{did}, {shown(value)}")


def is_fixed(value: Any) -> bool:
    """Return whether a value and all its parts are immutable.

    Example:
        >>> is_fixed(0), is_fixed(("a", 1)), is_fixed([]), is_fixed(("a", []))
        (True, True, False, False)
    """
    if isinstance(value, enum.Enum):
        return True
    if dataclasses.is_dataclass(value):
        is_frozen: bool = type(value).__dataclass_params__.frozen  # type: ignore[union-attr]
        return is_frozen and all(is_fixed(getattr(value, each.name)) for each in dataclasses.fields(value))
    if getattr(value, "__dict__", None):
        return False
    if isinstance(value, (tuple, frozenset)):
        return all(map(is_fixed, value))
    return isinstance(value, _VALUES) or type(value) is object or type(value).__module__ in _MODULES_OF_VALUES


def guarded(run: Callable[..., Any], position: int, state: Any) -> Callable[..., Any]:
    """Return a function that fails if the user's function assigns a new state to its parameter.

    A function without such assignments is returned unchanged.

    Args:
        run: The user's function, or a wrapper of it.
        position: Position of the state among its parameters.
        state: An example of a state.
    """
    watched = {code: name for code, name in _wrapped(run, position) if any(_bindings(code, name, state))}
    if not watched:
        return run
    own = getattr(_innermost(run), "__code__", None)

    def run_guarded(*arguments: Any) -> Any:
        state = arguments[position]
        frames: list[Any] = []
        lost: list[tuple[str, Any, bool, Any]] = []

        def note(frame: Any, event: str, returned: Any) -> None:
            if frame.f_code not in watched:
                return
            name = watched[frame.f_code]
            if event == "call" and frame.f_locals.get(name) is state:
                frames.append(frame)
            elif event == "return" and frame in frames:
                bound = frame.f_locals.get(name, state)
                is_own = frame.f_code is own
                # The caller of a wrapped function may still store the returned value in the state.
                if bound is not state and _is_lost(bound, state) and (is_own or not _has(returned, bound)):
                    lost.append((name, bound, is_own, returned))

        # Only the frame shows the last value of a name. Few functions need this slow check.
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            result = run(*arguments)
        finally:
            sys.setprofile(before)
        for name, bound, is_own, returned in lost:
            if is_own or any(_has(result, part) for part in (returned, *_parts(returned))):
                did = f"assigned a new state to its parameter {name}"
                raise NotInPlaceError(did, bound)
        return result

    return run_guarded


def check_returned(returned: Any, accumulator: Any) -> None:
    """Refuse a new accumulator as the result of an aggregation's `update`, since results of `update` are ignored.

    Raises:
        NotInPlaceError: The value is a new accumulator, or only a promise (e.g. a coroutine).
    """
    did = "update returned what has not run" if is_promise(returned) else ""
    if returned is not accumulator and (type(returned) is type(accumulator) or is_fixed(accumulator)):
        did = did or "update returned a new accumulator"
    if did:
        raise NotInPlaceError(did, returned)


def is_state(persist: Any, state: Any) -> bool:
    """Return whether a state computation has returned a state where `persist` (True or False) is expected."""
    return persist is state or type(persist) is type(state)


def is_new_state(result: tuple[Any, ...], state: Any) -> bool:
    """Return whether a function returned a pair of a message and a new state, which would be lost.

    A copy that is equal to the state may be a message.
    """
    if len(result) != 2 or type(result[1]) is not type(state) or result[1] is state:
        return False
    if type(state).__module__ in sys.stdlib_module_names:
        return False
    try:
        return bool(result[1] != state) and pickle.dumps(result[1]) != pickle.dumps(state)
    except Exception:
        return False


def state_returned(state: Any, where: str = "in the place of persist, True or False") -> NotInPlaceError:
    """Return the error for a function that has returned a state in a wrong place."""
    return NotInPlaceError(f"returned a {'state' if 'place' in where else 'new state'} {where}", state)


def _innermost(function: Any) -> Any:
    """Return the user's function inside of decorated functions, partials and wrappers of `functools`."""
    while (inner := inspect.unwrap(target_of(function))) is not function:
        function = inner
    return function


def _wrapped(run: Callable[..., Any], position: int) -> Iterator[tuple[CodeType, str]]:
    """Yield code of the user's function, and of all functions that it wraps, each with its parameter for the state.

    A decorator has the wrapped function in a closure, an object has it in an attribute, a lambda in its module.
    """
    waiting, seen = [run], set[int]()
    for each in waiting:  # the loop appends to this list
        function = _innermost(each)
        code, names = getattr(function, "__code__", None), _parameters(each)
        if code is None or id(each) in seen:
            continue
        seen.add(id(each))
        if position < len(names) and names[position] in code.co_varnames[: code.co_argcount]:
            yield code, names[position]
        used = {*code.co_freevars, *(code.co_names if code.co_name == "<lambda>" else ())}
        values = [value for name, value in variables(function).items() if name in used]
        owner = getattr(each, "__self__", each)
        values += (
            [] if isinstance(owner, type) or inspect.isfunction(owner) else getattr(owner, "__dict__", {}).values()
        )
        waiting += (inner for inner in values if callable(inner) and not isinstance(inner, type))


def _parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else ()


def _has(value: Any, part: Any) -> bool:
    return any(each is part for each in (value, *_parts(value)))


def _parameters(run: Callable[..., Any]) -> list[str]:
    try:
        return list(inspect.signature(run).parameters)
    except (TypeError, ValueError):
        return []


def _bindings(code: CodeType, name: str, state: Any) -> Iterator[bool]:
    """Yield a bool for each assignment to `name`, the parameter of the state: can the assignment lose the state?"""
    before = ""
    for each in dis.get_instructions(code):
        names = each.argval if isinstance(each.argval, tuple) else (each.argval,)
        if each.opname.startswith("STORE_") and name in names:
            is_part = before in ("LOAD_ATTR", "BINARY_SUBSCR", "BINARY_OP []")
            is_changed = before.startswith("INPLACE_") or before.endswith("=")
            yield not is_part and not (is_changed and any(hasattr(state, method) for method in _IN_PLACE))
        before = f"BINARY_OP {each.argrepr}" if each.opname == "BINARY_OP" else each.opname
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and name in inner.co_freevars:
            yield from _bindings(inner, name, state)


def _is_lost(bound: Any, before: Any) -> bool:
    """Return whether an assigned value is a new state (which would be lost), and not a part of the old state."""
    if not isinstance(bound, type(before)) and not isinstance(before, type(bound)):
        return False
    parts = [*getattr(before, "__dict__", {}).values()]
    parts += before.values() if isinstance(before, Mapping) else before if isinstance(before, (list, tuple)) else ()
    return not any(part is bound for part in parts)
