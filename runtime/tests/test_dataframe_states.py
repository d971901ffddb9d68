"""States that are handed over: what is none is refused by the call, or ends the query with a code."""

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.dated_totals import BEGIN, PROGRAM, drawn, rows_of, run_stream, totals
from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.errors import RunError

pytestmark = pytest.mark.jvm


def left(session: Any, steps: Steps) -> Any:
    """Return states that a batch leaves: those of a and b."""
    rows = rows_of(session, [("a", 1, BEGIN), ("b", 2, BEGIN)])
    return steps.states(steps.apply_all(rows, gives_states=True))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda states: None, ""),
        (lambda states: [1], "they are a list"),
        (lambda states: states.drop("key"), "they have no column key"),
        (lambda states: states.selectExpr("*", "1 AS Key"), 'several of its columns have the name "key"'),
        (lambda states: states.selectExpr("name", "CAST(key AS STRING) AS key", "encoding", "value", "type"),
         'their column "key" is string, not binary'),
        (lambda states: states.selectExpr("name", "key", "CAST(encoding AS BIGINT) AS encoding", "value", "type"),
         'their column "encoding" is bigint, not int'),
        (lambda states: states.selectExpr("name", "nullif(key, X'62') AS key", "encoding", "value", "type"),
         "a row has null in key"),
        (lambda states: states.selectExpr("CAST(NULL AS STRING) AS name", "key", "encoding", "value", "type"),
         "a row has null in name"),
        (lambda states: states.selectExpr("name", "key", "encoding", "value", "'Sum of a worker in python' AS type"),
         'the type of state "sum" is "Sum of a worker'),
        (lambda states: states.selectExpr("name", "key", "encoding", "value", "replace(type, 'message', 'x') AS type"),
         'the key of state "sum" was written as x'),
        (lambda states: states.selectExpr("'sums' AS name", "key", "encoding", "value", "type"), 'no state "sums"'),
    ],
)  # fmt: skip
def test_states_that_are_none_are_refused(
    session: Any, steps: Steps, change: Callable[[Any], Any], reason: str
) -> None:
    rows, states = rows_of(session, [("a", 1, BEGIN)]), change(left(session, steps))
    if not reason:
        assert steps.apply(rows, states=states).count() == 1
        return
    with pytest.raises(RunError, match="R716 the parameter `states` is not usable") as caught:
        steps.apply(rows, states=states)
    assert reason in str(caught.value)
    assert "fix: " in str(caught.value)


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_states_go_from_batch_to_batch_whoever_has_rows(session: Any, program: str, seed: int) -> None:
    """A batch has rows of a few users, or none: the states of all others are there after it, too."""
    chance, orders = random.Random(seed), sorted(drawn(seed, 40), key=lambda order: order[2])
    steps, found, states = load(program, ["all"] if seed % 2 else []), list[Any](), None
    while orders:
        count = chance.choice((0, 1, 2, 15))
        now, orders = orders[:count], orders[count:]
        result = steps.apply_all(rows_of(session, now), order_by="at", states=states, gives_states=True).persist()
        found += steps.select(result, "Digits" if seed % 2 else "Totals").collect()
        rows = steps.states(result)
        states = session.createDataFrame(rows.collect(), rows.schema)
        result.unpersist()
    if seed % 2 == 0:
        assert sorted((row["user"], row["total"]) for row in found) == sorted(totals(drawn(seed, 40)))
        return
    last = Counter[str]()
    for row in found:
        last[row["digit"]] = max(last[row["digit"]], row["times"])
    assert last == Counter(str(total % 10) for _, total in totals(drawn(seed, 40)))


@pytest.mark.parametrize("partitions", [1, 4])
def test_two_states_of_one_key_are_refused(session: Any, steps: Steps, partitions: int) -> None:
    states = left(session, steps)
    twice = states.union(states.where("key = CAST('b' AS BINARY)")).repartition(partitions)
    with pytest.raises(Exception, match='R716 .*state "sum" has several rows of the key "b"') as caught:
        steps.apply(rows_of(session, [("a", 1, BEGIN), ("b", 1, BEGIN)]), states=twice).collect()
    assert 'fix: keep one of them, e.g. with .dropDuplicates(["name", "key"])' in str(caught.value)


