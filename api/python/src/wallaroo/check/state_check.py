"""Checks the states that a program makes: they must be mutable, and states of two keys must not share objects."""

import copy
import inspect
import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from wallaroo.check.change import CONTAINERS, changed_attributes, functions_of, is_class_var, outside, slots_of
from wallaroo.check.in_place import guarded, is_fixed
from wallaroo.check.object_state import ObjectStep, assignments
from wallaroo.component.application import State
from wallaroo.component.component import ComponentMethods
from wallaroo.component.signature import shown_name
from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.error import Place
from wallaroo.message.output import is_promise

_REASON = "is one for all keys of a process, and is not saved with the state"
_MEANT = "if each process may keep its own"
_MOST = 10_000  # how many objects of a state are checked
_OBJECT = "an object that can change, e.g. of a class, a dict or a list"


def check_state(place: Place, call: ComponentMethods, state: State) -> None:
    """Add findings about a state that cannot work. Let the functions in `call` fail if they lose the state.

    The check makes two states, which must share no object.

    Args:
        place: Place to which findings are added.
        call: The computation; its functions are replaced.
        state: State of the computation.
    """
    if isinstance(call.run, ObjectStep):
        return
    try:
        first, other = state.build(), state.build()
    except Exception:
        return  # perhaps only a worker can make a state; if not, each message reports the error
    if is_promise(first) or is_fixed(first):
        _refuse(place, call, state, first)
        return
    if _is_lost(other):
        expected = "an object that pickle writes with its values"
        place.add(
            "T207", method=f'{call.kind} "{call.name}"', expected=expected,
            parameter="accumulator" if call.kind == "window" else "state",
            actual=f"{shown_name(type(other))}, of which pickle keeps no value: a restart begins again",
            fix="let its __getstate__ return them and its __setstate__ take them, or leave both out",
        )  # fmt: skip
        return
    if (where := next(_shared(state, first, other, call.run), None)) is not None:
        remedy = f"make it for each state, in __init__; or annotate it ClassVar, {_MEANT}"
        if where.isidentifier() or where.startswith(("global ", "nonlocal ")):  # variables have no ClassVar
            remedy = f"keep it in the state; or in a class attribute annotated ClassVar, {_MEANT}"
        place.add("T234", remedy=remedy, step=call.name, what="state", where=where, reason=_REASON)
    owner = getattr(state.build if call.kind == "window" else call.run, "__self__", None)
    if owner is None and call.kind != "window" and not hasattr(call.run, "__code__"):
        owner = call.run  # a callable object
    kept = "accumulator" if call.kind == "window" else "state"
    if owner is not None and (where := next(_kept_by(owner), None)) is not None:
        remedy = f"keep it in the {kept}; or in a class attribute annotated ClassVar, {_MEANT}"
        place.add("T234", remedy=remedy, step=call.name, what="object", where=where, reason=_REASON)
    if call.kind != "window":
        call.run = guarded(call.run, 1, first)
    if call.visit is not None:
        call.visit = _guarded_by_name(call.visit, "visitors", 3, first)
    if call.fire is not None:
        call.fire = _guarded_by_name(call.fire, "callbacks", 2, first)


def _is_lost(state: Any) -> bool:
    """Return whether the pickle of a state loses all its attributes, because the class defines how it is pickled."""
    own = ("__getstate__", "__reduce__", "__reduce_ex__")
    if not any(name in vars(each) for name in own for each in type(state).__mro__ if _is_of_user(each)):
        return False
    before, other = dict(getattr(state, "__dict__", {})), {int: 1, float: 1.0, str: "x", bytes: b"x", list: [0]}
    changed = {name: value + other[type(value)] for name, value in before.items() if type(value) in other}
    try:
        probe = copy.copy(state)
        probe.__dict__.update(before | changed)
        read = pickle.loads(pickle.dumps(probe))  # noqa: S301 - written here
    except Exception:
        return False  # the worker will report the error
    return bool(changed) and all(getattr(read, name, None) != value for name, value in changed.items())


def _guarded_by_name(run: Callable[..., Any], functions: str, position: int, first: Any) -> Callable[..., Any]:
    """Wrap the functions of visits or timers with `guarded`. If one function serves all names, wrap this one."""
    by_name = getattr(getattr(run, "__self__", None), functions, None)
    if not isinstance(by_name, dict):
        return guarded(run, position, first)
    runs = {name: guarded(function, position - 1, first) for name, function in by_name.items()}
    return lambda name, *arguments: runs[name](*arguments)


