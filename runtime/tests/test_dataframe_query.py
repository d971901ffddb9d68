"""Queries of all shapes around steps of an application: they are exact over restarts, too."""

import contextlib
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException

from support.dated_totals import BEGIN, PROGRAM, SCHEMA, Order, drawn, rows_of, run_stream, totals
from support.row_stream import Unlucky
from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.errors import RunError

pytestmark = pytest.mark.jvm


def in_files(session: Any, folder: Path, orders: list[Order]) -> None:
    """Write orders as files for a stream, each with some of every time."""
    rows_of(session, orders).coalesce(1).write.mode("append").parquet(str(folder / "in"))


def sums(rows: list[Any]) -> list[tuple[str, int]]:
    return sorted((row["user"], row["total"]) for row in rows)


def split(steps: Steps, source: Any) -> list[Any]:
    """Return the steps over two parts of a source that have no user in common."""
    return [steps.apply(orders=source.where(f"user {sign} 'u3'"), order_by="at") for sign in ("<", ">=")]


def test_a_stream_may_go_on_with_other_partitions(session: Any, steps: Steps, tmp_path: Path) -> None:
    """Also united with rows that need no states, which have the first numbers of partitions."""
    orders = sorted(drawn(9), key=lambda order: order[2])

    def frame(source: Any) -> Any:
        below, above = split(steps, source)
        others = source.selectExpr("concat('of ', user) AS user", "amount AS total", "at")
        return others.union(below.coalesce(1)).union(above.repartition(5))

    for end in (150, 300):
        in_files(session, tmp_path, orders[end - 150 : end])
        others = [(f"of {user}", amount) for user, amount, _ in orders[:end]]
        found = run_stream(session, tmp_path, frame)  # a restart each time
        assert sums(found) == sorted(totals(orders[:end]) + others)
    session.conf.set("spark.sql.shuffle.partitions", "2")
    in_files(session, tmp_path, orders[:1])
    with pytest.raises(Exception, match="was 2 when `apply` was called; it has 3 partitions"):
        run_stream(session, tmp_path, frame)


def test_a_batch_within_a_stream_has_partitions_of_its_own(session: Any, steps: Steps, tmp_path: Path) -> None:
    found: list[tuple[str, int]] = []

    def write(rows: Any, _: int) -> None:
        found.extend((row["user"], row["total"]) for row in steps.apply(rows, order_by="at").collect())

    orders = drawn(11, 40)
    for part, partitions in ((orders[:20], 3), (orders[20:], 2)):
        session.conf.set("spark.sql.shuffle.partitions", str(partitions))
        in_files(session, tmp_path, part)
        source = session.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
        known = (
            source.groupBy("user", "amount", "at").count().drop("count")
        )  # has states in as many partitions as before
        writer = known.writeStream.outputMode("update").foreachBatch(write)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
    assert sorted(found) == sorted(totals(orders[:20]) + totals(orders[20:]))


@pytest.mark.parametrize("seed", [2, pytest.param(5, marks=pytest.mark.long)])
def test_a_function_may_hand_states_to_the_next_micro_batch(
    session: Any, steps: Steps, tmp_path: Path, seed: int
) -> None:
    """Also if a try fails after the steps, or between two writes, and the query starts again."""
    chance, orders = random.Random(seed), sorted(drawn(seed, 40), key=lambda order: order[2])
    cuts = [0, *sorted(chance.sample(range(1, 40), 3)), 40]
    fails = {(chance.randrange(1, 4), place) for place in ("steps", "rows", "states")}

    def write(rows: Any, number: int) -> None:
        def reach(place: str) -> None:
            if (number, place) in fails:
                fails.remove((number, place))
                raise Unlucky

        chosen = chance.choice((session, rows.sparkSession))
        before = {"states": chosen.read.parquet(str(tmp_path / f"states-{number - 1}"))} if number else {}
        found = steps.apply_all(rows, order_by="at", gives_states=True, **before).persist()
        reach("steps")
        steps.select(found, "Totals").write.mode("overwrite").parquet(str(tmp_path / "out" / f"number={number}"))
        reach("rows")
        steps.states(found).write.mode("overwrite").parquet(str(tmp_path / f"states-{number}"))
        found.unpersist()
        reach("states")

    for begin, end in pairwise(cuts):
        in_files(session, tmp_path, orders[begin:end])
    source = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    for _ in range(1 + len(fails)):
        writer = source.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint"))
        with contextlib.suppress(StreamingQueryException):
            writer.trigger(availableNow=True).start().awaitTermination()
    assert not fails
    assert sums(session.read.parquet(str(tmp_path / "out")).collect()) == sorted(totals(orders))
    last = steps.show_states(session.read.parquet(str(tmp_path / "states-3"))).collect()
    assert {bytes(row["key"]).decode(): json.loads(row["value"])["total"] for row in last} == dict(totals(orders))


def test_functions_of_each_may_leave_rows_out(session: Any, steps: Steps, tmp_path: Path) -> None:
    """The states of a micro-batch are stored although no function looks at its rows."""
    orders, found = sorted(drawn(14, 40), key=lambda order: order[2]), list[Any]()
    for part in (orders[:20], orders[20:]):
        in_files(session, tmp_path, part)

    def write(rows: Any, number: int) -> None:
        if number == 1:
            found.extend(rows.collect())

    source = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    writes = steps.each(Totals=write, dead_letters=lambda rows, number: None)
    writer = steps.apply_all(source, order_by="at").writeStream.foreachBatch(writes).trigger(availableNow=True)
    writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start().awaitTermination()
    assert sums(found) == sorted(totals(orders)[20:])


def test_a_dead_letter_that_ends_a_query_comes_before_all_outputs(session: Any, tmp_path: Path) -> None:
    failing, passing = tmp_path / "totals.py", tmp_path / "other" / "totals.py"
    passing.parent.mkdir()
    two = PROGRAM.replace(
        'build_application("Totals", totals.to_sink(wallaroo.DataFrameSinkConfig(Total)))',
        'build_application("Totals", *(totals.to_sink(wallaroo.DataFrameSinkConfig(Total, name=name)) for name in "ab")'
        ", on_error=args[-1])",
    )
    failing.write_text(two)
    passing.write_text(two)
    in_files(session, tmp_path, [(user, amount, BEGIN) for user in "uvwxyz" for amount in (1, -2, -3)])
    seen: list[tuple[str, list[int]]] = []

    def run(steps: Steps) -> None:
        def write(name: str) -> Any:
            # What a function does before Spark computes anything counts, too.
            return lambda rows, _: seen.append((name, [])) or seen[-1][1].extend(row[1] for row in rows.collect())

        source = session.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
        writes = steps.each(a=write("a"), b=write("b"), dead_letters=write("letters"))
        writer = steps.apply_all(source).writeStream.foreachBatch(writes)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        writer.start().awaitTermination()

    fails = load(failing, ["fail"])
    with pytest.raises(StreamingQueryException) as caught:
        run(fails)
    first = str(caught.value).partition("Driver stacktrace")[0]  # what follows is Spark's own, with its cause again
    assert first.count('R611 the query stopped; step "sum": C501 ValueError: negative (key ') == 1
    assert first.count('fix: correct the user code, or declare on_error "dead_letter", which makes it a row') == 1
    assert not seen
    with pytest.raises(RunError, match="the application has several sinks: a, b; `apply` returns the rows of one"):
        fails.apply(rows_of(session, []))
    run(load(passing, ["dead_letter"]))
    assert [(name, len(rows)) for name, rows in seen] == [("a", 6), ("b", 6), ("letters", 12)]
