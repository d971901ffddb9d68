"""Timers and ttl between DataFrames against the plain reference: in batches, with watermarks, by a clock."""

import json
import random
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from support.row_stream import (
    BEGIN_MS,
    EPOCH,
    SPAN,
    Writer,
    by_clock,
    ends,
    ms_of,
    parts,
    stream_of,
    streamed,
    watermarks,
)
from support.row_timers import CLOSE_MS, SCHEMA, arguments, write_program
from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.errors import RunError

VECTORS = Path(__file__).parents[2] / "topology-schema" / "vectors"
pytestmark = pytest.mark.jvm
DELAY_MS, LEVELS = 40, 2
YEAR_MS = 31_536_000_000
Row = tuple[str, int, str, Any, int]  # as `SCHEMA`
Step = dict[str, Any]
Event = dict[str, Any]
ARRIVAL = """
from datetime import timedelta

import wallaroo

def application_setup(args):
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig({"id": int}))
    kept = rows.key_by(by_id).to(keep).to_sink(wallaroo.DataFrameSinkConfig({"id": int}))
    return wallaroo.build_application("Kept", kept)

@wallaroo.key_extractor
def by_id(row):
    return str(row["id"])
"""
TTL = """
@wallaroo.state_computation("kept", state=list, ttl=timedelta(seconds=5))
def keep(row, state):
    return row
"""
TIMER = """
@wallaroo.state_computation("kept", state=list)
def keep(row, state, timers):
    timers.set("end", after=timedelta(seconds=5))

@keep.timer("end")
def end(key, state, time):
    return wallaroo.Deleted(None)
"""
CLOSE = [{"set": "close", "after": CLOSE_MS}]


def steps_of(seed: int, count: int = 6, scale: int = 1) -> list[Step]:
    """Draw steps: what their timers do, and a ttl; the first one beats, which never ends by itself."""
    chance, found = (
        random.Random(seed),
        [{"timers": {"x": {"gives": True, "ops": [{"set": "x", "after": 70 * scale}]}}}],
    )
    for _ in range(count - 1):
        names, timers = "xy\u00fc"[: chance.choice((1, 2, 3))], {}
        for name in names:
            timers[name] = {
                word: chance.random() < odds for word, odds in (("deletes", 0.2), ("fails", 0.1), ("gives", 0.8))
            }
            timers[name]["appends"] = chance.choice(([], [7]))
            timers[name]["ops"] = ops_of(chance, names, (20, 80, 300, YEAR_MS), scale) if chance.random() < 0.5 else []
        found.append({"timers": timers})
    return [each | {"ttl_ms": scale * chance.choice((0, 0, 90, 400))} for each in found]


def ops_of(chance: random.Random, names: str, after: Sequence[int], scale: int, now: int = 0) -> list[Event]:
    name = chance.choice(names)
    if now and chance.random() < 0.2:
        return [{"set": name, "at": now + scale * chance.choice((-30, 0, 60))}]
    return [{"delete": name}] if chance.random() < 0.15 else [{"set": name, "after": scale * chance.choice(after)}]


def drawn(seed: int, count: int = 100, scale: int = 1) -> list[Row]:
    """Draw rows whose times go forth, and back a little, with silences; all steps have the timer x."""
    chance, now, found = random.Random(seed), BEGIN_MS, list[Row]()
    for number in range(count):
        now += chance.choice((0, 1, 1, 3, 10, 10, 100))
        at = now - chance.choice((0, 0, 0, 20, 60, 200))
        ops = ops_of(chance, "x", (0, 1, 5, 20, 20, 80), scale, at) if chance.random() < 0.7 else []
        value = -1 if chance.random() < 0.08 else number
        found.append((chance.choice("aab\u00e9"), value, json.dumps(ops), EPOCH + timedelta(milliseconds=at), number))
    return found


def message(row: Row, sequence: int, at: int) -> Event:
    return {"sequence": sequence, "key": row[0], "time": at, "value": row[1], "ops": json.loads(row[2])}


def messages(rows: Sequence[Row]) -> list[Event]:
    """Return rows as events of the reference, in their order."""
    return [message(row, SPAN * number, ms_of(row[3])) for number, row in enumerate(rows)]


def expected(step: Step, events: list[Event], time: str) -> tuple[list[Any], list[Any], list[Any]]:
    """Return what a step gives, what is collected of it, and the keys and codes of the dead letters."""
    sys.path.insert(0, str(VECTORS))
    from make_timers import Reference

    ticks = [
        [each for each in events if "tick" in each and each.get("level", level) == level] for level in range(LEVELS)
    ]
    first, second = (
        Reference([step["timers"]], time, step["ttl_ms"]),
        Reference([{"close": {"gives": 1, "deletes": 1}}], time),
    )
    first.run([*(each for each in events if "tick" not in each), *ticks[0]])
    second.run([*({**each, "step": 0, "value": each["now"], "ops": CLOSE} for each in first.outputs), *ticks[1]])
    closed = [each for each in second.outputs if each["timer"]]
    letters = sorted((each["key"], each["code"]) for each in first.dead_letters)
    return sorted(map(row_of, first.outputs)), sorted(map(row_of, closed)), letters


def row_of(given: Any) -> tuple[Any, ...]:
    return (given["key"], given["timer"], given["now"], *given["values"])


