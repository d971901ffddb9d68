"""States that nothing changes in place, that a function assigns, and that keys share: refused, or a dead letter."""

import dataclasses
import decimal
import enum
import functools
from collections import Counter, deque
from collections.abc import Callable
from datetime import datetime
from typing import Any, ClassVar, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as some

import wallaroo
from wallaroo import testing
from wallaroo.check.in_place import guarded, is_fixed
from wallaroo.diagnostic.diagnostic import DiagnosticError

Function = Callable[..., Any]
FOUND: list[str] = []


class Pair(NamedTuple):
    first: int = 0
    second: str = ""


class Holder(NamedTuple):
    kept: Any = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    count: int = 0
    pair: Pair = Pair()


@dataclasses.dataclass(frozen=True)
class FrozenList:
    items: list[str] = dataclasses.field(default_factory=list)


class Colour(enum.Enum):
    RED = 1


class Number(int):
    """A number that nothing is put into."""


@dataclasses.dataclass
class Total:
    count: int = 0

    def __add__(self, other: int) -> "Total":
        return Total(self.count + other)


class Made:
    """Makes a state."""

    def __init__(self, make: Function) -> None:
        self.make = make

    def build(self) -> Any:
        return self.make()


def pair(data: Any, state: Any) -> Any:
    return data, True


def source() -> wallaroo.TCPSourceConfig:
    return wallaroo.TCPSourceConfig("127.0.0.1", 7010, wallaroo.line_decoder(bytes.decode))


def sink() -> wallaroo.TCPSinkConfig:
    return wallaroo.TCPSinkConfig("127.0.0.1", 7002, wallaroo.Encoder(str))


@wallaroo.key_extractor
def itself(data: str) -> str:
    return data


@wallaroo.partition
def whole(data: str) -> str:
    return data


def with_class(state: Any, run: Function) -> Function:
    """Return the setup of an application of Wallaroo 0.6."""
    step = wallaroo.state_computation("count", state=state)(run)
    line = wallaroo.source("in", source()).key_by(itself).to(step)
    return lambda args: wallaroo.build_application("a", line.to_sink(sink()))


def with_pair(state: Any, run: Function) -> Function:
    """Return the setup of an application of Wallaroo 0.5."""

    def setup(args: list[str]) -> Any:
        made = wallaroo.ApplicationBuilder("a").new_pipeline("p", source())
        step = wallaroo.state_computation("count")(run)
        return made.to_state_partition(step, state, "counts", whole).to_sink(sink()).build()

    return setup


def with_object(state: Any, run: Function) -> Function:
    """Return the setup of an application of Wallaroo 0.1, where a computation is an object."""

    class Count:
        def name(self) -> str:
            return "count"

        def compute(self, data: Any, state: Any) -> Any:
            return run(data, state)

    return lambda args: (
        wallaroo.ApplicationBuilder("a").new_pipeline("p", source()).to_stateful(Count(), state, "counts")
        .to_sink(sink()).build()
    )  # fmt: skip


def with_windows(state: Any, run: Function) -> Function:
    """Return the setup of an application whose accumulator is a state."""

    class Counted(wallaroo.Aggregation):
        def initial_accumulator(self) -> Any:
            return state.build() if hasattr(state, "build") else state()

        def update(self, input: Any, accumulator: Any) -> Any:
            run(input, accumulator)

        def combine(self, accumulator1: Any, accumulator2: Any) -> Any:
            return accumulator1

        def output(self, key: Any, accumulator: Any) -> Any:
            return f"{key} {accumulator}"

    line = wallaroo.source("in", source()).key_by(itself).to(wallaroo.count_windows(2).over(Counted))
    return lambda args: wallaroo.build_application("a", line.to_sink(sink()))


