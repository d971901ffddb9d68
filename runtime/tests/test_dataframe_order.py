"""`order_by` gives each key its rows in the order of a column, whatever values of its type there are."""

import random
from datetime import date, datetime, timedelta, timezone
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.errors import RunError

pytestmark = pytest.mark.jvm
PROGRAM = """
import wallaroo

class Count:
    def __init__(self):
        self.rows = 0

@wallaroo.key_extractor
def by_user(row):
    return row["user"]

@wallaroo.state_computation("count", Count)
def count(row, state):
    state.rows += 1
    if row["number"] is None:
        raise ValueError(f"row {state.rows} of {row['user']}")
    return {**row, "place": state.rows}

def application_setup(args):
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig({"user": str, "number": int | None}))
    sink = wallaroo.DataFrameSinkConfig({"user": str, "number": int, "place": int})
    return wallaroo.build_application("Places", rows.key_by(by_user).to(count).to_sink(sink))
"""
LONG = 2**63
EDGES = [None, -LONG, -LONG + 1, -LONG + 2, -(2**62) - 1, -(2**62), -1, 0, 1, 2**62 - 1, 2**62, LONG - 2, LONG - 1]
EPOCH = datetime(1970, 1, 1)
SPRING = datetime(2026, 3, 8, 1)  # in New York the hour that follows is not there


# The places are those of a window of all rows, which the tick at the end of a batch closes.
CLOSING = """
import wallaroo

class All(wallaroo.Aggregation):
    def initial_accumulator(self):
        return []

    def update(self, row, accumulator):
        accumulator.append(row)

    def combine(self, left, right):
        return left + right

    def output(self, key, accumulator):
        return [{"user": row["user"], "number": row["number"], "place": at} for at, row in enumerate(accumulator)]

@wallaroo.key_extractor
def by_user(row):
    return row["user"]

@wallaroo.computation_multi("each")
def each(rows):
    return rows

def application_setup(args):
    row = {"user": str, "number": int, "ms": int}
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig(row, timestamp="ms"))
    closed = rows.key_by(by_user).to(wallaroo.range_windows(wallaroo.hours(24)).over(All)).to(each)
    sink = wallaroo.DataFrameSinkConfig({"user": str, "number": int, "place": int})
    return wallaroo.build_application("Closing", closed.to_sink(sink))
"""


def loaded(factory: pytest.TempPathFactory, program: str) -> Steps:
    file = factory.mktemp("places") / "places.py"
    file.write_text(program)
    return load(file)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    return loaded(tmp_path_factory, PROGRAM)


@pytest.fixture(scope="module")
def closing(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    return loaded(tmp_path_factory, CLOSING)


def drawn(kind: str, chance: random.Random) -> list[Any]:
    """Draw values of a type that differ."""
    if kind.startswith("TIMESTAMP"):
        times = [timedelta(microseconds=chance.randrange(-(10**15), 10**16)) for _ in range(40)]
        spring = [SPRING - EPOCH + timedelta(minutes=15 * step) for step in range(12)]
        zone = None if kind.endswith("NTZ") else timezone.utc
        ends = [datetime(1, 1, 2), datetime(9999, 12, 30, 23, 59, 59, 999_999)]
        found = [*(EPOCH + time for time in (*times, *spring)), *ends]
        return [None, *(time.replace(tzinfo=zone) for time in found)]
    if kind == "DATE":
        return [
            None,
            date(1, 1, 1),
            date(9999, 12, 31),
            *(date.fromordinal(day) for day in chance.sample(range(10**6), 40)),
        ]
    bits = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}[kind]
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    found = {chance.randrange(least, most) >> chance.randrange(bits) for _ in range(40)}
    edges = EDGES if kind == "BIGINT" else [None, least, most]
    return list({*found, *edges})


def key(value: Any) -> tuple[bool, Any]:
    return (value is not None, value or 0 if isinstance(value, int | None) else value)


KINDS = ("BIGINT", "INT", "SMALLINT", "TINYINT", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATE")


@pytest.mark.parametrize(
    ("kind", "ansi"), [*((kind, "true") for kind in KINDS), ("BIGINT", "false"), ("TIMESTAMP_LTZ", "false")]
)
def test_each_value_has_its_place(session: Any, changed: Any, places: Steps, kind: str, ansi: str) -> None:
    changed("spark.sql.ansi.enabled", ansi)
    changed("spark.sql.session.timeZone", "America/New_York")
    chance, given = random.Random(kind), list[Any]()
    for user in "abc":
        values = drawn(kind, chance)
        chance.shuffle(values)
        given += [(user, value) for value in values]
    rows = [(user, number, value) for number, (user, value) in enumerate(given)]
    frame = session.createDataFrame(rows, f"user STRING, number BIGINT, at {kind}").repartition(3)
    found = sorted(places.apply(frame, order_by="at").collect(), key=lambda row: (row["user"], row["place"]))
    expected = sorted(rows, key=lambda row: (row[0], key(row[2])))
    assert [rows[row["number"]] for row in found] == expected


numbers = st.one_of(
    st.none(),
    st.integers(-LONG, LONG - 1),
    st.integers(-LONG, -LONG + 3),
    st.integers(LONG - 4100, LONG - 1),
    st.integers(LONG - 4, LONG - 1),
)


@pytest.mark.parametrize("ticks", [False, True])
@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(numbers, min_size=1, max_size=40), min_size=10, max_size=40), st.integers(1, 4))
def test_all_bigints_and_null_have_places(
    session: Any, places: Steps, closing: Steps, ticks: bool, users: list[list[int | None]], tasks: int
) -> None:
    rows = [(str(user), value) for user, values in enumerate(users) for value in values]
    numbered = [(user, number, value, 0) for number, (user, value) in enumerate(rows)]
    frame = session.createDataFrame(numbered, "user STRING, number BIGINT, at BIGINT, ms BIGINT").repartition(tasks)
    steps = closing if ticks else places
    found = sorted(steps.apply(frame, order_by="at").collect(), key=lambda row: (row["user"], row["place"]))
    expected = sorted(rows, key=lambda row: (row[0], key(row[1])))
    assert [rows[row["number"]] for row in found] == expected


