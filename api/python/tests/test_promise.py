"""Functions that only promise a result, in each part that takes one: refused at the declaration, or a dead letter."""

import asyncio
import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

import wallaroo
from wallaroo import testing
from wallaroo.diagnostic.diagnostic import DiagnosticError

Function = Callable[..., Any]


async def deferred(*arguments: Any) -> Any:
    return arguments[0]


async def stream(*arguments: Any) -> Any:
    yield arguments[0]


def several(*arguments: Any) -> Any:
    yield arguments[0]


class Called:
    """An object that is called, and a class of methods."""

    def __init__(self, function: Function) -> None:
        self.function = function

    async def __call__(self, *arguments: Any) -> Any:
        return await self.function(*arguments)

    async def method(self, *arguments: Any) -> Any:
        return await self.function(*arguments)

    @staticmethod
    async def static(*arguments: Any) -> Any:
        return arguments[0]


def logged(function: Function) -> Function:
    """Return what only a call shows: its own code is no coroutine."""

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        return function(*arguments)

    return run


def finished(function: Function) -> Function:
    """Return what runs the coroutine; nothing is wrong with it."""

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        return asyncio.run(function(*arguments))

    return run


# How a function promises its result, and whether the declaration can see it.
FORMS: dict[str, tuple[Function, bool]] = {
    "`async def`": (deferred, True),
    "an async generator": (stream, True),
    "a generator function": (several, True),
    "partial": (functools.partial(deferred), True),
    "partial of a partial": (functools.partial(functools.partial(several)), True),
    "cache": (functools.cache(deferred), True),
    "object": (Called(deferred), True),
    "method": (Called(deferred).method, True),
    "static method": (Called.static, True),
    "decorated": (wallaroo.Partition(deferred), True),
    "wraps": (logged(deferred), False),
    "wraps a generator": (logged(several), False),
    "wraps an async generator": (logged(stream), False),
    "lambda": (lambda *arguments: deferred(*arguments), False),
}

LAZY: dict[str, Function] = {
    "map": lambda *arguments: map(str, arguments),
    "zip": lambda *arguments: zip(arguments, strict=True),
    "filter": lambda *arguments: filter(None, arguments),
    "enumerate": lambda *arguments: enumerate(arguments),
    "iter": lambda *arguments: iter(arguments),
    "reversed": lambda *arguments: reversed(arguments),
    "chain": lambda *arguments: itertools.chain(arguments),
    "future": lambda *arguments: Future(),
    "a context": lambda *arguments: opened(),
    "function": lambda *arguments: given,
    "lambda": lambda *arguments: lambda: arguments,
    "method": lambda *arguments: arguments[0].upper,
    "partial": lambda *arguments: functools.partial(given, *arguments),
}  # fmt: skip


@contextlib.contextmanager
def opened() -> Iterator[str]:
    yield "x"


class Kept:
    """A state."""

    count = 0


def given(data: Any) -> Any:
    return data


class Aggregated(wallaroo.Aggregation):
    """An aggregation of which one method may be another."""

    def initial_accumulator(self) -> Any:
        return [0]

    def update(self, input: Any, accumulator: Any) -> Any:
        accumulator[0] += 1

    def combine(self, accumulator1: Any, accumulator2: Any) -> Any:
        return [accumulator1[0] + accumulator2[0]]

    def output(self, key: Any, accumulator: Any) -> Any:
        return f"{key} {accumulator[0]}"


def application(role: str, function: Function) -> Any:
    """Return an application that has a function in one part."""
    part = {name: default for name, default in DEFAULTS.items() if name in ("decoder", "key", "encoder")}
    steps = {
        "computation": lambda: wallaroo.Computation(function, "step"),
        "computation_multi": lambda: wallaroo.ComputationMulti(function, "step"),
        "compute": lambda: type("Step", (), {"name": lambda self: "step", "compute": staticmethod(function)})(),
        "state_computation": lambda: wallaroo.StateComputation(function, "step", Kept),
        "state_computation_multi": lambda: wallaroo.StateComputationMulti(function, "step", Kept),
        "event_time": lambda: wallaroo.count_windows(1).over(Aggregated),
    }
    if role in part:
        part[role] = function
    decoder = wallaroo.line_decoder(event_time=function if role == "event_time" else None)(part["decoder"])
    source = wallaroo.TCPSourceConfig("127.0.0.1", 7010, decoder)
    line = wallaroo.source("in", source).key_by(wallaroo.KeyExtractor(part["key"]))
    if role in METHODS:
        made = type("Other", (Aggregated,), {role: staticmethod(function)})
        line = line.to(wallaroo.count_windows(1).over(made))
    else:
        line = line.to(steps[role]() if role in steps else wallaroo.Computation(given, "step"))
    return wallaroo.build_application(
        "a", line.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, wallaroo.Encoder(part["encoder"])))
    )


