"""Windows of an application between DataFrames against the plain reference: in batches, with watermarks, by a clock."""

import json
import random
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.drawn_windows import Chain, Row, chains, drawn, expected, messages, sessions, shown, ticks_of_end, window
from support.row_stream import (
    BEGIN_MS,
    EPOCH,
    SPAN,
    Writer,
    by_clock,
    ms_of,
    parts,
    stream_of,
    streamed,
    watermarks,
)
from support.row_windows import SCHEMA, arguments, write_program
from wallaroo.testing import run
from wallaroo_runtime.dataframe import load
from wallaroo_runtime.errors import RunError

pytestmark = pytest.mark.jvm
DELAY_MS = 40


@pytest.fixture(scope="module", params=["python", pytest.param("go", marks=pytest.mark.long)])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_program(tmp_path_factory.mktemp("program"), request.param)


@pytest.fixture
def session(spark: Any) -> Any:
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    return spark


def check(rows: Sequence[Any], windows: list[Chain], events: list[dict[str, Any]], **more: Any) -> None:
    """Compare rows of `apply_all` with those of the reference."""
    assert rows and not [row for row in rows if row["dead_letter"] is not None]
    for number, chain in enumerate(windows):
        assert given(rows, number) == expected(chain, events, **more), chain


def given(rows: Sequence[Any], number: int) -> list[tuple[Any, ...]]:
    """Return the windows of a sink."""
    values = [json.loads(row["value"]) for row in rows if row["output"] == f"w{number}"]
    return sorted((each["key"], each["begin"], each["end"], *each["values"]) for each in values)


@pytest.mark.parametrize("order", ["n", ""])
def test_a_batch_gives_all_windows(session: Any, program: Path, order: str) -> None:
    windows, rows = chains(1), drawn(1)
    steps = load(program, arguments(windows))
    frame = session.createDataFrame(random.Random(1).sample(rows, len(rows)), SCHEMA).repartition(4)
    found = steps.apply_all(rows=frame, order_by=order).collect()
    if order:
        check(found, windows, [*messages(rows), *ticks_of_end(windows, rows)])
        return
    assert found and not [row for row in found if row["dead_letter"] is not None]
    in_time = [*messages(sorted(rows, key=lambda row: row[2])), *ticks_of_end(windows, rows)]
    for number, chain in enumerate(windows):
        if len(chain) == 1 and chain[0]["kind"] == "range":  # rows of one time are in any order
            gave, wanted = given(found, number), expected(chain, in_time)
            assert [sorted(row[1:]) for row in gave] == [sorted(row[1:]) for row in wanted], chain


def test_times_in_milliseconds_and_rows_without_one(session: Any, program: Path) -> None:
    windows, rows = chains(4)[:1], drawn(4, 40)
    steps = load(program, arguments(windows, "div(micros, 1000)"))
    frame = session.createDataFrame(rows, SCHEMA).selectExpr("*", "if(n = 7, null, unix_micros(at)) AS micros")
    found = steps.apply_all(rows=frame, order_by="n").persist()
    (letter,) = steps.dead_letters(found).collect()
    assert (letter["code"], letter["at"]) == ("C523", None)
    events = [*messages(rows)[:7], *messages(rows)[8:], *ticks_of_end(windows, rows)]
    check([row for row in found.collect() if row["dead_letter"] is None], windows, events)


def test_open_windows_of_a_batch_go_on_in_a_stream(session: Any, program: Path, tmp_path: Path) -> None:
    windows, rows = chains(5), drawn(5)
    steps = load(program, arguments(windows))
    past, batches = rows[:70], parts(rows[70:], 45)
    found = steps.apply_all(rows=session.createDataFrame(past, SCHEMA), order_by="n", gives_states=True).persist()
    states = session.createDataFrame(steps.states(found).collect(), steps.states(found).schema)
    live = streamed(session, tmp_path, batches).withWatermark("at", f"{DELAY_MS} milliseconds")
    writer = Writer([1])
    writer.rows[-1] = found.collect()
    writer.run(steps.apply_all(rows=live, order_by="n", states=states), tmp_path)
    events = with_watermarks(batches, max(map(len, windows)))
    later = [{**event, "sequence": event["sequence"] + SPAN * len(past)} for event in events]
    latest = max(ms_of(at) for _, _, at, _ in past)
    seam = [
        {"sequence": SPAN * (len(past) - 1) + 1 + level, "tick": latest, "level": level}
        for level in range(max(map(len, windows)))
    ]
    check(writer.all(), windows, [*messages(past), *seam, *later])


