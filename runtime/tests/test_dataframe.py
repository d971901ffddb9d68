"""Steps of an application between DataFrames, live and in a batch, against plain Python."""

import importlib.util
import json
import random
import re
import runpy
import textwrap
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from support.dated_totals import BEGIN, PROGRAM, SCHEMA, drawn, rows_of, run_stream, totals
from wallaroo_runtime.dataframe import Steps, installed, load
from wallaroo_runtime.dataframe.query import PARAMETERS
from wallaroo_runtime.errors import RunError

pytestmark = pytest.mark.jvm


def test_a_batch_in_order_is_what_plain_code_gives(session: Any, steps: Steps) -> None:
    """A column may be narrower than declared, names may differ by case, and rows may have more columns."""
    orders = drawn(5)
    frame = rows_of(session, orders).selectExpr("1 AS more", "int(amount) AS AMOUNT", "at", "user").repartition(5)
    frame = frame.transform(lambda rows: steps.apply(rows, order_by="at"))
    assert frame.schema.simpleString() == "struct<user:string,total:bigint,at:timestamp>"
    assert sorted((row["user"], row["total"]) for row in frame.collect()) == sorted(totals(orders))


def test_a_backfill_hands_its_states_to_a_stream(session: Any, steps: Steps, tmp_path: Path) -> None:
    orders = sorted(drawn(4), key=lambda order: order[2])
    seam = random.Random(4).randrange(20, len(orders) - 20)
    past, live = orders[:seam], orders[seam:]
    history = steps.apply_all(orders=rows_of(session, past), order_by="at", gives_states=True).persist()
    before = [(row["user"], row["total"]) for row in steps.select(history, "Totals").collect()]
    steps.states(history).write.parquet(str(tmp_path / "states"))
    session.conf.set("spark.sql.shuffle.partitions", "2")  # states move to other buckets

    def frame(source: Any) -> Any:
        return steps.apply(orders=source, order_by="at", states=session.read.parquet(str(tmp_path / "states")))

    for part in (live[:10], live[10:]):
        rows_of(session, part).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        after = [(row["user"], row["total"]) for row in run_stream(session, tmp_path, frame)]  # a restart each time
    assert sorted(before + after) == sorted(totals(orders))
    stored = steps.read_states(session, str(tmp_path / "checkpoint"))
    assert {row["key"].decode() for row in stored.collect()} == {user for user, _, _ in orders}
    assert stored.columns == steps.states(history).columns
    last = dict(totals(orders))
    shown = {row["key"].decode(): json.loads(row["value"]) for row in steps.show_states(stored).collect()}
    assert shown == {user: {"total": total} for user, total in last.items()}
    again = steps.apply(orders=rows_of(session, [("u1", 1, BEGIN), ("new", 1, BEGIN)]), states=stored).collect()
    assert {(row["user"], row["total"]) for row in again} == {("u1", last["u1"] + 1), ("new", 1)}


def test_dead_letters_and_outputs_are_rows_of_one_query(session: Any, steps: Steps) -> None:
    rows = session.createDataFrame([("a", 1, BEGIN), ("a", -1, BEGIN), ("b", 2, BEGIN), ("c", None, BEGIN)], SCHEMA)
    seen: dict[str, list[Any]] = {}

    def keep(name: str) -> Callable[[Any, int], None]:
        return lambda rows, number: seen.setdefault(name, []).extend(rows.collect())

    steps.each(Totals=keep("totals"), dead_letters=keep("letters"))(steps.apply_all(orders=rows), 0)
    assert sorted((row["user"], row["total"]) for row in seen["totals"]) == [("a", 1), ("b", 2)]
    letter, of_null = sorted(seen["letters"], key=lambda letter: str(letter["code"]))
    assert (letter["code"], letter["step"], letter["key"]) == ("C501", "sum", b"a")
    assert letter["error"] == "ValueError: negative"
    assert "raise ValueError" in letter["traceback"]
    said = 'ValueError: column "amount" is null; declare it Optional to take that'
    assert (of_null["code"], of_null["error"]) == ("C505", said)


def test_a_state_that_cannot_be_written_is_for_no_rows(session: Any, tmp_path: Path) -> None:
    file = tmp_path / "totals.py"
    file.write_text(PROGRAM.replace("    state.total += order.amount", "    state.total, state.bad = 0, lambda: 0"))
    with pytest.raises(Exception, match="R611 the query stopped.*C504") as caught:
        load(file).apply(rows_of(session, [("a", 1, BEGIN)])).collect()
    assert "keep only what can be pickled in the state" in str(caught.value)
    assert "apply_all" not in str(caught.value)


