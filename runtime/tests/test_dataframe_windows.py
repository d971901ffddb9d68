"""Windows of an application between DataFrames against the plain reference: in batches, with watermarks, by a clock."""

import json
import random
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from support.row_windows import SCHEMA, arguments, write_program
from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.errors import RunError

VECTORS = Path(__file__).parents[2] / "topology-schema" / "vectors"
pytestmark = pytest.mark.jvm
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
BEGIN_MS = 1_767_225_600_000  # of 2026
DELAY_MS = 40
SPAN = 10  # sequences from one row to the next, so that ticks have room
END_MS, SILENCE_MS = 1 << 60, 1 << 50
LATE = ("drop", "fire_per_message", "place_in_oldest_window")
Row = tuple[str, int, datetime, int]  # as `SCHEMA`
Chain = list[dict[str, Any]]


def window(chance: random.Random, time: str) -> dict[str, Any]:
    if chance.random() < 0.2:
        return {"kind": "count", "count": chance.randint(1, 5), "flush_ms": 5000}
    size = chance.randint(1, 60)
    slide, delay, late = chance.randint(1, size), chance.choice((0, 0, 7, 90)), chance.choice(LATE)
    if chance.random() < 0.4:
        return {"kind": "session", "gap_ms": size, "delay_ms": delay, "late": late, "time": time}
    return {"kind": "range", "range_ms": size, "slide_ms": slide, "delay_ms": delay, "late": late, "time": time}


def chains(seed: int, time: str = "event") -> list[Chain]:
    """Draw windows, and some after others."""
    chance = random.Random(seed)
    every = {"kind": "range", "range_ms": 20, "slide_ms": 6, "delay_ms": 0, "late": "drop", "time": time}
    return [
        [every],
        [sessions(time)],
        *([window(chance, time) for _ in range(chance.choice((1, 1, 2)))] for _ in range(6)),
    ]


def sessions(time: str) -> dict[str, Any]:
    return {"kind": "session", "gap_ms": 30, "delay_ms": 7, "late": "drop", "time": time}


def drawn(seed: int, count: int = 160) -> list[Row]:
    """Draw rows whose times go forth, and back a little, with silences."""
    chance, now, found = random.Random(seed), BEGIN_MS, []
    for number in range(count):
        now += chance.choice((0, 1, 1, 3, 10, 10, 300))
        at = EPOCH + timedelta(milliseconds=now - chance.choice((0, 0, 0, 20, 60, 200)))
        found.append((chance.choice("aab\u00e9"), number, at, number))
    return found


def ms_of(time: datetime) -> int:
    return (time - EPOCH) // timedelta(milliseconds=1)


