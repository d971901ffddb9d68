"""Finds the methods that workers call in the program's components: decorated functions, classes and objects."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from wallaroo.component.application import RemoteComponent
from wallaroo.component.signature import call_finding, shown_name, takes
from wallaroo.component.wrapped import BaseWrapped
from wallaroo.component.wrapped_state import TIMER, is_ttl, ttl_finding, with_timers
from wallaroo.diagnostic.diagnostic import did_you_mean, shown
from wallaroo.diagnostic.error import Place
from wallaroo.diagnostic.location import declared_at
from wallaroo.message.output import collected
from wallaroo.message.timer import DECLARE

# The builder method that accepts a decorated function, by the function's kind, for errors about wrong methods.
_OTHER_METHOD = {
    "computation": "to",
    "computation_multi": "to",
    "state_computation": "to_state_partition",
    "state_computation_multi": "to_state_partition",
    "key_extractor": "key_by",
}
# Parameters that no decorated function fits, with the remedy for a wrong value and the expected value.
_NOT_DECORATED = {
    "aggregation": ("write a class that extends wallaroo.Aggregation, and pass it to `over`", "an Aggregation"),
    "gen": ("write a class with `initial_value()` and `apply(previous)`, and pass it", "a generator"),
}


@dataclass(slots=True)
class ComponentMethods:
    """The methods with which a worker calls a computation, and the names of its outputs, visits and timers."""

    kind: str
    name: str
    run: Callable[..., Any]
    outputs: tuple[str, ...] = ()
    visits: tuple[str, ...] = ()
    visit: Callable[..., Any] | None = None
    timers: tuple[str, ...] = ()
    fire: Callable[..., Any] | None = None
    takes_timers: bool = False
    ttl_ms: int = 0


def instance(place: Place, parameter: str, value: Any, decorator: str, expected: str) -> Any:
    """Return the object whose methods workers call: the value itself, or an instance if the value is a class.

    If the value cannot be a component, report an error at `place` and return None.
    """
    if inspect.isabstract(value):
        _lacks(place, parameter, value)
        return None
    if isinstance(value, type):
        try:
            return value()
        except Exception as err:
            fix = f"give the class a constructor without arguments, or pass an object; {err}"
            place.wrong(parameter, shown_name(value), expected, fix=fix)
            return None
    if inspect.isroutine(value):
        _plain(place, parameter, value, f"@wallaroo.{decorator}")
        return None
    if value is None or isinstance(value, (str, bytes, int, float, list, tuple, dict)):
        fix = f"pass a function decorated with @wallaroo.{decorator}, or an object of a class"
        fix, _ = _NOT_DECORATED.get(parameter, (fix, expected))
        place.wrong(parameter, shown(value), expected, fix=fix)
        return None
    return value


def _plain(place: Place, parameter: str, function: Any, decorator: str) -> None:
    """Add the finding (T207) that a function is not decorated, with a remedy for this kind of function."""
    fix, expected = f"decorate it with {decorator}", "a decorated one"
    if getattr(function, "__name__", "") == "<lambda>":
        fix = f"write a function with `def` in its place, and decorate that with {decorator}"
    elif not hasattr(inspect.unwrap(function), "__code__"):
        fix = f"write a function that calls it, and decorate that with {decorator}"
    fix, expected = _NOT_DECORATED.get(parameter, (fix, expected))
    place.add(
        "T207", declared_at(function), method=place.method, parameter=parameter, fix=fix,
        actual=f"{shown_name(function)}, a plain function", expected=expected,
    )  # fmt: skip


def _lacks(place: Place, what: str, cls: type) -> None:
    """Add a finding (T223) for each required method that a class lacks."""
    own = [name for name in vars(cls) if callable(getattr(cls, name)) and not name.startswith("__")]
    for name in sorted(cls.__abstractmethods__):  # type: ignore[attr-defined]
        parameters = ", ".join(inspect.signature(getattr(cls, name)).parameters)
        place.add(
            "T223", declared_at(cls), what=what, type=shown_name(cls), method=name + did_you_mean(name, own),
            signature=f"`def {name}({parameters})`",
        )  # fmt: skip


def method(
    place: Place,
    what: str,
    component: Any,
    names: tuple[str, ...],
    parameters: tuple[str, ...],
    *,
    may_yield: bool = False,
) -> Callable[..., Any] | None:
    """Return the first method of `names` that a component has, or report an error at `place` and return None.

    It is a finding if the component has none of them, or if the method cannot be called with `parameters`. For a
    decorated function the result is the function itself, because its methods only pass the arguments on.
    """
    if isinstance(component, BaseWrapped) and hasattr(component, names[0]) and names[0] in _DIRECT:
        if component.finding is not None:
            place.take(component.finding)
            return None
        if component.is_direct:
            return component.function
    for name in names:
        value = getattr(component, name, None)
        if callable(value):
            finding = call_finding(what, _name(component), value, parameters, may_yield=may_yield)
            if finding is not None:
                place.take(finding)
                return None
            run: Callable[..., Any] = value
            return run
    signature = f"`def {names[0]}({', '.join(('self', *parameters))})`"
    owner = shown_name(type(component))
    place.add("T223", declared_at(component), what=what, type=owner, method=names[0], signature=signature)
    return None


def computation(place: Place, value: Any, *, has_state: bool) -> ComponentMethods | None:
    """Return the methods with which a worker calls a computation, or report an error at `place` and return None."""
    kind = "state_computation" if has_state else "computation"
    decorator, expected = f'{kind}("name")', "a state computation" if has_state else "a computation"
    component = instance(place, "computation", value, decorator, expected)
    if component is None:
        return None
    if isinstance(component, BaseWrapped) and component.kind.removesuffix("_multi") != kind:
        other = _OTHER_METHOD.get(component.kind)
        fix = f"decorate {component.name()} with @wallaroo.{decorator}" + (f", or use {other}" if other else "")
        article = "an" if component.kind == "encoder" else "a"
        place.wrong("computation", f"{article} {component.kind}", expected, fix=fix)
        return None
    if has_state and getattr(component, "state_class", None) is not None and place.method not in ("to", "offer"):
        fix = f'leave `state` out: @wallaroo.{component.kind}("{component.name()}"), and return (output, True)'
        other_api(place, "computation", component, SOURCE, BUILDER, fix=fix)
        return None
    is_multi = callable(getattr(component, "compute_multi", None))
    names = ("compute_multi",) if is_multi else ("compute",)
    parameters: tuple[str, ...] = ("data", "state") if has_state else ("data",)
    function = component.function if isinstance(component, BaseWrapped) else getattr(component, names[0], None)
    takes_timers = has_state and takes(function, "timers")
    parameters += ("timers",) if takes_timers else ()
    kind += "_multi" if is_multi else ""
    # A generator function cannot return `persist`, so it may not have a state without a state class.
    may_yield = is_multi and (not has_state or getattr(component, "state_class", None) is not None)
    run = method(place, kind, component, names, parameters, may_yield=may_yield)
    label = method(place, kind, component, ("name",), ())
    if run is None or label is None:
        return None
    call = ComponentMethods(kind, label(), run, outputs_of(component))
    if has_state and (visits := _names(component, "visits")):
        call.visits = visits
        call.visit = method(place, "visitor", component, ("visit",), VISITOR, may_yield=may_yield)
    call.takes_timers = takes_timers
    _set_timers(place, component, call, has_state=has_state, may_yield=may_yield)
    return call


def _set_timers(place: Place, component: Any, call: ComponentMethods, *, has_state: bool, may_yield: bool) -> None:
    """Copy timers and time to live from a component's declaration to `call`; add findings to `place`."""
    call.timers, owner = _names(component, "timers"), f'{call.kind} "{call.name}"'
    is_wrapped, wrong = isinstance(component, BaseWrapped), partial(place.add, "T207", method=owner, parameter="timers")
    ttl = getattr(component, "ttl", None) if is_wrapped or hasattr(type(component), "ttl") else None
    runner = "fire" if is_wrapped else "timer"
    if not has_state and call.timers and callable(getattr(component, runner, None)):
        fix = "declare it as a state computation, or leave `timers` out"
        wrong(actual=shown(call.timers), expected="none: it has no state", fix=fix)
    elif call.takes_timers and not call.timers:
        fix = f"{DECLARE}, or leave the parameter out"
        wrong(actual="none, but it takes `timers`", expected="a timer that it declares", fix=fix)
    elif has_state and call.timers:
        has_them = is_wrapped or takes(getattr(component, runner, None), "timers")
        parameters = (*TIMER, "timers") if has_them else TIMER
        call.fire = method(place, "timer", component, (runner,), ("name", *parameters), may_yield=may_yield)
        if call.fire is not None:
            call.fire = with_timers(collected(call.fire), has_them=has_them)
    if has_state and isinstance(ttl, timedelta) and is_ttl(ttl):
        call.ttl_ms = -(-ttl // timedelta(milliseconds=1))
    elif has_state and ttl is not None:
        place.take(ttl_finding(owner, ttl))


def outputs_of(component: Any) -> tuple[str, ...]:
    """Return the names of the outputs that a component declares. For windows their aggregation declares them."""
    component = getattr(component, "aggregation", component)
    if isinstance(component, (BaseWrapped, RemoteComponent)):
        return tuple(component.outputs)
    return _names(component, "outputs")


def _names(component: Any, attribute: str) -> tuple[str, ...]:
    cls = component if isinstance(component, type) else type(component)
    names = getattr(component, attribute, ()) if hasattr(cls, attribute) else ()
    # A class of the program may use an attribute of this name for something else.
    return tuple(names) if isinstance(names, (tuple, list)) and all(isinstance(name, str) for name in names) else ()


def other_api(place: Place, parameter: str, component: Any, actual: str, expected: str, *, fix: str) -> None:
    """Add the finding (T207) that a computation is for the API `actual` of Wallaroo, but `expected` is needed."""
    place.add(
        "T207", declared_at(component), method=place.method, parameter=parameter, fix=fix,
        actual=f"{_name(component)}, made for {actual}", expected=f"one for {expected}",
    )  # fmt: skip


_DIRECT = {"compute", "compute_multi", "partition", "extract_key", "encode", "decode"}
VISITOR = ("name", "metadata", "key", "state")
BUILDER, SOURCE = "ApplicationBuilder (Wallaroo 0.1 to 0.5)", "wallaroo.source (Wallaroo 0.6)"


def _name(component: Any) -> str:
    name = getattr(component, "name", None)
    if callable(name):
        try:
            return str(name())
        except Exception:
            return shown_name(component)  # the name only serves texts of errors
    return shown_name(component)
