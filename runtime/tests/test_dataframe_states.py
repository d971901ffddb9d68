"""States that are handed over: what is none is refused by the call, or ends the query with a code."""

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from support.dated_totals import BEGIN, PROGRAM, drawn, rows_of, run_stream, totals
from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.errors import RunError

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def left(spark: Any, steps: Steps) -> Any:
    """Return states that a batch leaves: those of a and b."""
    found = steps.states(steps.apply_all(rows_of(spark, [("a", 1, BEGIN), ("b", 2, BEGIN)]), gives_states=True))
    return spark.createDataFrame(found.collect(), found.schema)


STRANGE: dict[str, Callable[[Any], Any]] = {  # what is no state, by the reason
    "they are a list": lambda states: [1],
    "they have no column key": lambda states: states.drop("key"),
    'several of its columns have the name "key"': lambda states: states.selectExpr("*", "1 AS Key"),
    'their column "key" is string, not binary': lambda states: states.withColumn("key", F.expr("string(key)")),
    'their column "encoding" is bigint, not int': lambda states: states.withColumn(
        "encoding", F.expr("bigint(encoding)")
    ),
    "a row has null in key": lambda states: states.withColumn("key", F.expr("nullif(key, X'62')")),
    "a row has null in name": lambda states: states.withColumn("name", F.expr("CAST(NULL AS STRING)")),
    'the type of state "sum" is "Sum of a worker': lambda states: states.withColumn(
        "type", F.lit("Sum of a worker in python")
    ),
    'the key of state "sum" was written as x': lambda states: states.withColumn(
        "type", F.expr("replace(type, 'message', 'x')")
    ),
    'no state "sums"': lambda states: states.withColumn("name", F.lit("sums")),
}


def test_states_that_are_none_are_refused(session: Any, steps: Steps, left: Any) -> None:
    rows = rows_of(session, [("a", 1, BEGIN)])
    for reason, change in STRANGE.items():
        with pytest.raises(RunError, match="R716 the parameter `states` is not usable") as caught:
            steps.apply(rows, states=change(left))
        assert reason in str(caught.value)
        assert "fix: " in str(caught.value)
        with pytest.raises(RunError, match="R716 the parameter `states` is not usable") as caught:
            steps.show_states(change(left))
        assert reason in str(caught.value)
        assert "leave `states` out" not in str(caught.value)
        assert "fix: " in str(caught.value)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (0, 2, 3))])
def test_states_go_from_batch_to_batch_whoever_has_rows(session: Any, program: str, seed: int) -> None:
    """A batch has rows of a few users, or none: the states of all others are there after it, too."""
    chance, orders = random.Random(seed), sorted(drawn(seed, 40), key=lambda order: order[2])
    steps, found, states = load(program, ["all"] if seed % 2 else []), list[Any](), None
    for count in chance.sample([0, 15, 25], 3):
        now, orders = orders[:count], orders[count:]
        rows = steps.apply_all(rows_of(session, now), order_by="at", states=states, gives_states=True).persist()
        found += steps.select(rows, *steps.outputs).collect()
        left = steps.states(rows)
        states = session.createDataFrame(left.collect(), left.schema)
        rows.unpersist()
    if seed % 2 == 0:
        assert sorted((row["user"], row["total"]) for row in found) == sorted(totals(drawn(seed, 40)))
        return
    last = Counter[str]()
    for row in found:
        last[row["digit"]] = max(last[row["digit"]], row["times"])
    assert last == Counter(str(total % 10) for _, total in totals(drawn(seed, 40)))
    assert len(found) == 40


def test_two_states_of_one_key_are_refused(session: Any, steps: Steps, left: Any) -> None:
    twice = left.union(left.where("key = CAST('b' AS BINARY)")).repartition(4)
    with pytest.raises(Exception, match='R716 .*state "sum" has several rows of the key "b"') as caught:
        steps.apply(rows_of(session, [("a", 1, BEGIN), ("b", 1, BEGIN)]), states=twice).collect()
    assert 'fix: keep one of them, e.g. with .dropDuplicates(["name", "key"])' in str(caught.value)


def test_a_state_that_cannot_be_read_says_what_to_do_here(session: Any, steps: Steps, left: Any) -> None:
    states = left.withColumn("value", F.expr("CAST('x' AS BINARY)"))
    with pytest.raises(Exception, match="C507 the state of key") as caught:
        steps.apply(rows_of(session, [("a", 1, BEGIN)]), states=states).collect()
    assert "in a PySpark job a new checkpointLocation" in str(caught.value)
    assert "wallaroo-operator" not in str(caught.value)