def test_a_dead_letter_ends_a_query_that_has_no_rows_for_it(session: Any, steps: Steps) -> None:
    with pytest.raises(Exception, match="R611 the query stopped") as caught:
        steps.apply(rows_of(session, [("a", -1, BEGIN)])).collect()
    said = str(caught.value)
    assert "step \"sum\": C501 ValueError: negative (key 'a'; Order(user='a', amount=-1, at=" in said
    assert "call apply_all" in said
    assert "raise ValueError" in said
    assert "wallaroo-operator" not in said
    null = session.createDataFrame([("a", None, BEGIN)], SCHEMA)
    with pytest.raises(Exception, match='source "orders": C505 ValueError: column "amount" is null') as caught:
        steps.apply(null).collect()
    assert "fix: correct such rows before `apply`, or the program, or call apply_all" in str(caught.value)


def test_a_worker_that_does_not_start_names_the_place(session: Any, tmp_path: Path) -> None:
    file, rows = tmp_path / "totals.py", rows_of(session, [("a", 2, BEGIN)])
    file.write_text(PROGRAM)
    steps = load(file)
    file.write_text("import nothing_of_this_name\n" + PROGRAM)
    with pytest.raises(Exception, match="T217 the import of totals failed") as caught:
        steps.apply(rows).collect()
    assert f"  at {file}:1\n" in str(caught.value)


REFUSED: dict[str, Callable[[Any, Any], Any]] = {  # calls by the reason
    'it has no column "user"; it has amount, at': lambda steps, rows: steps.apply(rows.drop("user")),
    'column "amount" is string; the program declares bigint': lambda steps, rows: steps.apply(
        rows.withColumn("amount", rows.amount.cast("string"))
    ),
    'column "amount" is double; the program declares bigint': lambda steps, rows: steps.apply(
        rows.withColumn("amount", rows.amount.cast("double"))
    ),
    "2 DataFrames were given without a name": lambda steps, rows: steps.apply(rows, rows),
    "the call has none": lambda steps, rows: steps.apply(),
    "the call has trades": lambda steps, rows: steps.apply(trades=rows),
    "the call has orderby, orders": lambda steps, rows: steps.apply(rows, orderby="at"),
    "call of `apply` is not usable; orders is a list": lambda steps, rows: steps.apply(orders=[1]),
    "orders is a pyspark.sql.types.StructType": lambda steps, rows: steps.apply(rows.schema),
    "orders is a list": lambda steps, rows: steps.apply_all(orders=[1], gives_states=True),
    'it has no column "when", which order_by names; it has user, amount, at': lambda steps, rows: steps.apply(
        rows, order_by="when"
    ),
    "cannot order messages": lambda steps, rows: steps.apply(rows, order_by="user"),
    "they have no column name": lambda steps, rows: steps.apply(rows, states=rows),
    "only apply_all has gives_states": lambda steps, rows: steps.apply(rows, gives_states=True),
    "functions were given for Totals": lambda steps, rows: steps.each(Totals=print),
    "dead_letters is a int": lambda steps, rows: steps.each(Totals=print, dead_letters=3),
    '"sums"': lambda steps, rows: steps.select(rows, "sums"),
}


def test_what_cannot_be_is_refused_by_the_call(session: Any, steps: Steps) -> None:
    rows = rows_of(session, [("a", 1, BEGIN)])
    for reason, call in REFUSED.items():
        with pytest.raises(RunError) as caught:
            call(steps, rows)
        assert reason in str(caught.value)
        assert "fix: " in str(caught.value)


def test_a_program_that_is_changed_in_a_session_has_workers_of_its_own(session: Any, tmp_path: Path) -> None:
    file, rows = tmp_path / "totals.py", rows_of(session, [("a", 2, BEGIN)])
    file.write_text(PROGRAM)
    before = load(file)
    assert [row["total"] for row in before.apply(rows).collect()] == [2]
    file.write_text(PROGRAM.replace("+= order.amount", "+= 10 * order.amount"))
    assert [row["total"] for row in load(file).apply(rows).collect()] == [20]
    assert [row["total"] for row in before.apply(rows).collect()] == [2]


