"""Values of each type go from a DataFrame through a worker of each language into a DataFrame, and are the same."""

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

from support.row_stream import Writer, streamed
from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.errors import RunError

pytestmark = pytest.mark.jvm
PYTHON = """
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, NamedTuple

import wallaroo


class Inner(NamedTuple):
    a: int
    when: date | None


@dataclass
class Row:
    number: int
    text: str | None
    is_so: bool | None
    long: int | None
    int_: Annotated[int, "INT"] | None
    short: Annotated[int, "SMALLINT"] | None
    byte: Annotated[int, "TINYINT"] | None
    double: float | None
    float_: Annotated[float, "FLOAT"] | None
    price: Annotated[Decimal, "DECIMAL(10,2)"] | None
    large: Decimal | None
    at: datetime | None
    local: Annotated[datetime, "TIMESTAMP_NTZ"] | None
    day: date | None
    data: bytes | None
    texts: list[str | None]
    counts: dict[str, int | None]
    inner: Inner | None
    inners: list[Inner | None]


class Latest:
    def __init__(self):
        self.row = None


def application_setup(args):
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig(Row)).key_by(by_number).to(keep)
    return wallaroo.build_application("Rows", rows.to_sink(wallaroo.DataFrameSinkConfig(Row)))


@wallaroo.key_extractor
def by_number(row):
    return str(row.number % 7)


@wallaroo.state_computation("latest", state=Latest)
def keep(row, latest):
    latest.row = row
    return row
"""
GO = """
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"wallarooapi/stream"
	"wallarooapi/worker"
)

type Inner struct {
	A    int64      `json:"a"`
	When *time.Time `json:"when" spark:"DATE"`
}

type Row struct {
	Number int64             `json:"number"`
	Text   *string           `json:"text"`
	IsSo   *bool             `json:"is_so"`
	Long   *int64            `json:"long"`
	Int    *int32            `json:"int_"`
	Short  *int16            `json:"short"`
	Byte   *int8             `json:"byte"`
	Double *float64          `json:"double"`
	Float  *float32          `json:"float_"`
	Price  *json.Number      `json:"price" spark:"DECIMAL(10,2)"`
	Large  *json.Number      `json:"large"`
	At     *time.Time        `json:"at"`
	Local  *time.Time        `json:"local" spark:"TIMESTAMP_NTZ"`
	Day    *time.Time        `json:"day" spark:"DATE"`
	Data   *[]byte           `json:"data"`
	Texts  []*string         `json:"texts"`
	Counts map[string]*int64 `json:"counts"`
	Inner  *Inner            `json:"inner"`
	Inners []*Inner          `json:"inners"`
}

type latest struct{ Row *Row }

func byNumber(row Row) string { return fmt.Sprint(row.Number % 7) }

func keep(_ context.Context, row Row, of *latest) (Row, error) {
	of.Row = &row
	return row, nil
}

func setup(args []string) *stream.Application {
	app := stream.New("Rows")
	rows := stream.KeyBy(stream.From(app, "rows", stream.DataFrameSource[Row]()), "by_number", byNumber)
	stream.MapState(rows, "latest", keep).To(stream.DataFrameSink[Row]())
	return app
}

func main() { worker.Main(setup) }
"""
SCHEMA = (  # some of the names are reserved words in SQL
    "number BIGINT, text STRING, is_so BOOLEAN, long BIGINT, int_ INT, short SMALLINT, byte TINYINT, double DOUBLE, "
    "float_ FLOAT, price DECIMAL(10,2), large DECIMAL(38,18), at TIMESTAMP_LTZ, local TIMESTAMP_NTZ, day DATE, "
    "data BINARY, texts ARRAY<STRING>, counts MAP<STRING, BIGINT>, `inner` STRUCT<a: BIGINT, `when`: DATE>, "
    "inners ARRAY<STRUCT<a: BIGINT, `when`: DATE>>"
)
LONG = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
# Before 1900 a time zone of Python may differ from Java's by seconds.
TIMES = st.datetimes(datetime(1901, 1, 1), datetime(9998, 1, 1))
INNER = st.tuples(LONG, st.none() | st.dates())
ROW = st.tuples(
    st.just(0), st.none() | TEXT, st.none() | st.booleans(), st.none() | LONG,
    st.none() | st.integers(-(2**31), 2**31 - 1), st.none() | st.integers(-(2**15), 2**15 - 1),
    st.none() | st.integers(-128, 127), st.none() | st.floats(), st.none() | st.floats(width=32),
    st.none() | st.decimals(-99999999, 99999999, places=2),
    st.none() | st.integers(1 - 10**38, 10**38 - 1).map(lambda number: Decimal(f"{number}E-18")),
    st.none() | TIMES, st.none() | st.datetimes(), st.none() | st.dates(), st.none() | st.binary(max_size=6),
    st.lists(st.none() | TEXT, max_size=3), st.dictionaries(TEXT, st.none() | LONG, max_size=3), st.none() | INNER,
    st.lists(st.none() | INNER, max_size=2),
)  # fmt: skip


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Steps]:
    folder = tmp_path_factory.mktemp("rows")
    (folder / "rows.py").write_text(PYTHON)
    (folder / "go").mkdir()
    (folder / "go" / "main.go").write_text(GO)
    return {"python": load(folder / "rows.py"), "go": load(folder / "go")}


@pytest.fixture(scope="module", params=["python", "go"])
def steps(request: pytest.FixtureRequest, both: dict[str, Steps]) -> Steps:
    return both[request.param]