def test_the_first_dead_letter_is_that_of_the_first_row(session: Any, places: Steps) -> None:
    rows = [("a", 1, -5), ("a", None, LONG - 1), ("a", None, 3), ("a", None, -(2**62)), ("a", 2, 7)]
    frame = session.createDataFrame(rows, "user STRING, number BIGINT, at BIGINT").repartition(3)
    with pytest.raises(Exception, match="ValueError: row 1 of a"):
        places.apply(frame, order_by="at").collect()
    letters = places.dead_letters(places.apply_all(frame, order_by="at")).collect()
    # A row that fails leaves no trace in the state.
    assert sorted(row["error"] for row in letters) == [
        "ValueError: row 1 of a",
        "ValueError: row 2 of a",
        "ValueError: row 3 of a",
    ]


def test_an_order_is_a_name(session: Any, places: Steps) -> None:
    frame = session.range(1).selectExpr("'a' AS user", "id AS number")
    with pytest.raises(RunError, match="R716 the call of `apply` is not usable; order_by is a Column") as caught:
        places.apply(frame, order_by=frame.number)  # type: ignore[arg-type]
    assert 'order_by="at"' in str(caught.value)


RESULTS = """
from datetime import datetime, timedelta, timezone

import wallaroo

@wallaroo.key_extractor
def by_key(row):
    return row["key"]

@wallaroo.key_extractor
def one(row):
    return ""

@wallaroo.state_computation("quiet", state=list)
def quiet(row, rows, timers):
    timers.set("over", after=timedelta(milliseconds=30))
    rows.append(row)
    return {**row, "rows": 0, "place": 0} if len(rows) % 2 else None

@quiet.timer("over")
def over(key, rows, time):
    at = datetime.fromtimestamp(time / 1000, timezone.utc)
    return wallaroo.Deleted({"key": key, "at": at, "rows": len(rows), "place": 0})

def placed(name, **more):
    @wallaroo.state_computation(name, state=list, **more)
    def step(row, rows):
        rows.append(row["at"])
        return {**row, "place": len(rows)}
    return step

def application_setup(args):
    row = {"key": str, "at": datetime}
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig(row, timestamp="at")).key_by(by_key).to(quiet)
    ttl = {"ttl": timedelta(days=999)} if "timed" in args else {}
    again = rows.key_by(one).to(placed("first", **ttl)).key_by(by_key).to(placed("second"))
    found = wallaroo.DataFrameSinkConfig(row | {"rows": int, "place": int})
    return wallaroo.build_application("Results", again.key_by(one).to(placed("third")).to_sink(found))
"""
DAY = datetime(2026, 1, 1)
steps_between = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 200)), min_size=1, max_size=60)


@pytest.mark.parametrize("kind", ["plain", "timed"])
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps_between, st.integers(1, 4))
def test_steps_after_timers_get_their_messages_in_the_order_of_time(
    session: Any, tmp_path: Path, kind: str, steps: list[tuple[str, int]], tasks: int
) -> None:
    (file := tmp_path / "results.py").write_text(RESULTS)
    keys, times = [key for key, _ in steps], [*accumulate(step for _, step in steps)]
    rows = [(key, DAY + timedelta(milliseconds=at)) for key, at in zip(keys, times, strict=True)]
    frame = session.createDataFrame(rows[::-1], "key STRING, at TIMESTAMP").repartition(tasks)
    found = sorted(load(file, [kind]).apply(frame, order_by="at").collect(), key=lambda row: row["place"])
    expected = []
    for key in set(keys):
        mine, kept = [at for own, at in zip(keys, times, strict=True) if own == key], 0
        for at, following in zip(mine, [*mine[1:], 10**9], strict=True):
            kept += 1
            expected += [(at, key, 0)] if kept % 2 else []
            if following >= at + 30:
                expected.append((at + 30, key, kept))
                kept = 0
    shown = [((row["at"] - DAY) // timedelta(milliseconds=1), row["key"], row["rows"]) for row in found]
    assert [at for at, _, _ in shown] == sorted(at for at, _, _ in expected)
    assert sorted(shown) == sorted(expected)