FOREIGN: dict[str, Callable[[Any, Any], Any]] = {  # calls with rows that are none of `apply_all`, by the reason
    "the rows were made without states": lambda steps, rows: steps.states(rows),
    "the rows have the columns key": lambda steps, rows: steps.states(rows.select("key")),
    "the rows have the columns key, value": lambda steps, rows: steps.select(rows.select("key", "value"), "Totals"),
    "the rows are a list": lambda steps, rows: steps.select([], "Totals"),
    "the rows have the columns x": lambda steps, rows: steps.dead_letters(rows.selectExpr("1 AS x")),
    "the checkpoint is None": lambda steps, rows: steps.read_states(rows.sparkSession, None),
    "limit is -1": lambda steps, rows: steps.show_states(rows, limit=-1),
    "the checkpoint is ''": lambda steps, rows: steps.read_states(rows.sparkSession, ""),
}


def test_rows_that_are_none_of_apply_all_are_refused(session: Any, steps: Steps) -> None:
    rows = steps.apply_all(rows_of(session, [("a", 1, BEGIN)]))
    for reason, call in FOREIGN.items():
        with pytest.raises(RunError, match="R716 the call of `") as caught:
            call(steps, rows)
        assert reason in str(caught.value)
        assert "fix: " in str(caught.value)


def test_states_of_nothing(session: Any, steps: Steps, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(RunError, match="R771 the states of .* cannot be shown"):
            steps.read_states(session, place)


def test_states_of_another_application_are_refused(session: Any, steps: Steps, tmp_path: Path) -> None:
    rows_of(session, [("a", 1, BEGIN)]).coalesce(1).write.parquet(str(tmp_path / "in"))
    run_stream(session, tmp_path, lambda source: steps.apply(orders=source))
    other = tmp_path / "other.py"
    for before, now, reason in (
        ('"sum"', '"other"', "it has the states sum; the application has other"),
        ("Digits", "Numbers", "it has the states sum; the application has digits"),
        ("Sum", "Spent", 'state "sum" was written as Sum of a worker in python'),
    ):
        other.write_text(PROGRAM.replace(before, now))
        own = load(other, ["all"] if before == "Digits" else [])
        with pytest.raises(RunError, match="R771 the states of .* cannot be shown") as caught:
            own.read_states(session, tmp_path / "checkpoint")
        assert reason in str(caught.value)
        assert "fix: give the checkpointLocation of a query with its steps, or load the program" in str(caught.value)
    rows_of(session, [("a", 2, BEGIN)]).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    with pytest.raises(Exception, match=reason):
        run_stream(session, tmp_path, lambda source: own.apply(orders=source))


def test_states_of_several_places_in_one_query_stay_apart(session: Any, steps: Steps, tmp_path: Path) -> None:
    # In the worker's cache their buckets have one owner; a copy is taken under its version alone.
    (other := tmp_path / "other.py").write_text(PROGRAM.replace('"sum"', '"other"'))
    orders, elsewhere, place = sorted(drawn(13), key=lambda order: order[2]), load(other), tmp_path / "checkpoint"
    tenfold = [(user, 10 * amount, at) for user, amount, at in orders]

    def frame(source: Any) -> Any:
        more = source.selectExpr("user", "10 * amount AS amount", "at")
        parts = [steps.apply(rows, order_by="at") for rows in (source, more)]
        return parts[0].union(elsewhere.apply(source, order_by="at")).union(parts[1])

    for part in (orders[:150], orders[150:]):
        rows_of(session, part).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    for found in (run_stream(session, tmp_path, frame), frame(rows_of(session, orders)).collect()):
        assert sorted((row["user"], row["total"]) for row in found) == sorted(2 * totals(orders) + totals(tenfold))
    with pytest.raises(RunError, match="its query has the steps 2 times, as the operators") as caught:
        steps.read_states(session, place)
    assert "read_states(..., part=0) to part=1" in str(caught.value)
    with pytest.raises(RunError, match="part 2 was asked for"):
        steps.read_states(session, place, part=2)
    shown = [steps.show_states(steps.read_states(session, place, part)).collect() for part in (0, 1)]
    shown += [elsewhere.show_states(elsewhere.read_states(session, place)).collect()]
    found = [{row["key"].decode(): json.loads(row["value"])["total"] for row in rows} for rows in shown]
    once, tenfold_once = dict(totals(orders)), dict(totals(tenfold))
    assert found[2] == once
    assert sorted(found[:2], key=lambda each: each["u0"]) == [once, tenfold_once]