def check(described: Sequence[Step], rows: Sequence[Any], events: list[Event], time: str = "watermarks") -> None:
    """Compare rows of `apply_all` with those of the reference."""
    for number, step in enumerate(described):
        given = [
            sorted(row_of(json.loads(row["value"])) for row in rows if row["output"] == f"{sink}{number}")
            for sink in "tc"
        ]
        letters = [row["dead_letter"] for row in rows if row["dead_letter"] is not None]
        failed = sorted(
            (bytes(each["key"]).decode(), each["code"]) for each in letters if each["step"] == f"timed {number}"
        )
        assert (*given, failed) == expected(step, events, time), step
    assert all("timed" in row["dead_letter"]["step"] for row in rows if row["dead_letter"] is not None)


@pytest.fixture(scope="module", params=["python", pytest.param("go", marks=pytest.mark.long)])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_program(tmp_path_factory.mktemp("program"), request.param)


def applied(program: Path, seed: int, scale: int = 1, timestamp: str = "at") -> tuple[Steps, list[Step]]:
    described = steps_of(seed, scale=scale)
    return load(program, arguments(described, timestamp)), described


def test_a_batch_runs_all_timers(session: Any, program: Path) -> None:
    (steps, described), rows = applied(program, 1), drawn(1)
    given = session.createDataFrame(random.Random(1).sample(rows, len(rows)), SCHEMA).repartition(4)
    found = steps.apply_all(rows=given, order_by="n").collect()
    check(described, found, [*messages(rows), *ends(max(ms_of(row[3]) for row in rows), LEVELS)])
    letters = [row["dead_letter"] for row in found if row["dead_letter"] is not None]
    failed = [letter["at_ms"] for letter in letters if letter["error"].endswith("it fails")]
    assert failed and all(BEGIN_MS <= at < BEGIN_MS + 2 * YEAR_MS for at in failed)  # when they were due


def with_watermarks(batches: Sequence[Sequence[Row]]) -> list[Event]:
    times = [[ms_of(row[3]) for row in rows] for rows in batches]
    return [*messages([row for rows in batches for row in rows]), *watermarks(times, LEVELS, DELAY_MS)]


def test_a_stream_runs_what_the_watermark_has_passed(session: Any, program: Path, tmp_path: Path) -> None:
    (steps, described), batches = applied(program, 2), parts(drawn(2), 25)
    rows = streamed(session, tmp_path, batches, SCHEMA).withWatermark("at", f"{DELAY_MS} milliseconds")
    writer = Writer([1, 3])  # their first try is lost, and the query starts again
    writer.run(steps.apply_all(rows=rows, order_by="n"), tmp_path)
    check(described, writer.all(), with_watermarks(batches))


def test_timers_of_a_batch_go_on_in_a_stream(session: Any, program: Path, tmp_path: Path) -> None:
    (steps, described), rows = applied(program, 3), drawn(3)
    past, batches = rows[:50], parts(rows[50:], 25)
    found = steps.apply_all(rows=session.createDataFrame(past, SCHEMA), order_by="n", gives_states=True).persist()
    states = session.createDataFrame(steps.states(found).collect(), steps.states(found).schema)
    shown = steps.show_states(states.where("name LIKE 'timed%'")).collect()
    assert shown and all(isinstance(json.loads(row["value"]), list) for row in shown)
    live = streamed(session, tmp_path, batches, SCHEMA).withWatermark("at", f"{DELAY_MS} milliseconds")
    writer = Writer([1])
    writer.rows[-1] = found.collect()
    writer.run(steps.apply_all(rows=live, order_by="n", states=states), tmp_path)
    later = [{**each, "sequence": each["sequence"] + SPAN * len(past)} for each in with_watermarks(batches)]
    check(described, writer.all(), [*messages(past), *later])


@pytest.mark.parametrize("kind", ["ingest", "event"])
def test_a_clock_runs_timers_without_rows(session: Any, program: Path, tmp_path: Path, kind: str) -> None:
    (steps, described), rows = applied(program, 4, 10, "at" if kind == "event" else ""), drawn(4, 40, 10)
    batches, writer = parts(rows, 20), Writer([0, 2])
    for at in range(len(batches)):
        writer.run(
            steps.apply_all(rows=streamed(session, tmp_path, batches[at : at + 1], SCHEMA), order_by="n"), tmp_path
        )
    for _ in range(2):
        time.sleep(2)  # of the clock
        live = stream_of(session, tmp_path, 2, SCHEMA)
        writer.run(steps.apply_all(rows=live, order_by="n"), tmp_path)
    events, done = list[Event](), 0
    for tick, now, arrived in by_clock(tmp_path, [*writer.rows], batches):
        events.append({"sequence": SPAN * done, "tick": tick})
        for row in arrived:
            done += 1
            events.append(message(row, SPAN * done, now if kind == "ingest" else ms_of(row[3])))
        done += 1
    check(described, writer.all(), events, kind)


@pytest.mark.parametrize("what", ["a ttl", "timers"])
def test_time_of_arrival_in_a_batch_is_refused(session: Any, tmp_path: Path, what: str) -> None:
    file = tmp_path / "arrival.py"
    file.write_text(ARRIVAL + (TIMER if what == "timers" else TTL))
    with pytest.raises(RunError, match="R716") as caught:
        load(file).apply(session.range(1))
    (found,) = caught.value.diagnostics
    assert f'step "kept" has {what} by the time of arrival, which rows of a batch do not have' in str(found)
    assert found.fix.startswith("give each source event time: DataFrameSourceConfig")
