"""Decorated state computations: objects with visitors, timers and a time to live."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Generic

from wallaroo.component.signature import call_finding, takes
from wallaroo.component.wrapped import C, F, P, R, WithOutputs
from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.diagnostic.error import WallarooParameterError
from wallaroo.message.output import collected


class _WithState(WithOutputs[P, R], Generic[P, R, C]):
    """A decorated state computation: the base class of `StateComputation` and `StateComputationMulti`.

    Attributes:
        state_class: The class that the decorator got; None if the pipeline names it (Wallaroo 0.4 and 0.5).
        ttl: How long a state is kept after the last message of its key; None keeps states forever.
        visitors: The functions for visits, by the visit's name.
        callbacks: The functions for timers, by the timer's name, with the arguments that `fire` passes.
    """

    parameters: tuple[str, ...] = ("data", "state")

    def __init__(
        self,
        function: Callable[P, R],
        name: str | None = None,
        state_class: C = None,  # type: ignore[assignment]
        *,
        outputs: Sequence[str] = (),
        ttl: timedelta | None = None,
    ) -> None:
        self.state_class, self.ttl = state_class, ttl
        self.parameters += ("timers",) if takes(function, "timers") else ()
        super().__init__(function, name, outputs=outputs)
        self.visitors: dict[str, Callable[..., Any]] = {}
        self.callbacks: dict[str, Callable[..., Any]] = {}
        if not (ttl is None or is_ttl(ttl)):
            raise WallarooParameterError(ttl_finding(self.kind, ttl))

    @property
    def visits(self) -> tuple[str, ...]:
        """Names of the visits that the computation accepts."""
        return tuple(self.visitors)

    @property
    def timers(self) -> tuple[str, ...]:
        """Names of the computation's timers."""
        return tuple(self.callbacks)

    def visitor(self, name: str) -> Callable[[F], F]:
        """Make a function `f(metadata, key, state)` the visitor of a visit: it runs for every key that has state.

        The visitor returns the same types as the computation, or `wallaroo.Deleted` to delete the key's state. The
        command `wallaroo visit` starts a visit and passes `metadata`, any bytes.

        Args:
            name: Name of the visit.

        Raises:
            WallarooParameterError: T207 if the name is not a str, or another visitor has it; T202 or T207 if the
                function cannot be called with these arguments.
        """
        return self._adder("visitor", name, self.visitors, ("metadata", "key", "state"))

    def timer(self, name: str) -> Callable[[F], F]:
        """Make a function `f(key, state, time)` the callback that runs when a timer of this name is due.

        `time` is when the timer was due, in milliseconds since 1970. The callback returns the same types as the
        computation, or `wallaroo.Deleted` to delete the key's state and all its timers. The computation and its
        callbacks set timers for the current key: with a last parameter `timers` they get a `wallaroo.Timers`.

        Args:
            name: Name of the timer.

        Raises:
            WallarooParameterError: T207 if the name is not a str, or another callback has it; T202 or T207 if the
                function cannot be called with these arguments.
        """
        return self._adder("timer", name, self.callbacks, TIMER)

    def _adder(
        self, method: str, name: str, taken: dict[str, Callable[..., Any]], parameters: tuple[str, ...]
    ) -> Callable[[F], F]:
        def add(function: F) -> F:
            finding = None
            if not isinstance(name, str) or name in taken or not callable(function):
                finding = Diagnostic.of(
                    "T207", method=method, parameter="name", actual=shown(name), expected="a name of its own",
                    fix=f'put @{self._name}.{method}("NAME") right above `def f({", ".join(parameters)})`',
                )  # fmt: skip
            timed = method == "timer" and takes(function, "timers")
            wanted = (*parameters, "timers") if timed else parameters
            finding = finding or call_finding(method, name, function, wanted, may_yield=self.may_yield)
            if finding is not None:
                raise WallarooParameterError(finding)
            taken[name] = with_timers(collected(function), has_them=timed) if method == "timer" else collected(function)
            return function

        return add

    def visit(self, name: str, metadata: bytes, key: Any, state: Any) -> Any:
        """Run the visitor of a visit for one key."""
        return self.visitors[name](metadata, key, state)

    def fire(self, name: str, key: Any, state: Any, time: int, timers: Any) -> Any:
        """Run the callback of a timer that is due."""
        return self.callbacks[name](key, state, time, timers)


TIMER = ("key", "state", "time")  # names of the arguments of a timer's callback


def with_timers(run: Callable[..., Any], *, has_them: bool) -> Callable[..., Any]:
    """Return a timer's callback that takes `timers` as its last argument. If `run` does not take it, wrap `run`."""
    return run if has_them else lambda *arguments: run(*arguments[:-1])


def is_ttl(value: object) -> bool:
    """Return whether a value is a time to live that a topology may have: 1 ms to 36500 days."""
    return isinstance(value, timedelta) and timedelta(milliseconds=1) <= value <= timedelta(days=36_500)


def ttl_finding(method: str, value: object) -> Diagnostic:
    """Return T207 for an invalid time to live."""
    return Diagnostic.of(
        "T207", method=method, parameter="ttl", actual=shown(value), fix="write e.g. ttl=timedelta(hours=1)",
        expected="a timedelta of 1 ms to 36500 days",
    )  # fmt: skip


class StateComputation(_WithState[P, R, C]):
    """A computation with a state per key; made by `state_computation`.

    Args:
        function: Takes message and state. Returns `(output or None, persist)`, or with a state class only the output or
            None.
        name: Name of the step; None takes the function's name.
        state_class: Makes the state of a key; None if the pipeline names the class.
        outputs: Names of the outputs to which the function may emit.
        ttl: How long a state is kept after the last message of its key; None keeps states forever.

    Raises:
        WallarooParameterError: T207 if `function` cannot be called, or `outputs` or `ttl` is not valid.

    Example:
        >>> def add(data, state):
        ...     state["sum"] = state.get("sum", 0) + data
        ...     return state["sum"]
        >>> total = StateComputation(add, "total", state_class=dict)
        >>> state = total.state_class()
        >>> total.compute(3, state), total.compute(4, state)
        (3, 7)

    Source: Wallaroo 0.5.2; with a state class 0.6.
    """

    kind = "state_computation"

    def compute(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Run the computation."""
        return self.function(*arguments, **keywords)


class StateComputationMulti(_WithState[P, R, C]):
    """A computation with a state per key and any number of output messages; made by `state_computation_multi`.

    The function returns `(list of outputs or None, persist)`, or with a state class only the list or None. Parameters
    are as for `StateComputation`.

    Example:
        >>> def pair(data, state):
        ...     state.append(data)
        ...     return state[-2:] if len(state) % 2 == 0 else None
        >>> pairs, state = StateComputationMulti(pair, "pairs", list), []
        >>> pairs.compute_multi("a", state), pairs.compute_multi("b", state)
        (None, ['a', 'b'])

    Source: Wallaroo 0.5.2; with a state class 0.6.
    """

    kind = "state_computation_multi"

    def compute_multi(self, *arguments: P.args, **keywords: P.kwargs) -> R:
        """Run the computation."""
        return self.function(*arguments, **keywords)
