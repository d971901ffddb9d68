"""Functions that assign a new state to their parameter where something wraps them: a decorator, an object, a lambda."""

import functools
from collections.abc import Callable
from typing import Any

import pytest

from wallaroo.check.in_place import NotInPlaceError, guarded

Function = Callable[..., Any]


class Total:
    def __init__(self, count: int = 0) -> None:
        self.count = count


def in_place(data: Any, state: Any) -> Any:
    state.count += 1
    return data, True


def reused(data: Any, state: Any) -> Any:
    state.count += 1
    state = "another thing"
    return state, True


def new(data: Any, state: Any) -> Any:
    state = Total(state.count + 1)
    return data, True


def nested(data: Any, state: Any) -> Any:
    def change() -> None:
        nonlocal state
        state = Total(state.count + 1)

    change()
    return data, True


KEEP, LOSE = (in_place, reused), (new, nested)


def bare(run: Function) -> Function:
    """Return a wrapper that does not name its function."""
    return lambda *arguments: run(*arguments)


class Wrapper:
    def __init__(self, run: Function) -> None:
        self.run = run

    def __call__(self, data: Any, state: Any) -> Any:
        output, persist = self.run(data, state)
        return f"{output}", persist


WRAPPERS: list[Callable[[Function], Function]] = [
    bare, Wrapper, lambda run: bare(Wrapper(run)),
    lambda run: functools.wraps(run)(functools.partial(lambda _, data, state: run(data, state), 1)),
    lambda run: lambda data, state: (run(data, state)[0], True),
    lambda run: functools.partial(lambda data, state, factor: run(data, state), factor=2),
]  # fmt: skip


@pytest.mark.parametrize("run", [*KEEP, *LOSE])
@pytest.mark.parametrize("wrap", WRAPPERS)
def test_a_wrapped_function_that_assigns_to_its_state_is_told(
    wrap: Callable[[Function], Function], run: Function
) -> None:
    found = guarded(wrap(run), 1, Total())
    if run in KEEP:
        assert found("x", Total())
    else:
        with pytest.raises(NotInPlaceError, match="assigned a new state to its parameter state"):
            found("x", Total())


def test_a_helper_may_assign_to_a_state_that_its_caller_takes_over() -> None:
    def after(data: Any, state: Any) -> Any:
        state = Total(state.count)
        state.count += len(data)
        return state

    def count(data: Any, state: Any) -> Any:
        state.__dict__.update(vars(after(data, state)))
        return data, True

    def seen(data: Any, state: Any) -> Any:
        return f"{data}: {probe(data, state)}", True

    def probe(data: Any, state: Any) -> Any:
        state = Total(state.count + len(data))
        return state.count

    for run in (count, bare(count), seen, bare(seen)):
        assert guarded(run, 1, Total())("x", Total())[1]
