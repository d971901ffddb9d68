"""Rows as messages: what a type is in Spark, and that rows come back as they were."""

import dataclasses
import json
import math
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallaroo


@dataclass
class Inner:
    a: int
    b: str | None


class Pair(NamedTuple):
    left: int
    right: bytes


class Typed(TypedDict):
    name: str
    when: datetime | None


@pytest.mark.parametrize(
    ("kind", "ddl"),
    [
        (str, "STRING NOT NULL"),
        (bool, "BOOLEAN NOT NULL"),
        (int, "BIGINT NOT NULL"),
        (Annotated[int, "int"], "INT NOT NULL"),
        (Annotated[int, "SMALLINT"] | None, "SMALLINT"),
        (float, "DOUBLE NOT NULL"),
        (Annotated[float, "FLOAT"], "FLOAT NOT NULL"),
        (Decimal, "DECIMAL(38,18) NOT NULL"),
        (Annotated[Decimal, "DECIMAL(10, 2)"], "DECIMAL(10,2) NOT NULL"),
        (bytes, "BINARY NOT NULL"),
        (datetime, "TIMESTAMP NOT NULL"),
        (Annotated[datetime | None, "TIMESTAMP_NTZ"], "TIMESTAMP_NTZ"),
        (date, "DATE NOT NULL"),
        (list[str | None], "ARRAY<STRING> NOT NULL"),
        (dict[str, list[int]], "MAP<STRING, ARRAY<BIGINT>> NOT NULL"),
        (Inner, "STRUCT<a: BIGINT NOT NULL, b: STRING> NOT NULL"),
        (Pair | None, "STRUCT<left: BIGINT NOT NULL, right: BINARY NOT NULL>"),
        (Typed, "STRUCT<name: STRING NOT NULL, when: TIMESTAMP> NOT NULL"),
    ],
)
def test_each_type_has_one_of_spark(kind: Any, ddl: str) -> None:
    assert wallaroo.Rows({"x": kind}).schema == f"x {ddl}"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (int, "a dataclass, a NamedTuple"),
        ({}, "a dataclass, a NamedTuple"),
        ({"x": complex}, 'column "x": complex is no type of a column'),
        ({"x": int | str}, "has several types"),
        ({"x": dict[int, str]}, "is no type of a column"),
        ({"x": list}, "is no type of a column"),
        ({"x": Annotated[str, "INT"]}, "str cannot be INT"),
        ({"x": Annotated[Decimal, "DECIMAL(40,2)"]}, "DECIMAL(40,2) is no type"),
        ({"x": Annotated[list[int], "INT"]}, "cannot be INT"),
        ({"x": int, "X": int}, "differ in more than case"),
    ],
)
def test_what_spark_has_not_is_refused(row: Any, reason: str) -> None:
    with pytest.raises(wallaroo.WallarooParameterError, match="T207") as caught:
        wallaroo.Rows(row)
    assert reason in str(caught.value)
    for config in (wallaroo.DataFrameSourceConfig, wallaroo.DataFrameSinkConfig):
        with pytest.raises(wallaroo.WallarooParameterError, match=f"T207 {config.__name__}: parameter row is"):
            config(row)


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        (int, None, "is null"),
        (int, True, "has True (bool); expected int"),
        (int, 1 << 63, "64 bits"),
        (Annotated[int, "TINYINT"], 128, "8 bits"),
        (str, 5, "expected str"),
        (str, "\ud800", "UTF-8"),
        (Annotated[float, "FLOAT"], 1e39, "32 bits"),
        (Annotated[Decimal, "DECIMAL(4,2)"], Decimal("100"), "without rounding"),
        (Annotated[Decimal, "DECIMAL(4,2)"], Decimal("1.234"), "without rounding"),
        (Annotated[Decimal, "DECIMAL(4,2)"], Decimal("1E-999999"), "without rounding"),
        (Decimal, Decimal("NaN"), "expected Decimal"),
        (datetime, datetime(2026, 1, 1), "with a zone"),
        (Annotated[datetime, "TIMESTAMP_NTZ"], datetime(2026, 1, 1, tzinfo=timezone.utc), "without a zone"),
        (datetime, datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "date value out of range"),
        (float, 10**400, "too large"),
        (list[float], [10**400], "too large"),
        (float, 2**53 + 1, "an int that DOUBLE holds without rounding"),
        (Annotated[float, "FLOAT"], 2**24 + 1, "an int that FLOAT holds without rounding"),
        (date, datetime(2026, 1, 1), "expected date"),
        (list[int], [1, None], 'column "x[1]" is null; declare list[int | None] to take that'),
        (list[int] | None, [1, "a"], "column \"x[1]\" has 'a' (str); expected int"),
        (list[list[str]], [["a", None]], 'column "x[0][1]" is null; declare list[str | None] to take that'),
        (list[list[str]], [None], 'column "x[0]" is null; declare list[list[str] | None] to take that'),
        (dict[str, list[int]], {"k": [None]}, "column \"x['k'][0]\" is null; declare list[int | None]"),
        (dict[str, bool], {"k": None}, "column \"x['k']\" is null; declare dict[str, bool | None]"),
        (list[Inner], [Inner(1, 2)], 'column "x[0].b" has 2 (int)'),  # type: ignore[arg-type]
        (list[Inner], [None], 'column "x[0]" is null; declare list[Inner | None]'),
        (dict[str, int], {1: 2}, "expected str"),
        (dict[str, int], {"é" * 25_001: 2}, 'column "x" has a key of 50,002 bytes; a key of a MAP has at most 50,000'),
        (Inner, Inner(1, 2), 'column "x.b"'),  # type: ignore[arg-type]
    ],
)
def test_what_a_column_cannot_hold_names_it(kind: Any, value: Any, reason: str) -> None:
    with pytest.raises(ValueError, match='column "x') as caught:
        wallaroo.Rows({"x": kind}).encode({"x": value})
    assert reason in str(caught.value)


