"""Rows that a test sends have the time of their column, so that windows by event time can be tested."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Annotated, Any, NamedTuple

import pytest

import wallaroo
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.message.timer import FIRST_MS
from wallaroo.testing import Message, run
from wallaroo_runtime.memory.message import with_row_time

BEGIN = datetime(2026, 1, 31, tzinfo=timezone.utc)


class Amounts(wallaroo.Aggregation):
    def initial_accumulator(self) -> list[int]:
        return [0]

    def update(self, row: Any, accumulator: list[int]) -> None:
        accumulator[0] += row["amount"] if isinstance(row, dict) else row.amount

    def combine(self, left: list[int], right: list[int]) -> list[int]:
        return [left[0] + right[0]]

    def output(self, key: str, accumulator: list[int]) -> dict[str, int]:
        return {"amount": accumulator[0]}


@wallaroo.key_extractor
def nothing(row: Any) -> str:
    return ""


@dataclass(slots=True)
class Sale:
    amount: int
    at: datetime | None


class Tuple(NamedTuple):
    amount: int
    at: int


def application(row: Any, timestamp: str) -> Callable[[Any], Any]:
    def setup(args: Any) -> Any:
        rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig(row, timestamp=timestamp))
        days = rows.key_by(nothing).to(wallaroo.range_windows(wallaroo.hours(24)).over(Amounts))
        return wallaroo.build_application("Days", days.to_sink(wallaroo.DataFrameSinkConfig({"amount": int})))

    return setup


def ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)


NAIVE = Annotated[datetime, "TIMESTAMP_NTZ"]


@pytest.mark.parametrize(
    ("row", "timestamp", "made"),
    [
        (Sale, "At", Sale),
        (Sale, "`at`", lambda amount, at: json.dumps({"amount": amount, "at": at.isoformat()}).encode()),
        (Tuple, "at", lambda amount, at: Tuple(amount, ms(at))),
        ({"amount": int, "at": date}, "at", lambda amount, at: {"amount": amount, "at": at.date()}),
        ({"amount": int, "at": NAIVE}, "at", lambda amount, at: {"amount": amount, "at": at.replace(tzinfo=None)}),
        (Sale, "at + INTERVAL 1 DAY", lambda amount, at: Message(Sale(amount, at), time_ms=ms(at))),
    ],
)
def test_windows_go_by_the_column_that_the_source_names(row: Any, timestamp: str, made: Callable[..., Any]) -> None:
    with run(application(row, timestamp)) as app:
        app.send([made(1, BEGIN), made(2, BEGIN), made(4, BEGIN + timedelta(days=1))])
        assert app.output() == [b'{"amount":3}']
        app.send([made(8, BEGIN + timedelta(days=2))])
        assert (app.output()[1:], app.dead_letters) == ([b'{"amount":4}'], [])


NOON, BEFORE = 1_769_860_800_000, FIRST_MS - 1
TIMES = [  # as in `TestTheTimeOfARowIsThatOfSpark` of Go's kit: the column in JSON, and the time in milliseconds
    ("7", 7), ("-9007199254740993", -9007199254740993), ('"2026-01-31T12:00:00Z"', NOON),
    ('"2026-01-31T12:00:00.000123Z"', NOON), ('"2026-01-31T14:00:00+02:00"', NOON), ('"2026-01-31T12:00:00"', NOON),
    ('"2026-01-31 12:00:00"', NOON), ('"2026-01-31"', NOON - 43_200_000), ("null", BEFORE),
    ('"soon"', "'soon'"), ('""', "''"), ('"2026-13-31"', "'2026-13-31'"), ("7.5", "7.5"), ("7.0", "7.0"),
    ("true", "True"), ("9223372036854775808", "9223372036854775808"), ("[7]", "[7]"),
]  # fmt: skip


@pytest.mark.parametrize(("column", "time"), TIMES)
def test_the_time_of_a_row_is_that_of_spark(column: str, time: Any) -> None:
    with run(application(Sale, "at")) as app:
        row = Message(b'{"at": %s}' % column.encode())
        if not isinstance(time, str):
            assert with_row_time(app._engine.source(""), row).time_ms == time
            return
        with pytest.raises(DiagnosticError) as caught:
            app.send([row])
        assert str(caught.value.diagnostics[0]) == (
            f'R721 source "rows" cannot take {time}; it is column at; expected a TIMESTAMP, a DATE or an integer of '
            "milliseconds\n  fix: give such a value"
        )


@pytest.mark.parametrize("row", [Sale(1, BEGIN), b'{"amount": 1, "at": "2026-01-31T00:00:00Z"}'])
def test_a_time_that_only_spark_evaluates_is_asked_for(row: Any) -> None:
    with run(application(Sale, "at + INTERVAL 1 DAY")) as app:
        with pytest.raises(DiagnosticError, match="R721 .* is the SQL `at . INTERVAL 1 DAY`, which only"):
            app.send([row])
        app.send([Message(row, time_ms=ms(BEGIN)), b"{"])
        assert [letter.code for letter in app.dead_letters] == ["C505"]


def test_rows_without_a_time_are_dead_letters() -> None:
    with run(application(Sale, "at")) as app:
        app.send([Sale(1, BEGIN), Sale(2, None), b'{"amount": 4, "at": null}', b'{"amount": "4", "at": 7}', b"{"])
        assert [letter.code for letter in app.dead_letters] == ["C523", "C523", "C505", "C505"]
