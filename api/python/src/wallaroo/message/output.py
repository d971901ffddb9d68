"""Named outputs: messages that a computation emits besides its results, for separate branches of the pipeline."""

import contextlib
import functools
import inspect
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from types import AsyncGeneratorType, BuiltinFunctionType, FunctionType, GeneratorType, MethodType
from typing import Any

from wallaroo.message.timer import Deleted

_running = threading.local()
FIT: set[type] = {str, bytes, int, float, bool, tuple, list, dict}  # types of results that are known to be no promises
MAX_FIT = 4096
_PROMISES = (
    Deleted, GeneratorType, AsyncGeneratorType, FunctionType, BuiltinFunctionType, MethodType, functools.partial,
    contextlib._GeneratorContextManager, contextlib._AsyncGeneratorContextManager,
)  # fmt: skip


class UndeclaredOutputError(Exception):
    """A computation emitted to an output that it does not declare. Code: C527."""

    def __init__(self, name: object, declared: Collection[str] = ()) -> None:
        self.name = f'"{name}"'
        self.declared = ", ".join(f'"{each}"' for each in sorted(declared)) or "none"
        super().__init__(f"emitted to the output {self.name}; it declares {self.declared}")


@dataclass(frozen=True, slots=True)
class Output:
    """A message for a named output; made by `output`.

    Attributes:
        name: Name of the output.
        value: The message; None emits nothing.
    """

    name: str
    value: Any

    def __reduce__(self) -> Any:
        raise UndeclaredOutputError(self.name)


def output(name: str, value: Any) -> Output:
    """Make a message for a named output of the computation that returns the message.

    A computation declares its outputs, e.g. `@wallaroo.computation("check", outputs=("alerts",))`. It returns or yields
    these messages like its other messages. A pipeline continues from an output with `pipeline.output("alerts")` or
    `ApplicationBuilder.from_output`. If the computation fails on a message, its outputs for that message are dropped.

    Args:
        name: Name of an output that the computation declares. With another name the input message is a dead letter
            (C527).
        value: The message; None emits nothing.

    Example:
        >>> import wallaroo
        >>> @wallaroo.computation("check", outputs=("alerts",))
        ... def check(degrees):
        ...     return degrees if degrees < 100 else wallaroo.output("alerts", degrees)
        >>> check(20), check(120)
        (20, Output(name='alerts', value=120))
    """
    if getattr(_running, "is_refused", False):
        raise UndeclaredOutputError(name)
    return Output(name, value)


def refuse_outputs(*, is_refused: bool) -> None:
    """Set whether `output` raises an error in this thread: it must if no step of the running stage has outputs."""
    _running.is_refused = is_refused


def is_promise(result: Any) -> bool:
    """Return whether a result is only a promise: an awaitable, future, iterator, context manager or function.

    `Deleted` counts, too: a visitor or timer takes its result out of it before this check.
    """
    kind = type(result)
    if kind is Output:
        return is_promise(result.value)
    if issubclass(kind, _PROMISES) or hasattr(kind, "__await__") or hasattr(kind, "add_done_callback"):
        return True
    if hasattr(kind, "__next__") and kind.__module__ in ("builtins", "itertools"):
        return True  # e.g. results of map, zip, filter and iter
    if len(FIT) < MAX_FIT:
        FIT.add(kind)
    return False


def collected(run: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a generator function so that it returns a list of its values. Return other functions unchanged."""
    if not inspect.isgeneratorfunction(run) and not inspect.isgeneratorfunction(type(run).__call__):
        return run
    return lambda *arguments: list(run(*arguments))
