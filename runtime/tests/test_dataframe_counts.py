"""Timers in one batch and in one stream, and what the progress of a stream, or an Observation, counts of steps."""

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Observation

from support import row_windows
from support.drawn_timers import (
    DELAY_MS,
    LEVELS,
    YEAR_MS,
    Event,
    Step,
    check,
    drawn,
    messages,
    references,
    with_watermarks,
)
from support.drawn_timers import steps_of as drawn_steps
from support.row_stream import BEGIN_MS, SPAN, Unlucky, ends, ms_of, parts, streamed, watermarks
from support.row_timers import SCHEMA, arguments, write_program
from vector.make_windows import Reference, ranges
from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.errors import RunError

pytestmark = pytest.mark.jvm
NAME = "timers of the test"
LENGTHS = """
import wallaroo

@wallaroo.computation("length")
def length(row):
    return {"length": len(row["text"])} if row["text"] else None

def application_setup(args):
    texts = wallaroo.source("texts", wallaroo.DataFrameSourceConfig({"text": str}))
    lengths = texts.to(length).to_sink(wallaroo.DataFrameSinkConfig({"length": int}))
    return wallaroo.build_application("Lengths", lengths)
"""


@pytest.fixture(scope="module", params=["python", pytest.param("go", marks=pytest.mark.long)])
def timed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_program(tmp_path_factory.mktemp("program"), request.param)


def by_the_model(steps: Sequence[Step], events: list[Event]) -> Counter[str]:
    """Return the counts that are not 0, but for those of keys."""
    rows = sum("tick" not in event for event in events)
    counts = Counter({"rows.messages_in": rows, "rows.messages_out": rows})
    for number, step in enumerate(steps):
        first, second = references(step, events)
        given, closed = len(first.outputs), sum(bool(each["timer"]) for each in second.outputs)
        counts |= {
            f"timed {number}.messages_in": rows,
            f"timed {number}.messages_out": given,
            f"timed {number}.dead_letters": len(first.dead_letters),
            f"timed {number}.expired": first.expired,
            f"timed {number}.timers_fired": first.fired,
            f"t{number}.messages_in": given,
            f"t{number}.messages_out": given,
            f"all {number}.messages_in": given,
            f"all {number}.messages_out": closed,
            f"all {number}.timers_fired": second.fired,
            f"c{number}.messages_in": closed,
            f"c{number}.messages_out": closed,
        }
    return +counts


def of_steps(counts: Counter[str]) -> Counter[str]:
    """Return the counts that are not 0, but for those of keys."""
    return Counter(
        {name: count for name, count in counts.items() if count and not name.startswith(("by_key", "key of"))}
    )


class Observed:
    """A query that runs to its end, although some micro-batches fail after they were computed.

    Attributes:
        counts: Sum of the metrics in the progress of all its runs.
        rows: All rows that it gives.
    """

    def __init__(self, fails_at: Sequence[int]) -> None:
        self.fails_at, self.counts, self.rows = set(fails_at), Counter[str](), list[Any]()

    def __call__(self, rows: Any, number: int) -> None:
        rows.collect()
        if number in self.fails_at:
            self.fails_at.remove(number)
            raise Unlucky
        self.rows += rows.collect()  # computes the micro-batch again

    def run(self, rows: Any, folder: Path) -> Counter[str]:
        while True:
            writer = rows.writeStream.foreachBatch(self).option("checkpointLocation", str(folder / "checkpoint"))
            query = writer.trigger(availableNow=True).start()
            try:
                query.awaitTermination()
            except Exception as error:
                assert "Unlucky" in str(error), error
            for progress in query.recentProgress:
                self.counts.update(progress.observedMetrics[NAME].asDict())
            if query.exception() is None:
                return self.counts