def messages(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return rows as events of the reference, in their order."""
    return [
        {"sequence": SPAN * number, "key": key, "time": ms_of(at), "value": (value,)}
        for number, (key, value, at, _) in enumerate(rows)
    ]


def expected(chain: Chain, events: list[dict[str, Any]], *, is_of_data: bool = True) -> list[tuple[Any, ...]]:
    """Return what windows one after the other give; each takes the ticks of its level, or those that have none."""
    sys.path.insert(0, str(VECTORS))
    from make_windows import Reference

    ticks = [event for event in events if "tick" in event]
    events = [event for event in events if "tick" not in event]
    for level, described in enumerate(chain):
        events = [*events, *(event for event in ticks if event.get("level", level) == level)]
        values: list[tuple[int, ...]] = [event.get("value", ()) for event in events]
        reference = Reference(described, has_watermarks=is_of_data)
        reference.run([each if "tick" in each else {**each, "value": at} for at, each in enumerate(events)])
        assert not [each for each in reference.given if each.code]
        found = [(each, sum((values[at] for at in each.values), ())) for each in reference.given]
        events = [
            {"sequence": each.sequence, "key": each.key, "time": each.time, "value": all_} for each, all_ in found
        ]
    return sorted((each.key, *each.bounds, *all_) for each, all_ in found)


def shown(rows: Any) -> list[tuple[Any, ...]]:
    return sorted((row["key"], row["begin"], row["end"], *row["values"]) for row in rows.collect())


@pytest.fixture(scope="module", params=["python", pytest.param("go", marks=pytest.mark.long)])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_program(tmp_path_factory.mktemp("program"), request.param)


@pytest.fixture
def session(spark: Any) -> Any:
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    return spark


def check(steps: Steps, rows: Any, windows: list[Chain], events: list[dict[str, Any]], **more: Any) -> None:
    for number, chain in enumerate(windows):
        assert shown(steps.select(rows, f"w{number}")) == expected(chain, events, **more), chain


def ends(windows: list[Chain], rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the ticks at the end of a batch."""
    times = (max(ms_of(at) for _, _, at, _ in rows), END_MS, END_MS + SILENCE_MS)
    places = [(level, number) for level in range(max(map(len, windows))) for number in range(3)]
    return [
        {"sequence": (1 << 60) + at, "tick": times[number], "level": level}
        for at, (level, number) in enumerate(places)
    ]


@pytest.mark.parametrize("order", ["n", ""])
def test_a_batch_gives_all_windows(session: Any, program: Path, order: str) -> None:
    windows, rows = chains(1), drawn(1)
    steps = load(program, arguments(windows))
    given = session.createDataFrame(random.Random(1).sample(rows, len(rows)), SCHEMA).repartition(4)
    found = steps.apply_all(rows=given, order_by=order).persist()
    assert not steps.dead_letters(found).count()
    if order:
        check(steps, found, windows, [*messages(rows), *ends(windows, rows)])
        return
    in_time = [*messages(sorted(rows, key=lambda row: row[2])), *ends(windows, rows)]
    for number, chain in enumerate(windows):
        if len(chain) == 1 and chain[0]["kind"] == "range":  # rows of one time are in any order
            gave, wanted = shown(steps.select(found, f"w{number}")), expected(chain, in_time)
            assert [sorted(row[1:]) for row in gave] == [sorted(row[1:]) for row in wanted], chain


def test_times_in_milliseconds_and_rows_without_one(session: Any, program: Path) -> None:
    windows, rows = chains(4)[:1], drawn(4, 40)
    steps = load(program, arguments(windows, "div(micros, 1000)"))
    given = session.createDataFrame(rows, SCHEMA).selectExpr("*", "if(n = 7, null, unix_micros(at)) AS micros")
    found = steps.apply_all(rows=given, order_by="n").persist()
    check(steps, found, windows, [*messages(rows)[:7], *messages(rows)[8:], *ends(windows, rows)])
    (letter,) = steps.dead_letters(found).collect()
    assert (letter["code"], letter["at"]) == ("C523", None)


def test_open_windows_of_a_batch_go_on_in_a_stream(session: Any, program: Path, tmp_path: Path) -> None:
    windows, rows = chains(5), drawn(5)
    steps = load(program, arguments(windows))
    past, batches = rows[:70], parts(rows[70:])
    found = steps.apply_all(rows=session.createDataFrame(past, SCHEMA), order_by="n", gives_states=True).persist()
    states = session.createDataFrame(steps.states(found).collect(), steps.states(found).schema)
    live = streamed(session, tmp_path, batches).withWatermark("at", f"{DELAY_MS} milliseconds")
    writer = Writer(steps, [1])
    writer.rows[-1] = found.collect()
    writer.run(steps.apply_all(rows=live, order_by="n", states=states), tmp_path)
    events = with_watermarks(batches, max(map(len, windows)))
    later = [{**event, "sequence": event["sequence"] + SPAN * len(past)} for event in events]
    writer.check(windows, [*messages(past), *later])


@pytest.mark.parametrize("program", ["python"], indirect=True)
def test_windows_after_windows_have_all_of_their_time(session: Any, program: Path, tmp_path: Path) -> None:
    common = {"kind": "range", "delay_ms": 0, "late": "drop", "time": "event"}
    steps = load(program, arguments([[common | {"range_ms": size, "slide_ms": size} for size in (20, 100)]]))
    times = (("a", 5), ("a", 25), ("a", 45), ("a", 65), ("a", 85), ("b", 130))  # all of "a" end by the time of "b"
    rows = [(key, ms, EPOCH + timedelta(milliseconds=BEGIN_MS + ms), ms) for key, ms in times]
    begin = BEGIN_MS + 24  # the time of the first short window
    wanted = ("a", begin, begin + 100, 5, 25, 45, 65, 85)
    found = shown(steps.apply(session.createDataFrame(rows, SCHEMA)))
    assert [row for row in found if row[0] == "a" and len(row) > 3] == [wanted]
    live = streamed(session, tmp_path, [rows[:2], rows[2:]]).withWatermark("at", "0 seconds")
    writer = Writer(steps, [])
    writer.run(steps.apply_all(live), tmp_path)
    given = [json.loads(row["value"]) for number in sorted(writer.rows) for row in writer.rows[number]]
    assert [(each["key"], each["begin"], each["end"], *each["values"]) for each in given] == [wanted]


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


def streamed(session: Any, folder: Path, batches: Sequence[Sequence[Row]]) -> Any:
    """Return rows as a stream with a micro-batch for each part."""
    for rows in batches:
        session.createDataFrame(rows, SCHEMA).coalesce(2).write.mode("append").parquet(str(folder / "in"))
        time.sleep(0.01)  # files are read in the order of their times
    return stream_of(session, folder, len(list((folder / "in").glob("*.parquet"))) // len(batches))


def stream_of(session: Any, folder: Path, files: int) -> Any:
    reader = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files)
    return reader.parquet(str(folder / "in"))


class Unlucky(Exception):
    """Ends a query in the middle of a micro-batch."""


class Writer:
    """Takes the rows of micro-batches; the first try of some of them fails after it was computed.

    Attributes:
        rows: By number of the micro-batch.
    """

    def __init__(self, steps: Steps, fails_at: Sequence[int]) -> None:
        self.steps, self.fails_at, self.rows = steps, set(fails_at), dict[int, list[Any]]()

    def __call__(self, rows: Any, number: int) -> None:
        found = rows.collect()
        if number in self.fails_at:
            self.fails_at.remove(number)
            raise Unlucky
        self.rows[number] = found

    def run(self, frame: Any, folder: Path) -> None:
        """Process all that is there, as often as it takes."""
        while True:
            writer = frame.writeStream.foreachBatch(self).option("checkpointLocation", str(folder / "checkpoint"))
            query = writer.trigger(availableNow=True).start()
            try:
                query.awaitTermination()
                return
            except StreamingQueryException as error:
                assert "Unlucky" in str(error), error

    def check(self, windows: list[Chain], events: list[dict[str, Any]], **more: Any) -> None:
        rows = [row for number in sorted(self.rows) for row in self.rows[number]]
        assert rows and not [row for row in rows if row["dead_letter"] is not None]
        for number, chain in enumerate(windows):
            found = [json.loads(row["value"]) for row in rows if row["output"] == f"w{number}"]
            shown = sorted((each["key"], each["begin"], each["end"], *each["values"]) for each in found)
            assert shown == expected(chain, events, **more), chain


def with_watermarks(batches: Sequence[Sequence[Row]], levels: int) -> list[dict[str, Any]]:
    """Return rows as events, and after those of each micro-batch its watermark."""
    events = messages([row for rows in batches for row in rows])
    done, latest = 0, -END_MS
    for rows in batches:
        latest = max([latest, *(ms_of(at) for _, _, at, _ in rows)])
        done += len(rows)
        ticks = ({"tick": latest - DELAY_MS, "level": at, "sequence": SPAN * (done - 1) + 1 + at} for at in range(levels))
        events += ticks
    return events


def parts(rows: list[Row], size: int = 30) -> list[list[Row]]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def test_a_stream_gives_what_the_watermark_has_passed(session: Any, program: Path, tmp_path: Path) -> None:
    windows, batches = chains(2), parts(drawn(2))
    steps = load(program, arguments(windows))
    rows = streamed(session, tmp_path, batches).withWatermark("at", f"{DELAY_MS} milliseconds")
    writer = Writer(steps, [1, 3])
    writer.run(steps.apply_all(rows=rows, order_by="n"), tmp_path)
    writer.check(windows, with_watermarks(batches, max(map(len, windows))))


def test_ticks_of_the_clock_are_those_of_the_first_try(session: Any, program: Path, tmp_path: Path) -> None:
    windows = chains(3, "ingest")
    steps = load(program, arguments(windows, ""))
    batches, writer = parts(drawn(3, 60), 20), Writer(steps, [0, 2])
    for at in range(len(batches)):
        rows = streamed(session, tmp_path, batches[at : at + 1])
        writer.run(steps.apply_all(rows=rows, order_by="n"), tmp_path)
    time.sleep(2)
    writer.run(steps.apply_all(rows=stream_of(session, tmp_path, 2), order_by="n"), tmp_path)
    events, done, read = [], 0, -1
    for number in sorted(writer.rows):
        meta, tick, files = (tmp_path / "checkpoint" / "offsets" / str(number)).read_text().splitlines()[1:]
        now, upto = json.loads(meta)["batchTimestampMs"], -1 if files == "-" else json.loads(files)["logOffset"]
        assert int(tick) <= now
        events.append({"sequence": SPAN * done, "tick": int(tick)})
        for key, value, _, _ in batches[upto] if upto > read else []:
            done += 1
            events.append({"sequence": SPAN * done, "key": key, "time": now, "value": (value,)})
        read, done = upto, done + 1
    assert read == len(batches) - 1
    writer.check(windows, events, is_of_data=False)