def test_an_archive_is_of_the_program_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "totals.py"
    file.write_text(PROGRAM)
    before = load(file)._archived.archive
    file.write_text(PROGRAM.replace("+= order.amount", "+= 10 * order.amount"))
    after = load(file)._archived.archive
    assert before is not None
    assert after is not None
    assert before.digest != after.digest
    assert before.path.is_file(), "a query may still need it"


def test_the_steps_may_come_twice_in_a_query(session: Any, steps: Steps) -> None:
    rows = rows_of(session, [("a", 1, BEGIN), ("a", 3, BEGIN), ("b", 2, BEGIN)])
    once = steps.apply(rows, order_by="amount")
    again = steps.apply(once.selectExpr("user", "total AS amount", "at"), order_by="amount")
    found = once.select("user", "total").alias("once").join(again.select("user", "total").alias("again"), "user")
    assert sorted(map(tuple, found.collect())) == [("a", 1, 1), ("a", 1, 5), ("a", 4, 1), ("a", 4, 5), ("b", 2, 2)]


TWO = """
from typing import Annotated
import wallaroo

def application_setup(args):
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig({"x": int}))
    small = wallaroo.DataFrameSinkConfig({"x": Annotated[int, "TINYINT"]}, name="small")
    same = wallaroo.DataFrameSinkConfig({"x": int}, name="small" if "small" in args else None)
    return wallaroo.build_application("Two", rows.to_sinks([small, same]))
"""