@pytest.mark.parametrize("program", ["python"], indirect=True)
def test_windows_after_windows_have_all_of_their_time(session: Any, program: Path, tmp_path: Path) -> None:
    common = {"kind": "range", "delay_ms": 0, "late": "drop", "time": "event"}
    steps = load(program, arguments([[common | {"range_ms": size, "slide_ms": size} for size in (20, 100)]]))
    times = (("a", 5), ("a", 25), ("a", 45), ("a", 65), ("a", 85), ("b", 130))  # all of "a" end by the time of "b"
    rows = [(key, ms, EPOCH + timedelta(milliseconds=BEGIN_MS + ms), ms) for key, ms in times]
    begin = BEGIN_MS + 24  # the time of the first short window
    wanted = ("a", begin, begin + 100, 5, 25, 45, 65, 85)
    found = steps.apply(session.createDataFrame(rows, SCHEMA)).where("key = 'a'").collect()
    assert [(row["key"], row["begin"], row["end"], *row["values"]) for row in found if row["values"]] == [wanted]
    live = streamed(session, tmp_path, [rows[:2], rows[2:]]).withWatermark("at", "0 seconds")
    writer = Writer([])
    writer.run(steps.apply_all(live), tmp_path)
    assert given(writer.all(), 0) == [wanted]


@pytest.mark.parametrize("program", ["python"], indirect=True)
@pytest.mark.parametrize("kind", ["drawn", "sessions"])
def test_times_that_do_not_fit_are_refused(session: Any, program: Path, tmp_path: Path, kind: str) -> None:
    of = {"drawn": lambda time: chains(6, time), "sessions": lambda time: [[sessions(time)]]}[kind]
    by_time, by_arrival = load(program, arguments(of("event"))), load(program, arguments(of("ingest"), ""))
    rows = session.createDataFrame(drawn(6, 5), SCHEMA)
    live = streamed(session, tmp_path, [drawn(6, 5)])
    for call, reason in (
        (lambda: by_arrival.apply_all(rows=rows), "windows by the time of arrival, which rows of a batch do not have"),
        (lambda: by_time.apply_all(rows=live.selectExpr("*", "at AS other").withWatermark("other", "1 second")),
            'its watermark is on the column "other"; event time is `at`'),
    ):  # fmt: skip
        with pytest.raises(RunError, match="R716") as caught:
            call()
        assert reason in str(caught.value)


SEVERAL = """
import wallaroo

class Amounts(wallaroo.Aggregation):
    def initial_accumulator(self):
        return [0]

    def update(self, row, accumulator):
        accumulator[0] += row["amount"]

    def combine(self, left, right):
        return [left[0] + right[0]]

    def output(self, key, accumulator):
        return {"amount": accumulator[0]}

@wallaroo.key_extractor
def nothing(row):
    return ""

def application_setup(args):
    row = {"amount": int}
    orders, returns, others = (
        wallaroo.source(name, wallaroo.DataFrameSourceConfig(row, timestamp=time))
        for name, time in (("orders", "at"), ("returns", "made"), ("others", None))
    )
    if "kafka" in args:
        decoder = wallaroo.Decoder(lambda value: {"amount": int(value)}, 4, ">I")
        topic = wallaroo.KafkaSourceConfig("returns", [("localhost", 9092)], None, decoder)
        returns = wallaroo.source("returns", topic)
    windows = wallaroo.range_windows(wallaroo.hours(1)).over(Amounts)
    found = orders.merge(returns).key_by(nothing).to(windows)
    sums, rest = (wallaroo.DataFrameSinkConfig(row, name=name) for name in ("sums", "rest"))
    return wallaroo.build_application("Several", found.to_sink(sums), others.to_sink(rest))
"""


