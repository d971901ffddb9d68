"""The objects that the decorators of state computations make of functions: with visitors, timers and a time to live."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Generic

from wallaroo.component.signature import call_finding, takes
from wallaroo.component.wrapped import C, F, P, R, WithOutputs
from wallaroo.diagnostic.diagnostic import Diagnostic, shown
from wallaroo.diagnostic.error import WallarooParameterError
from wallaroo.message.output import collected


class _WithState(WithOutputs[P, R], Generic[P, R, C]):
    """The methods that both kinds of state computation have.

    Attributes:
        state_class: The class that was given to the decorator; None where the pipeline names it (Wallaroo 0.4 and 0.5).
        ttl: How long a key's state stays after its last message; None: for ever.
        visitors: The functions for visits, by the visit's name.
        callbacks: Those of timers, by the timer's name, as `fire` calls them.
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
        """Names of the visits that it takes."""
        return tuple(self.visitors)

    @property
    def timers(self) -> tuple[str, ...]:
        """Names of its timers."""
        return tuple(self.callbacks)

    def visitor(self, name: str) -> Callable[[F], F]:
        """Make a function `f(metadata, key, state)` the visitor of a visit: it runs for every key that has state.

        It returns what the computation returns, or `wallaroo.Deleted` to delete the key's state. A visit is asked for
        with `wallaroo visit`, which also gives the metadata, bytes of any content.

        Args:
            name: Of the visit.

        Raises:
            WallarooParameterError: The name is no text or is taken (T207), or it is no such function (T202, T207).
        """
        return self._adder("visitor", name, self.visitors, ("metadata", "key", "state"))

    def timer(self, name: str) -> Callable[[F], F]:
        """Make a function `f(key, state, time)` the one that runs when a timer of this name is due.

        The computation, or a callback, sets it for the key of its message: a parameter `timers`, after those that it
        has, gets a `wallaroo.Timers`. `time` is when the timer was due, in milliseconds since 1970. It returns what the
        computation returns, or `wallaroo.Deleted` to delete the key's state, and all its timers with it.

        Args:
            name: Of the timer.

        Raises:
            WallarooParameterError: The name is no text or is taken (T207), or it is no such function (T202, T207).
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
        """Run the visitor of a visit."""
        return self.visitors[name](metadata, key, state)

    def fire(self, name: str, key: Any, state: Any, time: int, timers: Any) -> Any:
        """Run the function of a timer."""
        return self.callbacks[name](key, state, time, timers)


TIMER = ("key", "state", "time")  # what runs when a timer is due gets this


def with_timers(run: Callable[..., Any], *, has_them: bool) -> Callable[..., Any]:
    """Return a function that takes `timers` as its last argument, whether the user's does or not."""
    return run if has_them else lambda *arguments: run(*arguments[:-1])


def is_ttl(value: object) -> bool:
    """Return whether a time to live is one that the topology can have."""
    return isinstance(value, timedelta) and timedelta(milliseconds=1) <= value <= timedelta(days=36_500)


def ttl_finding(method: str, value: object) -> Diagnostic:
    """Return T207 of a time to live that is none."""
    return Diagnostic.of(
        "T207", method=method, parameter="ttl", actual=shown(value), fix="write e.g. ttl=timedelta(hours=1)",
        expected="a timedelta of 1 ms to 36500 days",
    )  # fmt: skip


class StateComputation(_WithState[P, R, C]):
    """A message and its state in; (output or None, persist) out, with a state class the output or None.

    What `state_computation` makes.

    Args:
        function: Takes message and state.
        name: Name of the step; None: the function's.
        state_class: Makes the state of a key; None where the pipeline names the class.
        outputs: As for `Computation`.
        ttl: How long a key's state stays after its last message; None: for ever.

    Raises:
        WallarooParameterError: It is no function, `outputs` no names or `ttl` no time (T207).

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
    """A message and its state in; (list of outputs or None, persist) out, with a state class the list or None.

    What `state_computation_multi` makes. Parameters are those of `StateComputation`.

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