def test_several_sinks_have_names_of_their_own(session: Any, tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(TWO)
    steps = load(tmp_path / "two.py")
    rows = steps.apply_all(session.createDataFrame([(1,), (400,)], "x BIGINT")).persist()
    assert steps.outputs == ("small", "Two")
    assert sorted(row["x"] for row in steps.select(rows, "small").collect()) == [1]
    assert sorted(row["x"] for row in steps.select(rows, "Two").collect()) == [1, 400]
    (letter,) = steps.dead_letters(rows).collect()
    assert (letter["step"], letter["code"]) == ("small", "C501")
    with pytest.raises(RunError, match='P303 .*a second sink "small"'):
        load(tmp_path / "two.py", ["small"])
    with pytest.raises(RunError, match="call apply_all"):
        steps.apply(session.createDataFrame([(1,)], "x BIGINT"))


NAMED = """
import wallaroo

def application_setup(args):
    row = {"at": int}
    sources = [wallaroo.source(name, wallaroo.DataFrameSourceConfig(row)) for name in args[2:]]
    merged = sources[0]
    for source in sources[1:]:
        merged = merged.merge(source)
    return wallaroo.build_application("Named", merged.to_sink(wallaroo.DataFrameSinkConfig(row, name=args[1])))
"""


def test_names_that_calls_use_are_refused(tmp_path: Path) -> None:
    (tmp_path / "named.py").write_text(NAMED)
    assert set(signature(Steps.apply_all).parameters) - {"rows", "inputs"} == PARAMETERS
    assert set(signature(Steps.apply).parameters) - {"rows", "inputs"} <= PARAMETERS
    with pytest.raises(RunError) as caught:
        load(tmp_path / "named.py", ["dead_letters", *PARAMETERS, "rows"])
    for what in ('sink "dead_letters"', *(f'source "{name}"' for name in PARAMETERS)):
        assert re.search(f"P303 .*a {what} between DataFrames is not supported", str(caught.value))
    assert len(caught.value.diagnostics) == 1 + len(PARAMETERS)
    assert load(tmp_path / "named.py", ["out", "rows"]).inputs == ("rows",)


def test_inputs_that_do_not_fit_together_are_refused(session: Any, tmp_path: Path) -> None:
    (tmp_path / "named.py").write_text(NAMED)
    steps = load(tmp_path / "named.py", ["out", "one", "the other"])
    rows = session.range(2).selectExpr("id AS at", "timestamp_seconds(id) AS time", "DATE '2026-01-01' AS day")
    live = session.readStream.format("rate").load().selectExpr("value AS at")
    with pytest.raises(RunError, match="R716 .*of the inputs one, the other, only one are streams") as caught:
        steps.apply(**{"one": live, "the other": rows})
    assert "read all with spark.readStream" in str(caught.value)
    with pytest.raises(RunError, match="R716 .*the call has one") as caught:
        steps.apply(one=rows)
    assert 'steps.apply(**{"one": ..., "the other": ...})' in str(caught.value)
    both = {"one": rows.selectExpr("at", "at AS n"), "the other": rows.selectExpr("at", "time AS n")}
    with pytest.raises(RunError, match='R716 .*"n", which order_by names, is bigint in one, timestamp in the other'):
        steps.apply(**both, order_by="n")
    assert steps.apply(**both | {"one": rows.selectExpr("at", "day AS n")}, order_by="n").count() == 4


RECORDS = """
import wallaroo

def application_setup(args):
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig({"x": int}))
    topic = wallaroo.KafkaSinkConfig(
        "topic", [("127.0.0.1", 9)], "warn", 0, 100000, encode, content="record", exactly_once=True
    )
    return wallaroo.build_application("Records", rows.to_sink(topic))

@wallaroo.encoder
def encode(row):
    return wallaroo.KafkaRecord(value=b"x")
"""


class Remote(DataFrame):
    """A DataFrame of Spark Connect, as far as `apply` may look at it."""

    sparkSession = property(lambda self: object())  # type: ignore[assignment]

    def __new__(cls) -> "Remote":
        return object.__new__(cls)

    def __init__(self) -> None:
        pass


def test_spark_connect_is_refused(steps: Steps) -> None:
    with pytest.raises(RunError, match="R716 this Spark session is not usable; Spark Connect cannot use") as caught:
        steps.apply(Remote())
    remedy = 'unset SPARK_REMOTE, and start again with SparkSession.builder.config("spark.api.mode", "classic")'
    assert f"fix: {remedy}" in str(caught.value)


@pytest.mark.parametrize(("missing", "reason"), [("pyspark", "it is not installed"), ("py4j", "pyspark-client, ")])
def test_a_python_without_pyspark_is_refused(missing: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == missing else real(name))
    with pytest.raises(RunError, match=f"R728 .* needs the package pyspark; .*{reason}") as caught:
        runpy.run_path(installed.__file__)
    assert "-m pip install 'wallaroo-spark-runtime[spark]'" in str(caught.value)


def test_a_spark_that_is_too_old_is_refused(session: Any, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(vars(session), "version", "4.1.1-amzn-0")  # PySpark keeps it there
    with pytest.raises(RunError, match="R716 this Spark session .* Spark 4.1.1-amzn-0 is too old") as caught:
        steps.apply(rows_of(session, []))
    assert "fix: pip install 'pyspark>=4.2,<4.4'" in str(caught.value)


def test_a_session_that_was_stopped_is_refused(session: Any, steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = rows_of(session, [])
    monkeypatch.setattr(session.sparkContext, "_jsc", None)
    with pytest.raises(RunError, match="R716 this Spark session is not usable; it was stopped") as caught:
        steps.apply(rows)
    assert "fix: start it again with SparkSession.builder.getOrCreate(), and read the inputs again" in str(caught.value)


def test_executors_get_the_jar_also_if_the_driver_has_it(session: Any, steps: Steps) -> None:
    """The driver has it from its start, or from an earlier Spark of this process, which had other executors."""
    steps.apply(rows_of(session, []))
    steps.apply(rows_of(session, []))
    assert session.sparkContext._jsc.sc().listJars().toString().count("/jars/realtime.jar") == 1


def test_a_sink_of_whole_records_is_refused(tmp_path: Path) -> None:
    """Its values are records in a form of ours, which nobody could read in a DataFrame."""
    (tmp_path / "records.py").write_text(RECORDS)
    with pytest.raises(RunError, match="P303 .*a sink of whole records between DataFrames is not supported") as caught:
        load(tmp_path / "records.py")
    assert "fix: declare a sink of values, or DataFrameSinkConfig" in str(caught.value)


def test_what_has_no_place_between_dataframes_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "generated.py"
    file.write_text(
        textwrap.dedent("""
            import wallaroo
            class Numbers:
                def initial_value(self): return 1
                def apply(self, last): return None
            def application_setup(args):
                numbers = wallaroo.source("numbers", wallaroo.GenSourceConfig(Numbers()))
                return wallaroo.build_application("N", numbers.to_sink(wallaroo.DataFrameSinkConfig({"x": int})))
        """)
    )
    with pytest.raises(RunError, match="P303") as caught:
        load(file)
    assert "a generator between DataFrames" in str(caught.value)