def shown(value: Any) -> Any:
    """Return a value in a form in which NaN is equal to itself, and rows are tuples."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    if isinstance(value, dict):
        return sorted((key, shown(item)) for key, item in value.items())
    return bytes(value) if isinstance(value, bytearray) else value


def differ(rows: list[tuple[Any, ...]]) -> bool:
    """Return whether some rows differ. In Hypothesis' first example all are as simple as can be, and so equal."""
    return any(row != rows[0] for row in rows)


@settings(max_examples=1, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
@given(drawn=st.lists(ROW, min_size=10, max_size=20).filter(differ))  # Hypothesis gives up lists that are much longer
def test_rows_through_both_languages_are_equal_in_a_batch_and_a_stream(
    spark: Any, both: dict[str, Steps], drawn: list[tuple[Any, ...]]
) -> None:
    def through(frame: Any) -> Any:
        return both["go"].apply(both["python"].apply(frame))

    given = [(number, *drawn[number % len(drawn)][1:]) for number in range(100)]
    frame = spark.createDataFrame(given, SCHEMA)
    with TemporaryDirectory() as folder:
        writer = Writer([1])  # the second micro-batch is tried twice
        writer.run(through(streamed(spark, Path(folder), [given[:60], given[60:]], SCHEMA)), Path(folder))
    assert [len(writer.rows[number]) for number in sorted(writer.rows)] == [60, 40]
    for found in (writer.all(), through(frame).collect()):
        after = sorted(found, key=lambda row: row["number"])
        assert shown(after) == shown(frame.collect())


CHOICES = {
    "ansi.enabled": ("true", "false"),
    "ansi.enforceReservedKeywords": ("false", "true"),
    "timestampType": ("TIMESTAMP_LTZ", "TIMESTAMP_NTZ"),
    "caseSensitive": ("false", "true"),
    "jsonGenerator.ignoreNullFields": ("true", "false"),
    "session.timeZone": ("UTC", "America/New_York", "Asia/Kolkata"),
    "json.enablePartialResults": ("true", "false"),
    "datetime.java8API.enabled": ("false", "true"),
}


HOLES = [(datetime(2026, 3, 8, 1, 30) + timedelta(minutes=30 * step), None, None) for step in range(6)]  # of New York
ENDS = [
    (datetime(2026, 1, 1), Decimal("99999999.99"), date(1, 1, 1)),
    (datetime(2026, 1, 1), Decimal("-0.01"), date(9999, 12, 31)),
]
EDGES = [
    (0, *[None] * 8, price, None, at, at, day or at.date(), None, [], {}, None, []) for at, price, day in HOLES + ENDS
]


@settings(max_examples=1, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(
    chosen=st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()}),
    rows=st.lists(ROW, min_size=30, max_size=60).filter(differ),
)
def test_drawn_rows_come_back_as_they_were_whatever_the_settings_of_the_session(
    spark: Any, changed: Callable[[str, str], None], steps: Steps, chosen: dict[str, str], rows: list[tuple[Any, ...]]
) -> None:
    for name, value in chosen.items():
        changed(f"spark.sql.{name}", value)
    frame = spark.createDataFrame([(number, *row[1:]) for number, row in enumerate(rows + EDGES)], SCHEMA)
    # Bytes of a string that are no text are replaced, as the documentation says.
    frame = frame.withColumn("text", F.expr("if(number = 0, CAST(X'61FF62' AS STRING), text)"))
    found = steps.apply(frame, order_by="number")
    assert found.schema.simpleString() == frame.schema.simpleString()
    texts = [f"CAST({name} AS STRING) AS {name}_text" for name in ("at", "local", "day")]
    before, after = (each.orderBy("number").selectExpr("*", *texts).collect() for each in (frame, found))
    assert after[0]["text"] == "a\ufffdb"
    for given_row, row in zip(before[1:], after[1:], strict=True):
        assert shown(given_row) == shown(row)


def test_times_by_the_rules_of_old_sparks_are_refused(
    spark: Any, changed: Callable[[str, str], None], steps: Steps
) -> None:
    frame = spark.createDataFrame([], SCHEMA)
    rows = steps.apply_all(frame)
    changed("spark.sql.legacy.timeParserPolicy", "LEGACY")
    for call in (lambda: steps.apply(frame), lambda: steps.select(rows, "Rows")):
        with pytest.raises(RunError, match='R716 .*"(?:rows|Rows)" is not usable; it has times or dates') as caught:
            call()
        assert '.conf.set("spark.sql.legacy.timeParserPolicy", "CORRECTED")' in str(caught.value)


WIDE = """
import wallaroo

ROW = {"_corrupt_record": str | None, "text": str, "times": int}
WIDE = {**ROW, "counts": dict[str, int]}

@wallaroo.computation("widen")
def widen(row):
    return {**row, "text": row["text"] * row["times"], "counts": {"é" * 25_000: row["times"]}}

def application_setup(args):
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig(ROW)).to(widen)
    return wallaroo.build_application("Wide", rows.to_sink(wallaroo.DataFrameSinkConfig(WIDE)))
"""


def test_columns_that_spark_would_treat_in_its_own_way(spark: Any, tmp_path: Any) -> None:
    """A column with the name that JSON's reader uses keeps its values, and long texts and keys come through."""
    (tmp_path / "wide.py").write_text(WIDE)
    given = [("a", "x", 1), (None, "y", 2), ("", "z", 30_000_000)]
    frame = spark.createDataFrame(given, "_corrupt_record STRING, text STRING, times BIGINT")
    columns = ("_corrupt_record", "length(text) AS length", "counts[repeat('é', 25000)] AS count")
    found = load(tmp_path / "wide.py").apply(frame).selectExpr(*columns)
    assert sorted(map(tuple, found.collect()), key=lambda row: row[2]) == [
        (mark, times, times) for mark, _, times in given
    ]