def _refuse(place: Place, call: ComponentMethods, state: State, first: Any) -> None:
    if is_promise(first) and inspect.iscoroutine(first):
        first.close()
    is_window = call.kind == "window"
    builder = f"{shown_name(state.builder)}.initial_accumulator" if is_window else shown_name(state.builder)
    kept = "accumulator" if is_window else "state"
    place.add(
        "T207", method=f'{call.kind} "{call.name}"', parameter=kept,
        actual=f"{shown(first)} of {builder}, which nothing changes in place", expected=_OBJECT,
        fix=f"keep it in such an object, and change that: `{kept}.count += 1`; what is assigned or returned is lost",
    )  # fmt: skip


def _shared(state: State, first: Any, other: Any, function: Callable[..., Any]) -> Iterator[str]:
    """Yield the objects that two states share, if user code certainly changes them. The other ones are copied."""
    cls = type(first)
    if hasattr(first, "__dict__") and first.__dict__ is other.__dict__:
        yield "self.__dict__"
    classes = [each for each in cls.__mro__ if _is_of_user(each)]
    methods = [pair for each in classes for pair in functions_of(each)]
    changed = changed_attributes([function, *(method for method, _ in methods)])
    for each in classes:
        for name, value in vars(each).items():
            is_own = name in getattr(first, "__dict__", {}) or name.startswith("__") or name == "_field_defaults"
            if not is_own and not is_class_var(each, name) and _is_kept(value, name in changed):
                yield f"{each.__name__}.{name}"
    yield from (where for where, how in outside(function, cls) if how != "filled")
    for method, gets_class in methods:
        if method.__name__ != "__init__":
            yield from (where for where, _ in outside(method, cls, gets_class=gets_class))
    common = _common(first, other)
    yield from (
        where for where, value in common if value is first or _is_kept(value, where.rpartition(".")[2] in changed)
    )
    if common:
        yield from _separated(state)


def _separated(state: State) -> Iterator[str]:
    """Let `state.build` return deep copies, so that states share no objects. Yield those that they share even then."""
    build = state.build
    state.build = lambda: copy.deepcopy(build())
    try:
        yield from (where for where, _ in _common(state.build(), state.build()))
    except Exception:
        state.build = build  # the state cannot be copied, so it cannot be saved: the worker reports the error


def _kept_by(owner: Any) -> Iterator[str]:
    """Yield the attributes in which the object of a computation or aggregation keeps data between calls."""
    classes = [each for each in type(owner).__mro__ if _is_of_user(each)]
    yield from (where for each in classes for where, _ in assignments(each))
    methods = [method for each in classes for method, _ in functions_of(each) if method.__name__ != "__init__"]
    changed = changed_attributes(methods, of_first=True) if _is_of_user(type(owner)) else ()
    yield from (
        f"self.{name}" for name in sorted(changed)
        if isinstance(getattr(owner, name, None), CONTAINERS) and not is_class_var(type(owner), name)
    )  # fmt: skip


def _is_of_user(cls: type) -> bool:
    return cls.__module__.partition(".")[0] not in {*sys.stdlib_module_names, "wallaroo"}


def _is_kept(value: Any, is_changed: bool) -> bool:
    """Return whether user code certainly changes an object that states share. If not, the object is a constant."""
    if isinstance(value, CONTAINERS):
        return is_changed or not value
    if isinstance(value, Iterator):
        return True
    if not _can_change(value):
        return False
    return is_changed or (_is_of_user(type(value)) and any(is_inside for _, is_inside in assignments(type(value))))


def _can_change(value: Any) -> bool:
    if callable(value) or inspect.ismodule(value) or hasattr(value, "__get__") or is_fixed(value):
        return False
    return isinstance(value, (*CONTAINERS, Iterator)) or hasattr(value, "__setitem__") or _is_of_user(type(value))


def _common(first: Any, other: Any) -> list[tuple[str, Any]]:
    """Return the mutable objects that two states share, each with its path in the first state."""
    others = {id(value) for _, value in _parts(other)}
    return [
        (where or shown(first), value) for where, value in _parts(first) if id(value) in others and _can_change(value)
    ]


def _parts(state: Any) -> list[tuple[str, Any]]:
    """Return the parts of a state with their paths. The first part is the state itself."""
    parts, seen = [("", state)], {id(state)}
    for where, value in parts:  # the loop appends to this list
        if callable(value) or inspect.ismodule(value) or len(parts) > _MOST:
            continue
        inner: list[tuple[str, Any]] = []
        names = [*getattr(value, "__dict__", {}), *(name for each in type(value).__mro__ for name in slots_of(each))]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            names += value._fields
        elif isinstance(value, dict):
            inner += ((f"{where or 'state'}[{key!r}]", each) for key, each in value.items())
        elif isinstance(value, (list, tuple, set, frozenset, deque)):
            inner += ((f"{where or 'state'}[{at}]", each) for at, each in enumerate(value))
        inner += ((f"{where or 'self'}.{name}", getattr(value, name, None)) for name in names)
        parts += ((name, each) for name, each in inner if id(each) not in seen)
        seen.update(id(each) for _, each in inner)
    return parts