DEFAULTS: dict[str, Function] = {"decoder": bytes.decode, "key": given, "encoder": str}
METHODS = ("initial_accumulator", "update", "combine", "output")
ROLES = (
    "decoder", "key", "encoder", "computation", "computation_multi", "compute", "state_computation",
    "state_computation_multi", "event_time", *METHODS,
)  # fmt: skip
MULTI = ("computation_multi", "state_computation_multi")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_promise_is_no_result(role: str, form: str) -> None:
    """It is refused, or each message is a dead letter that says it; it never leaves, nor does its text."""
    function, is_seen = FORMS[form]
    is_generator = function is several or form == "partial of a partial"

    def setup(args: list[str]) -> Any:
        return application(role, function)

    if is_generator and role in MULTI:
        with testing.run(setup) as app:
            app.send([b"x", b"y"])
            assert sorted(app.output()) == [b"x", b"y"] and not app.dead_letters
        return
    try:
        app = testing.run(setup)
    except DiagnosticError as error:
        assert error.diagnostics[0].code == "T207"
        if is_seen:
            assert "expected a function that returns its result" in str(error)
        else:  # an accumulator is made at the declaration
            assert role == "initial_accumulator" and "parameter accumulator is a" in str(error)
        return
    assert not is_seen
    with app:
        app.send([b"x", b"y"])
        app.advance(60)
        assert not [text for text in app.output() if b"<" in text or b"coroutine" in text]
        if role != "combine":  # count windows are never combined
            assert len(app.dead_letters) == 2 and not app.output()
        for letter in app.dead_letters:
            assert (
                " of " in letter.error and "<" not in letter.error and letter.code in ("C503", "C505", "C517", "C522")
            )


@pytest.mark.parametrize("role", ROLES)
def test_a_coroutine_that_is_run_is_a_result(role: str) -> None:
    if role in ("event_time", *METHODS):
        return
    with testing.run(lambda args: application(role, finished(deferred))) as app:
        app.send([b"x"])
        assert len(app.output()) + len(app.dead_letters) == 1
        assert bool(app.dead_letters) == (role in MULTI)  # a text is no list


@pytest.mark.parametrize("role", ["computation", "compute", "state_computation", "key", "encoder", "output"])
@pytest.mark.parametrize("form", LAZY)
def test_what_is_only_begun_is_no_result(role: str, form: str) -> None:
    with testing.run(lambda args: application(role, LAZY[form])) as app:
        app.send([b"x", b"y"])
        assert not app.output() and len(app.dead_letters) == 2
        for letter in app.dead_letters:
            assert letter.code in ("C503", "C517") and " at 0x" not in letter.error


@pytest.mark.parametrize("role", ["computation", "computation_multi", "state_computation", "state_computation_multi"])
@pytest.mark.parametrize("is_in_list", [False, True])
def test_only_visitors_and_timers_delete_a_state(role: str, is_in_list: bool) -> None:
    if is_in_list and role not in MULTI:
        return

    def deleted(*arguments: Any) -> Any:
        return [arguments[0], wallaroo.Deleted("y")] if is_in_list else wallaroo.Deleted("y")

    with testing.run(lambda args: application(role, deleted)) as app:
        app.send([b"x"])
        (letter,) = app.dead_letters
        assert not app.output()
        kind = "a list" if role in MULTI and not is_in_list else "a message"
        assert (letter.code, letter.error) == (
            "C503",
            f"returned Deleted(result='y'); expected {kind} or None; only visitors and timers return Deleted, "
            "e.g. a timer set with after=timedelta(0)",
        )