APIS = [with_class, with_pair, with_object, with_windows]
VALUES = some.recursive(
    some.one_of(
        some.none(), some.booleans(), some.integers(), some.floats(), some.text(), some.binary(),
        some.sampled_from([Colour.RED, decimal.Decimal(1), datetime(2020, 1, 1), range(3), Number(), Frozen()]),
    ),
    lambda inner: some.tuples(inner) | some.frozensets(some.integers()) | some.builds(Holder, inner),
    max_leaves=4,
)  # fmt: skip
CHANGING = some.one_of(
    some.builds(list), some.builds(dict), some.builds(set), some.builds(Total), some.builds(FrozenList),
    some.builds(deque), some.builds(bytearray), some.builds(Counter),
)  # fmt: skip


@given(fixed=VALUES, changing=CHANGING)
def test_what_can_change_is_told_from_what_cannot(fixed: Any, changing: Any) -> None:
    assert is_fixed(fixed) and not is_fixed(changing)
    assert is_fixed(Holder((fixed,))) and not is_fixed(Holder((fixed, changing)))


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    "state",
    [
        int, float, str, bytes, tuple, frozenset, bool, complex, Pair, Frozen, Number, Made(lambda: 0),
        Made(lambda: None), Made(lambda: Colour.RED), wallaroo.StateBuilder(int),
    ],
)  # fmt: skip
def test_a_state_that_nothing_changes_is_refused(api: Function, state: Any) -> None:
    with pytest.raises(DiagnosticError) as caught:
        testing.run(api(state, pair))
    (finding,) = caught.value.diagnostics
    assert finding.code == "T207"
    assert "which nothing changes in place; expected an object that can change" in finding.message
    assert finding.file and "is lost" in finding.fix


def in_place(data: Any, state: Any) -> Any:
    state.count += 1
    return data, True


def part(data: Any, state: Any) -> Any:
    state = state.__dict__
    state["count"] += 1
    return data, True


def reused(data: Any, state: Any) -> Any:
    state.count += 1
    state = "another thing"
    return state, True


def called_part(data: Any, state: Any) -> Any:
    state = getattr(state, "inner", state)
    state.count += 1
    return data, True


def new(data: Any, state: Any) -> Any:
    state = Total(state.count + 1)
    return data, True


def added(data: Any, state: Any) -> Any:
    state += 1
    return data, True


def replaced(data: Any, state: Any) -> Any:
    if data != "never":
        state = dataclasses.replace(state, count=state.count + 1)
    return data, True


def reset(data: Any, state: Any) -> Any:
    _, state = data, Total()  # noqa: F841 - what is tested
    return data, True


def nested(data: Any, state: Any) -> Any:
    def change() -> None:
        nonlocal state
        state = Total(state.count + 1)

    change()
    return data, True


def returned(data: Any, state: Any) -> Any:
    return data, Total(state.count + 1)


def itself_returned(data: Any, state: Any) -> Any:
    state.count += 1
    return data, state


KEEP, LOSE = (in_place, part, reused, called_part), (new, added, replaced, reset, nested)


def stripped(run: Function) -> Function:
    """Return what gives the output alone."""
    return lambda data, state: run(data, state)[0]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("run", [*KEEP, *LOSE, returned, itself_returned])
def test_a_function_that_assigns_to_its_state_is_told(api: Function, run: Function) -> None:
    given_run = run
    if api in (with_class, with_windows):
        if run in (returned, itself_returned):
            return
        given_run = functools.wraps(run)(stripped(run))
    if api is with_windows and run not in KEEP:
        return  # the method calls the function, and drops what it returns
    with testing.run(api(Total, given_run)) as app:
        app.send([b"x", b"x"])
        said = {(letter.code, letter.error.partition(",")[0]) for letter in app.dead_letters}
        if run in KEEP:
            assert not said and len(app.output()) == (1 if api is with_windows else 2)
        elif run in LOSE:
            assert said == {("C522", "assigned a new state to its parameter state")} and not app.output()
        else:
            assert said == {("C522", "returned a state in the place of persist")} and not app.output()


