"""Windows that collect the results of other windows under another key, between DataFrames."""

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.drawn_windows import Chain, drawn, expected, messages, shown, ticks_of_end, window
from support.row_stream import SPAN, Writer, ms_of, parts, streamed
from support.row_windows import SCHEMA, arguments, write_program
from wallaroo_runtime.dataframe import load

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module", params=["python", pytest.param("go", marks=pytest.mark.long)])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_program(tmp_path_factory.mktemp("program"), request.param)


@pytest.fixture
def session(spark: Any) -> Any:
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    return spark


def rekeyed(seed: int) -> list[Chain]:
    """Draw windows, and after each one another one that collects its results under one key, and perhaps a third one."""
    chance, found = random.Random(seed), list[Chain]()
    while len(found) < 8:
        first, *later = (window(chance, "event") for _ in range(chance.choice((2, 2, 3))))
        if all(each["kind"] != "count" for each in later):  # results of one time are in any order
            found.append([first, *(each | {"rekeyed": True} for each in later)])
    return found


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("order", ["", "AT", "n"])
def test_windows_of_results_under_another_key_get_them_in_the_order_of_time(
    session: Any, program: Path, seed: int, order: str
) -> None:
    """Whatever the order of rows is, a window of time gets results in the order of their times."""
    windows, rows = rekeyed(seed), [*{row[2]: row for row in drawn(seed)}.values()]
    steps = load(program, arguments(windows))
    given = session.createDataFrame(random.Random(seed).sample(rows, len(rows)), SCHEMA).repartition(4)
    found = steps.apply_all(rows=given, order_by=order).persist()
    rows.sort(key=lambda row: row[3] if order == "n" else row[2])
    events = [*messages(rows), *ticks_of_end(windows, rows)]
    each_a_batch = [  # a stream with a watermark after each row
        {"sequence": SPAN * number + 1 + level, "tick": ms_of(row[2]), "level": level}
        for number, row in enumerate(rows)
        for level in range(max(map(len, windows)))
    ]
    for number, chain in enumerate(windows):
        wanted = sorted_within(expected(chain, events, in_time=True))
        assert sorted_within(shown(steps.select(found, f"w{number}"))) == wanted, chain
        if order != "n" and not any(each.get("delay_ms") or each["kind"] == "count" for each in chain):
            assert sorted_within(expected(chain, [*events, *each_a_batch])) == wanted, chain


def sorted_within(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted((*row[:3], *sorted(row[3:])) for row in rows)


@pytest.mark.parametrize("program", ["python"], indirect=True)
@pytest.mark.parametrize(("wait", "past"), [(0, 0), (0, 70), (40, 0)])
def test_a_stream_loses_no_result_under_another_key(
    session: Any, program: Path, tmp_path: Path, wait: int, past: int
) -> None:
    """The second window waits as long as the watermark and the first one together. A batch may precede the stream."""
    common, chance = {"late": "drop", "time": "event"}, random.Random(wait)
    first = common | {"kind": "session", "gap_ms": 30, "delay_ms": wait}
    second = common | {"kind": "range", "range_ms": 50, "slide_ms": 50, "delay_ms": 2 * wait, "rekeyed": True}
    steps, writer, states = load(program, arguments([[first, second]])), Writer([]), None
    rows = sorted(drawn(7), key=lambda row: row[2])
    if past:
        found = steps.apply_all(rows=session.createDataFrame(rows[:past], SCHEMA), gives_states=True).persist()
        writer.rows[-1] = found.collect()
        states = session.createDataFrame(steps.states(found).collect(), steps.states(found).schema)
    live = sorted(rows[past:], key=lambda row: ms_of(row[2]) + chance.randint(0, wait))
    last = ("a", -1, rows[-1][2] + timedelta(days=1), -1)
    stream = streamed(session, tmp_path, [*parts(live), [last]]).withWatermark("at", f"{wait} milliseconds")
    writer.run(steps.apply_all(rows=stream, states=states), tmp_path)
    values = [value for each in writer.given("w0") for value in each["values"]]
    assert sorted(values) == sorted(row[1] for row in rows)