def test_a_state_that_cannot_be_read_says_what_to_do_here(session: Any, steps: Steps) -> None:
    states = left(session, steps).selectExpr("name", "key", "encoding", "CAST('x' AS BINARY) AS value", "type")
    with pytest.raises(Exception, match="C507 the state of key") as caught:
        steps.apply(rows_of(session, [("a", 1, BEGIN)]), states=states).collect()
    assert "in a PySpark job a new checkpointLocation" in str(caught.value)
    assert "wallaroo-operator" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda steps, rows: steps.states(rows), "the rows were made without states"),
        (lambda steps, rows: steps.states(rows.select("key")), "the rows have the columns key"),
        (
            lambda steps, rows: steps.select(rows.select("key", "value"), "Totals"),
            "the rows have the columns key, value",
        ),
        (lambda steps, rows: steps.select([], "Totals"), "the rows are a list"),
        (lambda steps, rows: steps.dead_letters(rows.selectExpr("1 AS x")), "the rows have the columns x"),
        (lambda steps, rows: steps.read_states(rows.sparkSession, None), "the checkpoint is None"),
        (lambda steps, rows: steps.read_states(rows.sparkSession, ""), "the checkpoint is ''"),
    ],
)
def test_rows_that_are_none_of_apply_all_are_refused(
    session: Any, steps: Steps, call: Callable[[Steps, Any], Any], reason: str
) -> None:
    rows = steps.apply_all(rows_of(session, [("a", 1, BEGIN)]))
    with pytest.raises(RunError, match="R716 the call of `") as caught:
        call(steps, rows)
    assert reason in str(caught.value)
    assert "fix: " in str(caught.value)


def test_states_of_nothing(session: Any, steps: Steps, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(RunError, match="R771 the states of .* cannot be shown"):
            steps.read_states(session, place)


def test_states_of_another_application_are_refused(session: Any, steps: Steps, tmp_path: Path) -> None:
    rows_of(session, [("a", 1, BEGIN)]).write.parquet(str(tmp_path / "in"))
    run_stream(session, tmp_path, lambda source: steps.apply(orders=source))
    other = tmp_path / "other.py"
    for before, now, reason in (
        ('"sum"', '"other"', "it has the states sum; the application has other"),
        ("Sum", "Spent", 'state "sum" was written as Sum of a worker in python'),
        ("Digits", "Numbers", "it has the states sum; the application has digits"),
    ):
        other.write_text(PROGRAM.replace(before, now))
        with pytest.raises(RunError, match="R771 the states of .* cannot be shown") as caught:
            load(other, ["all"] if before == "Digits" else []).read_states(session, tmp_path / "checkpoint")
        assert reason in str(caught.value)
        assert "fix: give the checkpointLocation of a query with its steps, or load the program" in str(caught.value)


def test_states_of_a_query_with_the_steps_twice(session: Any, steps: Steps, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text(PROGRAM.replace('"sum"', '"other"'))
    orders = drawn(12, 60)

    def frame(source: Any) -> Any:
        parts = [steps.apply(orders=source.where(f"user {sign} 'u3'"), order_by="at") for sign in ("<", ">=")]
        return parts[0].union(load(other).apply(orders=source, order_by="at")).union(parts[1])

    rows_of(session, orders).coalesce(1).write.parquet(str(tmp_path / "in"))
    run_stream(session, tmp_path, frame)
    place = tmp_path / "checkpoint"
    with pytest.raises(RunError, match="its query has the steps 2 times, as the operators") as caught:
        steps.read_states(session, place)
    assert "read_states(..., part=0) to part=1" in str(caught.value)
    with pytest.raises(RunError, match="part 2 was asked for"):
        steps.read_states(session, place, part=2)
    users = [{row["key"].decode() for row in steps.read_states(session, place, part).collect()} for part in (0, 1)]
    everybody = {user for user, _, _ in orders}
    assert sorted(users, key=min) == [
        {user for user in everybody if user < "u3"},
        {user for user in everybody if user >= "u3"},
    ]
    states = load(other).read_states(session, place)
    again = load(other).apply(rows_of(session, [(user, 1, BEGIN) for user in everybody]), states=states)
    assert {row["user"]: row["total"] - 1 for row in again.collect()} == dict(totals(orders))
