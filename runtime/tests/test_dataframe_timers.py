"""Timers and ttl between DataFrames against the plain reference: after batches, and by a clock.

test_dataframe_counts.py has one batch, and one stream with watermarks.
"""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from support.drawn_timers import (
    DELAY_MS,
    LEVELS,
    Event,
    Step,
    check,
    drawn,
    message,
    messages,
    steps_of,
    with_watermarks,
)
from support.row_stream import SPAN, Writer, by_clock, ends, ms_of, parts, stream_of, streamed
from support.row_timers import SCHEMA, arguments, write_program
from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.errors import RunError

pytestmark = pytest.mark.jvm
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


@pytest.fixture(scope="module", params=["python", pytest.param("go", marks=pytest.mark.long)])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_program(tmp_path_factory.mktemp("program"), request.param)


def applied(program: Path, seed: int, scale: int = 1, timestamp: str = "at") -> tuple[Steps, list[Step]]:
    described = steps_of(seed, scale=scale)
    return load(program, arguments(described, timestamp)), described


def test_timers_of_a_batch_go_on_in_a_stream_and_in_a_batch_without_rows(
    session: Any, program: Path, tmp_path: Path
) -> None:
    (steps, described), rows = applied(program, 3), drawn(3)
    past, batches = rows[:50], parts(rows[50:], 25)
    found = steps.apply_all(rows=session.createDataFrame(past, SCHEMA), order_by="n", gives_states=True).persist()
    first, kept = found.collect(), steps.states(found)
    states = session.createDataFrame(kept.collect(), kept.schema)
    shown = steps.show_states(states.where("name LIKE 'timed%'")).collect()
    assert shown and all(isinstance(json.loads(row["value"]), list) for row in shown)
    last = steps.apply_all(rows=session.createDataFrame([], SCHEMA), order_by="n", states=states).collect()
    latest = max(ms_of(row[3]) for row in past)
    at_end = [tick for tick in ends(latest, LEVELS) if tick["tick"] != latest]  # no batch has a tick of that time
    check(described, [*first, *last], [*messages(past), *at_end])
    live = streamed(session, tmp_path, batches, SCHEMA).withWatermark("at", f"{DELAY_MS} milliseconds")
    writer = Writer([1])
    writer.rows[-1] = first
    writer.run(steps.apply_all(rows=live, order_by="n", states=states), tmp_path)
    later = [{**each, "sequence": each["sequence"] + SPAN * len(past)} for each in with_watermarks(batches)]
    check(described, writer.all(), [*messages(past), *later])


@pytest.mark.parametrize("kind", ["ingest", "event"])
def test_a_clock_runs_timers_without_rows(session: Any, program: Path, tmp_path: Path, kind: str) -> None:
    (steps, described), rows = (
        applied(program, 4, 10, "at" if kind == "event" else ""),
        drawn(4, 40, 10, is_event=kind == "event"),
    )
    batches, writer = parts(rows, 20), Writer([0, 2])
    for again in range(3):
        live = stream_of(session, tmp_path, 2, SCHEMA) if again else streamed(session, tmp_path, batches, SCHEMA)
        time.sleep(2 if again else 0)  # of the clock
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


MOVED = """
from datetime import datetime, timedelta

import wallaroo

class First:
    pass

class Second:
    pass

@wallaroo.key_extractor
def by_id(row):
    return str(row["id"])

@wallaroo.computation("same")
def same(row):
    return row

@wallaroo.state_computation("first", state=First)
def first(row, state, timers):
    timers.set("end", after=timedelta(seconds=5))

@first.timer("end")
def end_first(key, state, time):
    return {"end": type(state).__name__}

@wallaroo.state_computation("second", state=Second)
def second(row, state, timers):
    timers.set("end", after=timedelta(seconds=7))

@second.timer("end")
def end_second(key, state, time):
    return {"end": type(state).__name__}

@wallaroo.state_computation("second", state=Second, ttl=timedelta(seconds=60))
def untimed(row, state):
    return None

def application_setup(args):
    source = wallaroo.DataFrameSourceConfig({"id": int, "at": datetime}, timestamp="at")
    rows = wallaroo.source("rows", source)
    for _ in range(int(args[1])):
        rows = rows.to(same)
    rows = rows.key_by(by_id)
    steps = (first, untimed if "untimed" in args else second)
    ends = (rows.to(step).to_sink(wallaroo.DataFrameSinkConfig({"end": str}, name=step.name())) for step in steps)
    return wallaroo.build_application("Moved", *ends)
"""


def test_timers_go_on_in_a_program_with_other_steps_before_them(session: Any, tmp_path: Path) -> None:
    """A timer belongs to its state and name; the place of its step in the program is another one now."""
    (file := tmp_path / "moved.py").write_text(MOVED)
    rows, steps = session.sql("SELECT 1L AS id, TIMESTAMP '2026-01-01T00:00:00Z' AS at"), load(file, ["0"])
    states = steps.states(steps.apply_all(rows, gives_states=True))
    states = session.createDataFrame(states.collect(), states.schema)
    for args in (["2"], ["1", "untimed"]):
        found = load(file, args).apply_all(rows.limit(0), states=states).collect()
        ends = {row["output"]: json.loads(row["value"])["end"] for row in found}
        assert ends == {"first": "First"} | ({} if "untimed" in args else {"second": "Second"}), args
