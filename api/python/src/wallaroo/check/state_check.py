"""Looks at the states that a program makes: they must change in place, and each key must have one of its own."""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence, MutableSet
from typing import Any

from wallaroo.check.in_place import guarded, is_fixed
from wallaroo.check.object_state import ObjectStep, assignments
from wallaroo.check.source_tree import source_tree
from wallaroo.component.application import State
from wallaroo.component.component import Call
from wallaroo.component.signature import shown_name
from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.place import Place
from wallaroo.message.output import is_promise

_CONTAINERS = (MutableMapping, MutableSequence, MutableSet)
_CHANGES = frozenset((
    "add", "append", "appendleft", "clear", "difference_update", "discard", "extend", "extendleft", "insert",
    "intersection_update", "pop", "popitem", "popleft", "remove", "reverse", "setdefault", "sort", "update",
))  # fmt: skip
_OBJECT = "an object that can change, e.g. of a class, a dict or a list"


def check_state(place: Place, call: Call, state: State) -> None:
    """Find states that cannot work; let the functions of a call fail where they lose one.

    A new state is made for it, as for each key.

    Args:
        place: Takes findings.
        call: The computation; its functions are replaced.
        state: Its state.
    """
    if isinstance(call.run, ObjectStep):
        return
    try:
        made, other = state.build(), state.build()
    except Exception:
        return  # only a worker can make it: then each message of it reports this
    if is_promise(made) or is_fixed(made):
        _refuse(place, call, state, made)
        return
    function = inspect.unwrap(call.run)
    for where in _shared(made, other, function):
        remedy = "make it for each state, in __init__; or annotate it ClassVar, if each process may keep its own"
        reason = "is one for all keys of a process, and is not saved with the state"
        place.add("T234", remedy=remedy, step=call.name, what="state", where=where, reason=reason)
        break
    if call.kind != "window":
        call.run = guarded(call.run, 1, made)
    if call.visit is not None:
        call.visit = _guarded_visit(call.visit, made)


def _guarded_visit(visit: Callable[..., Any], made: Any) -> Callable[..., Any]:
    """Return the visitor of a computation; a decorated one has a function for each visit."""
    visitors = getattr(getattr(visit, "__self__", None), "visitors", None)
    if not isinstance(visitors, dict):
        return guarded(visit, 3, made)
    runs = {name: guarded(run, 2, made) for name, run in visitors.items()}
    return lambda name, *arguments: runs[name](*arguments)


def _refuse(place: Place, call: Call, state: State, made: Any) -> None:
    if is_promise(made) and inspect.iscoroutine(made):
        made.close()
    is_window = call.kind == "window"
    builder = f"{shown_name(state.builder)}.initial_accumulator" if is_window else shown_name(state.builder)
    kept = "accumulator" if is_window else "state"
    place.add(
        "T207", method=f'{call.kind} "{call.name}"', parameter=kept,
        actual=f"{shown(made)} of {builder}, which nothing changes in place", expected=_OBJECT,
        fix=f"keep it in such an object, and change that: `{kept}.count += 1`; what is assigned or returned is lost",
    )  # fmt: skip


def _shared(made: Any, other: Any, function: Callable[..., Any]) -> Iterator[str]:
    """Yield where what one state changes is also another's."""
    if made is other:
        yield f"{shown(made)}, which is the same for all keys,"
        return
    cls = type(made)
    classes = [each for each in cls.__mro__ if each.__module__ not in sys.stdlib_module_names]
    changed = set(_changed([*classes, function]))
    for each in classes:
        for name, value in vars(each).items():
            is_own = name not in getattr(made, "__dict__", {}) and not name.startswith("__")
            is_meant = "ClassVar" in str(vars(each).get("__annotations__", {}).get(name))
            if is_own and not is_meant and _is_kept(value, f".{name}" in changed):
                yield f"{each.__name__}.{name}"
        yield from (where for where, is_inside in assignments(each) if not is_inside)
        module = vars(sys.modules.get(each.__module__, object))
        yield from (name for name in sorted(_changed([each])) if isinstance(module.get(name), _CONTAINERS))
    for name, value in getattr(made, "__dict__", {}).items():
        if value is getattr(other, "__dict__", {}).get(name) and _is_kept(value, f".{name}" in changed):
            yield f"self.{name}, which is one object for all keys,"


def _is_kept(value: Any, is_changed: bool) -> bool:
    """Return whether a container is one that states fill: others are tables that they read."""
    return isinstance(value, _CONTAINERS) and (is_changed or not value)


def _changed(parts: list[Any]) -> Iterator[str]:
    """Yield the names that code of these changes the content of: `.NAME` for an attribute, `NAME` for another name."""
    for part in parts:
        try:
            tree = source_tree(part)
        except (OSError, TypeError, SyntaxError):
            continue  # no source, such as for a class made at run time
        for node in ast.walk(tree):
            target: Any = None
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
                target = node.value
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
                target = node.func.value
            elif isinstance(node, ast.AugAssign):
                target = node.target
            if isinstance(target, ast.Attribute):
                yield f".{target.attr}"
            elif isinstance(target, ast.Name):
                yield target.id