class Unshown:
    """An object that has no text."""

    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    "value", [{"x" * 10_000: None}, {"x": "y" * 10_000}, {"x": 10**5000}, {"x": Unshown()}, "x" * 999]
)
def test_an_error_is_short_and_names_the_column_whatever_the_value_is(value: Any) -> None:
    with pytest.raises(ValueError, match='^column "a') as caught:
        wallaroo.Rows({"a": dict[str, int]}).encode({"a": value})
    assert len(str(caught.value)) < 200


def test_rows_that_are_none_name_the_column() -> None:
    rows = wallaroo.Rows(Inner)
    for text, reason in (
        ('{"b": ""}', '"a" is missing'),
        ('{"a": null}', '"a" is null'),
        ('{"a": "1"}', "expected int"),
    ):
        with pytest.raises(ValueError, match=reason):
            rows.decode(text.encode())
    with pytest.raises(ValueError, match="expected Inner"):
        rows.encode({"a": 1, "b": None})
    with pytest.raises(ValueError, match="no column 'c'"):
        wallaroo.Rows({"a": int}).encode({"a": 1, "c": 2})


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    """Draw numbers with up to so many digits, some of them after the point."""
    most = 10**digits - 1
    return st.integers(-most, most).map(lambda number: Decimal(f"{number}E-{scale}"))


SMALL = st.integers(-(2**31), 2**31 - 1)
ZONES = st.sampled_from([timezone.utc, timezone(timedelta(hours=-7, minutes=30))])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SIMPLE: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, TEXTS),
    (bool, st.booleans()),
    (int, st.integers(-(2**63), 2**63 - 1)),
    (Annotated[int, "INT"], SMALL),
    (float, st.floats(allow_nan=True, allow_infinity=True)),
    (Decimal, decimals(38, 18)),
    (Annotated[Decimal, "DECIMAL(38,0)"], decimals(38, 0)),
    (Annotated[Decimal, "DECIMAL(38,38)"], decimals(38, 38)),
    (Annotated[Decimal, "DECIMAL(10,2)"], decimals(10, 2)),
    (bytes, st.binary(max_size=8)),
    (datetime, st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES)),
    (Annotated[datetime, "TIMESTAMP_NTZ"], st.datetimes()),
    (date, st.dates()),
]


@st.composite
def typed(draw: st.DrawFn, depth: int = 0) -> tuple[Any, st.SearchStrategy[Any]]:
    """Draw a type of a column, and what gives its values."""
    form = draw(st.integers(0, 4 if depth < 2 else 0))
    if form == 0:
        return draw(st.sampled_from(SIMPLE))
    kind, values = draw(typed(depth + 1))
    if form == 1:
        return kind | None, st.none() | values
    if form == 2:
        return list[kind], st.lists(values, max_size=3)  # type: ignore[valid-type]
    if form == 3:
        return dict[str, kind], st.dictionaries(TEXTS, values, max_size=3)  # type: ignore[valid-type]
    row = dataclasses.make_dataclass("Row", [("x", kind), ("y", str)])
    return row, st.builds(row, values, TEXTS)


def same(left: Any, right: Any) -> bool:
    """Compare, NaN with itself too."""
    if isinstance(left, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if dataclasses.is_dataclass(left):
        return type(left) is type(right) and same(vars(left), vars(right))
    return bool(left == right and type(left) is type(right))


@given(st.data())
def test_drawn_rows_come_back_as_they_were(data: st.DataObject) -> None:
    columns = data.draw(st.lists(typed(), min_size=1, max_size=4))
    rows = wallaroo.Rows({f"c{number}": kind for number, (kind, _) in enumerate(columns)})
    message = {f"c{number}": data.draw(values) for number, (_, values) in enumerate(columns)}
    written = rows.encode(message)
    assert same(rows.decode(written), message)
    json.loads(written, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def test_an_application_of_dataframes_in_the_test_kit() -> None:
    from wallaroo import testing

    def application_setup(args: list[str]) -> wallaroo.Application:
        rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig(Inner))
        named = rows.to(wallaroo.Computation(lambda inner: {"text": inner.b * inner.a}, "repeat"))
        return wallaroo.build_application("Rows", named.to_sink(wallaroo.DataFrameSinkConfig({"text": str})))

    with testing.run(application_setup) as app:
        app.send([Inner(2, "ab"), b'{"a": 1, "b": "c"}', b'{"a": "x", "b": "c"}'])
        assert app.output() == [b'{"text":"abab"}', b'{"text":"c"}']
        assert [letter.code for letter in app.dead_letters] == ["C505"]