def test_inputs_that_lack_time_are_refused(session: Any, tmp_path: Path) -> None:
    file = tmp_path / "several.py"
    file.write_text(SEVERAL)
    steps, of_kafka = load(file), load(file, ["kafka"])
    schema, second = "amount BIGINT, at TIMESTAMP, made TIMESTAMP, value STRING", timedelta(seconds=1)
    begin = EPOCH + timedelta(milliseconds=BEGIN_MS)
    batches = [[(1, begin, begin, "1")], [(2, begin + 3602 * second, begin + 3602 * second, "2")]]
    rows = streamed(session, tmp_path, batches, schema)
    marked, made = (rows.withWatermark(column, "1 second") for column in ("at", "made"))
    with pytest.raises(
        RunError, match="R716 the call of `apply` is not usable; orders has a watermark, returns"
    ) as caught:
        steps.apply_all(orders=marked, returns=rows, others=rows)
    assert 'fix: give each input one, e.g. returns=returns.withWatermark("made", "10 minutes")' in str(caught.value)
    with pytest.raises(RunError, match='R716 source "returns" .*it has no column `timestamp`') as caught:
        of_kafka.apply_all(
            orders=marked, returns=rows.drop("made", "value").selectExpr("at", "'1' AS value"), others=rows
        )
    assert 'fix: add it, e.g. .withColumn("timestamp", F.col("at"))' in str(caught.value)
    with pytest.raises(RunError, match="R716 .*`at`"):
        steps.apply_all(orders=rows.drop("at"), returns=rows, others=rows)
    writer = Writer([])  # what declares no time needs none
    writer.run(steps.apply_all(orders=marked, returns=made, others=rows), tmp_path)
    assert (writer.given("sums"), len(writer.given("rest"))) == ([{"amount": 2}], 2)


def with_watermarks(batches: Sequence[Sequence[Row]], levels: int) -> list[dict[str, Any]]:
    """Return rows as events, and after those of each micro-batch its watermark."""
    times = [[ms_of(at) for _, _, at, _ in rows] for rows in batches]
    return [*messages([row for rows in batches for row in rows]), *watermarks(times, levels, DELAY_MS)]


@pytest.mark.long
def test_a_stream_gives_what_the_watermark_has_passed(session: Any, program: Path, tmp_path: Path) -> None:
    windows, batches = chains(2), parts(drawn(2))
    steps = load(program, arguments(windows))
    rows = streamed(session, tmp_path, batches).withWatermark("at", f"{DELAY_MS} milliseconds")
    writer = Writer([1, 3])
    writer.run(steps.apply_all(rows=rows, order_by="n"), tmp_path)
    check(writer.all(), windows, with_watermarks(batches, max(map(len, windows))))


def test_ticks_of_the_clock_are_those_of_the_first_try(session: Any, program: Path, tmp_path: Path) -> None:
    windows = chains(3, "ingest")
    steps = load(program, arguments(windows, ""))
    batches, writer = parts(drawn(3, 60), 30), Writer([0, 2])
    for again in (False, True):
        rows = stream_of(session, tmp_path, 2) if again else streamed(session, tmp_path, batches)
        writer.run(steps.apply_all(rows=rows, order_by="n"), tmp_path)
        time.sleep(0 if again else 2)
    events, done = [], 0
    for tick, now, rows in by_clock(tmp_path, [*writer.rows], batches):
        events.append({"sequence": SPAN * done, "tick": tick})
        for key, value, _, _ in rows:
            done += 1
            events.append({"sequence": SPAN * done, "key": key, "time": now, "value": (value,)})
        done += 1
    check(writer.all(), windows, events, is_of_data=False)


AMOUNTS = """
from datetime import date, datetime
from typing import Annotated

import wallaroo

class Amounts(wallaroo.Aggregation):
    def initial_accumulator(self):
        return [0]

    def update(self, row, accumulator):
        accumulator[0] += row["amount"]

    def combine(self, left, right):
        return [left[0] + right[0]]

    def output(self, key, accumulator, bounds=None):
        return {"begin": bounds.start_ms, "amount": accumulator[0]}

@wallaroo.key_extractor
def nothing(row):
    return ""

def application_setup(args):
    _, kind, time, *hours = args
    row = {"amount": int, "at": date if kind == "date" else Annotated[datetime, kind.upper()]}
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig(row, timestamp=time)).key_by(nothing)
    ends = (
        rows.to(wallaroo.range_windows(wallaroo.hours(int(each))).over(Amounts)).to_sink(
            wallaroo.DataFrameSinkConfig({"begin": int, "amount": int}, name=each)
        )
        for each in hours
    )
    return wallaroo.build_application("Windows", *ends)
"""


