"""Checks the results of user functions: lists of messages, pairs with `persist`, messages for named outputs."""

from collections.abc import Callable, Collection
from numbers import Number
from typing import Any

from wallaroo.component.application import Source, Step
from wallaroo.diagnostic.diagnostic import shown
from wallaroo.message.output import FIT, Output, UndeclaredOutputError, is_promise
from wallaroo.worker.value.letter_box import WrongResultError

MESSAGE_EXPECTED = "a message or None"
LIST_EXPECTED = "a list or None"
PAIR_EXPECTED = "a tuple (message or None, persist)"
PAIRS_EXPECTED = "a tuple (list of messages or None, persist)"


def promised(result: Any) -> WrongResultError:
    """Return the error for a result that is a promise (e.g. a coroutine), or for a list that contains a promise."""
    item = next(filter(is_promise, result)) if isinstance(result, list) else result
    return WrongResultError(item.value if isinstance(item, Output) else item, MESSAGE_EXPECTED)


def present(result: Any, expected: str = MESSAGE_EXPECTED) -> Any:
    """Return a result unchanged, but refuse a promise (e.g. a coroutine), since nobody would run it.

    Raises:
        WrongResultError: The result is a promise.
    """
    if type(result) not in FIT and is_promise(result):
        raise WrongResultError(result, expected)
    return result


def listed(result: Any) -> list[Any] | None:
    """Return the items of a result with several messages. Return None if the result is not a list or tuple."""
    if result is None:
        return []
    return list(result) if isinstance(result, (list, tuple)) else None


def paired(result: Any) -> tuple[Any, Any] | None:
    """Return a pair as a plain tuple, also for a named tuple. Return None if the result is not a pair."""
    return (result[0], result[1]) if isinstance(result, tuple) and len(result) == 2 else None


def persisted(result: Any) -> bool:
    """Return whether a computation asks to persist the state.

    Raises:
        WrongResultError: `persist` is neither true nor false, e.g. an array.
    """
    try:
        return isinstance(result, tuple) and len(result) == 2 and bool(result[1])
    except Exception:
        raise WrongResultError(result, PAIR_EXPECTED) from None


def time_of(source: Source) -> Callable[[bytes], int]:
    """Return a function that calls the user's `event_time` for a payload. It fails if the result is no number."""

    def time(payload: bytes) -> int:
        assert source.event_time is not None
        time_ms = source.event_time(payload)
        try:
            if isinstance(time_ms, bool) or not isinstance(time_ms, Number):
                raise TypeError
            return max(-(1 << 63), min((1 << 63) - 1, int(time_ms)))
        except (TypeError, ValueError, OverflowError):
            msg = f"event_time returned {shown(time_ms)}; expected milliseconds since 1970, an int or a float"
            raise ValueError(msg) from None

    return time


def expected_of(step: Step) -> str:
    """Return the text that describes the expected result of a state computation."""
    if step.is_always_persisted:
        return LIST_EXPECTED
    return PAIRS_EXPECTED if _is_multi(step) else PAIR_EXPECTED


def checked(step: Step, run: Callable[..., Any], declared: Collection[str]) -> Callable[..., Any]:
    """Wrap a step's user function. The wrapper fails on a message for an output that the step does not declare.

    It fails before any of its messages is passed on. Stages without outputs do not need this check, since there
    `output` itself fails.
    """
    is_multi = _is_multi(step)
    is_pair = step.kind.startswith("state_") and not step.is_always_persisted

    def run_checked(*arguments: Any) -> Any:
        result = run(*arguments)
        messages = result
        if is_pair:
            messages, _ = paired(result) or (None, None)
        for message in (listed(messages) or ()) if is_multi else (messages,):
            if message.__class__ is Output and message.name not in declared:
                raise UndeclaredOutputError(message.name, declared)
        return result

    return run_checked


def _is_multi(step: Step) -> bool:
    return step.kind.endswith("_multi")