def test_a_stream_gives_and_counts_what_the_watermark_has_passed(session: Any, timed: Path, tmp_path: Path) -> None:
    described, batches = drawn_steps(2, count=4), parts(drawn(2), 34)
    rows = streamed(session, tmp_path, batches, SCHEMA).withWatermark("at", f"{DELAY_MS} milliseconds")
    found = load(timed, arguments(described)).apply_all(rows=rows, order_by="n", observation=NAME)
    assert found.columns == ["output", "key", "value", "dead_letter"]
    observed, events = Observed([1]), with_watermarks(batches)  # its first try is lost, and the query starts again
    counts, wanted = observed.run(found, tmp_path), by_the_model(described, events)
    check(described, observed.rows, events)
    assert of_steps(counts) == wanted
    assert {name.partition(".")[2] for name in wanted} >= {"expired", "timers_fired", "dead_letters"}


def test_a_batch_runs_all_timers_and_counts_them(session: Any, timed: Path) -> None:
    described, rows, observation = drawn_steps(1, count=4), drawn(1), Observation()
    given = session.createDataFrame(random.Random(1).sample(rows, len(rows)), SCHEMA).repartition(4)
    found = load(timed, arguments(described)).apply_all(rows=given, order_by="n", observation=observation)
    found = found.orderBy("value").collect()  # Spark computes the rows once more, to find ranges
    events = [*messages(rows), *ends(max(ms_of(row[3]) for row in rows), LEVELS)]
    check(described, found, events)
    assert of_steps(Counter(observation.get)) == by_the_model(described, events)
    letters = [row["dead_letter"] for row in found if row["dead_letter"] is not None]
    failed = [letter["at_ms"] for letter in letters if letter["error"].endswith("it fails")]
    assert failed and all(BEGIN_MS - 200 <= at < BEGIN_MS + 3 * YEAR_MS for at in failed)  # when they were due


def test_messages_that_a_window_has_dropped(session: Any, tmp_path: Path) -> None:
    window, batches = (
        ranges(20, 6, late="drop", time="event"),
        parts([(key, v, at, n) for key, v, _, at, n in drawn(5)], 34),
    )
    program = row_windows.write_program(tmp_path, "python")
    live = streamed(session, tmp_path, batches).withWatermark("at", f"{DELAY_MS} milliseconds")
    steps = load(program, row_windows.arguments([[window]]))
    counts = Observed([1]).run(steps.apply_all(rows=live, order_by="n", observation=NAME), tmp_path)
    reference = Reference(window, has_watermarks=True)
    rows = [row for batch in batches for row in batch]
    events = [{"sequence": SPAN * n, "key": key, "time": ms_of(at), "value": n} for key, _, at, n in rows]
    reference.run([*events, *watermarks([[ms_of(row[2]) for row in batch] for batch in batches], 1, DELAY_MS)])
    assert 0 < reference.dropped == counts["Values.dropped_late"]
    assert counts["Values.messages_in"] == len(rows)
    assert counts["Values.messages_out"] == counts["w0.messages_out"] == len(reference.given)


def test_rows_without_a_state_and_rows_that_are_too_large(session: Any, tmp_path: Path) -> None:
    (tmp_path / "lengths.py").write_text(LENGTHS)
    observation, steps = Observation("lengths"), load(tmp_path / "lengths.py")
    rows = session.range(8).repartition(4).selectExpr("if(id = 5, repeat('x', 17 << 20), repeat('x', id)) AS text")
    found = steps.apply_all(rows, observation=observation).coalesce(1)  # one task of Spark has all partitions
    assert sorted(row["length"] for row in steps.select(found, "Lengths").collect()) == [1, 2, 3, 4, 6, 7]
    assert {name: count for name, count in observation.get.items() if name.endswith(("_in", "_out", "letters"))} == {
        "texts.messages_in": 8, "texts.messages_out": 7, "texts.dead_letters": 1,
        "length.messages_in": 7, "length.messages_out": 6, "length.dead_letters": 0,
        "Lengths.messages_in": 6, "Lengths.messages_out": 6, "Lengths.dead_letters": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("observation", "live", "reason"),
    [(7, False, "observation is a int"), (Observation(), True, "an Observation works only with a batch")],
)
def test_an_observation_that_does_not_fit(
    session: Any, steps: Steps, observation: Any, live: bool, reason: str
) -> None:
    rows = session.readStream.format("rate").load() if live else session.range(1)
    with pytest.raises(RunError, match="R716") as caught:
        steps.apply(rows, observation=observation)
    assert reason in str(caught.value)