def test_a_method_and_a_visitor_that_assign_to_their_state_are_told() -> None:
    class Count:
        def name(self) -> str:
            return "count"

        def compute(self, data: Any, state: Any) -> Any:
            state = Total(state.count + 1)
            return data, True

    class Counted(wallaroo.Aggregation):
        def initial_accumulator(self) -> Any:
            return []

        def update(self, input: Any, accumulator: Any) -> Any:
            accumulator = [*accumulator, input]

        def combine(self, accumulator1: Any, accumulator2: Any) -> Any:
            return accumulator1 + accumulator2

        def output(self, key: Any, accumulator: Any) -> Any:
            return str(accumulator)

    def visited(args: list[str]) -> Any:
        step = wallaroo.state_computation("count", state=Total)(stripped(in_place))
        step.visitor("reset")(visit)
        line = wallaroo.source("in", source()).key_by(itself).to(step)
        return wallaroo.build_application("a", line.to_sink(sink()))

    def visit(metadata: bytes, key: str, state: Any) -> Any:
        state = Total()  # noqa: F841 - what is tested

    def windows(args: list[str]) -> Any:
        line = wallaroo.source("in", source()).key_by(itself).to(wallaroo.count_windows(2).over(Counted))
        return wallaroo.build_application("a", line.to_sink(sink()))

    def stateful(args: list[str]) -> Any:
        made = wallaroo.ApplicationBuilder("a").new_pipeline("p", source())
        return made.to_stateful(Count(), Total, "counts").to_sink(sink()).build()

    for setup in (stateful, windows):
        with testing.run(setup) as app:
            app.send([b"x"])
            assert [letter.code for letter in app.dead_letters] == ["C522"]
    with testing.run(visited) as app:
        app.send([b"x"])
        assert app.visit("reset") == 1
        assert [letter.code for letter in app.dead_letters] == ["C522"] and app.state("count", "x").count == 1


@given(items=some.lists(some.integers(), min_size=1))
def test_operators_in_place_are_none(items: list[int]) -> None:
    def extend(data: Any, state: Any) -> Any:
        state += [data]

    def unite(data: Any, state: Any) -> Any:
        state |= {data}

    for run, state, expected in ((extend, [], items), (unite, set(), set(items))):
        assert guarded(run, 1, state) is run  # and costs nothing
        for item in items:
            run(item, state)
        assert state == expected


class Shared:
    seen: list[str] = []  # noqa: RUF012 - what is tested


class SharedLater:
    table = {"a": 1}  # noqa: RUF012 - what is tested

    def add(self, data: str) -> None:
        self.table[data] = 1


class Meant:
    cache: ClassVar[dict[str, str]] = {}
    names = ["read", "only"]  # noqa: RUF012 - what is tested
    own: list[str] = []  # noqa: RUF012 - what is tested

    def __init__(self) -> None:
        self.own, self.found = [], dict[str, str]()


class Refers:
    def __init__(self) -> None:
        self.found = FOUND


class Stores:
    def add(self, data: str) -> None:
        FOUND.append(data)


class Counts:
    def add(self) -> None:
        global FOUND
        FOUND = []


ONE: list[str] = []


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize(
    ("state", "where"),
    [
        (Shared, "Shared.seen"), (SharedLater, "SharedLater.table"), (Refers, "self.found"), (Stores, "FOUND"),
        (Counts, "global FOUND"), (Made(lambda: ONE), "[]"),
        (type("Heir", (Shared,), {}), "Shared.seen"), (Meant, ""), (dict, ""), (Total, ""), (deque, ""),
    ],
)  # fmt: skip
def test_what_all_keys_share_is_no_state(api: Function, state: Any, where: str) -> None:
    if not where:
        testing.run(api(state, pair)).close()
        return
    with pytest.raises(DiagnosticError) as caught:
        testing.run(api(state, pair))
    (finding,) = caught.value.diagnostics
    assert finding.code == "T234" and f"its state keeps {where}" in finding.message
    assert "is one for all keys of a process, and is not saved with the state" in finding.message
    assert "ClassVar" in finding.fix