@pytest.mark.parametrize(("kind", "zone"), [("date", "Asia/Kolkata"), ("timestamp_ntz", "America/New_York")])
def test_times_without_a_zone_are_those_of_the_test_kit(
    session: Any, changed: Any, tmp_path: Path, kind: str, zone: str
) -> None:
    changed("spark.sql.session.timeZone", zone)
    (file := tmp_path / "days.py").write_text(AMOUNTS)
    moments = [datetime(2026, 3, 8) + timedelta(hours=hour, minutes=30) for hour in (0, 1, 2, 3, 22, 23, 24, 47, 49)]
    rows = [(1 << number, at.date() if kind == "date" else at) for number, at in enumerate(moments)]
    frame = session.createDataFrame(rows, f"amount BIGINT, at {kind}").repartition(2)
    found = load(file, [kind, "at", "24"]).apply(frame).collect()
    with run(file, [kind, "at", "24"]) as app:
        app.send([{"amount": amount, "at": at} for amount, at in rows])
        app.send([{"amount": 0, "at": rows[-1][1] + timedelta(days=9)}])
        expected = [json.loads(row) for row in app.output()]
    given = {row["begin"]: row["amount"] for row in found if row["amount"]}
    assert given == {row["begin"]: row["amount"] for row in expected if row["amount"]}


def test_a_number_that_is_no_integer_is_no_time(session: Any, tmp_path: Path) -> None:
    (file := tmp_path / "days.py").write_text(AMOUNTS)
    rows = session.sql("SELECT 1L AS amount, TIMESTAMP '2026-03-08T00:00:00Z' AS at")
    for sql, kind in (("1.5D", "double"), ("unix_millis(at) / 1000.0", "decimal"), ("true", "boolean")):
        with pytest.raises(RunError, match=f"R716 .*its event time `.*` is {kind}"):
            load(file, ["timestamp", sql, "24"]).apply(rows)
    accepted = [
        load(file, ["timestamp", sql, "24"]).apply(rows)
        for sql in ("CAST(at AS STRING)", "CAST(unix_millis(at) AS STRING)::BIGINT")
    ]
    assert accepted[0].union(accepted[1]).where("amount > 0").count() == 2


def test_states_of_other_windows_are_refused(session: Any, tmp_path: Path) -> None:
    """Two steps of one aggregation change places in the program, and so do the names of their states."""
    (file := tmp_path / "windows.py").write_text(AMOUNTS)
    rows = session.sql("SELECT 1L AS amount, TIMESTAMP '2026-03-08T00:00:00Z' AS at")
    steps = load(file, ["timestamp", "at", "6", "24"])
    states = steps.states(steps.apply_all(rows, gives_states=True))
    stored = states.collect()
    states = session.createDataFrame(stored, states.schema)
    assert sorted(row["name"] for row in stored) == ["Amounts", "Amounts 2"]
    found = [json.loads(row["value"])["amount"] for row in steps.apply_all(rows, states=states).collect()]
    assert sorted(amount for amount in found if amount) == [2, 2]
    with pytest.raises(
        RunError,
        match="R716 the parameter `states` .*the window of state .* written as .*21600000 ms.*now has .*86400000 ms",
    ):
        load(file, ["timestamp", "at", "24", "6"]).apply_all(rows, states=states)


def rekeyed(seed: int) -> list[Chain]:
    """Draw windows, and after each one another one that collects its results under one key, and perhaps a third one."""
    chance, found = random.Random(seed), list[Chain]()
    while len(found) < 8:
        first, *later = (window(chance, "event") for _ in range(chance.choice((2, 2, 3))))
        if all(each["kind"] != "count" for each in later):  # results of one time are in any order
            found.append([first, *(each | {"rekeyed": True} for each in later)])
    return found


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long)])
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
@pytest.mark.parametrize(("wait", "past"), [(0, 70), (40, 0)])
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
