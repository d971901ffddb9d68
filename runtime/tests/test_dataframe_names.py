"""Names of columns are compared as the session compares them, and none is taken silently."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from support.dated_totals import BEGIN, rows_of
from support.spark_topology import PLAIN_WORKER
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.row import NO_CAST, declared_columns, struct_of
from wallaroo_runtime.topology.canonical import interface_hash
from wallaroo_runtime.topology.load import load_document

pytestmark = pytest.mark.jvm
Change = Callable[[str, str], None]
INNER = """
from typing import NamedTuple

import wallaroo

class Inner(NamedTuple):
    a: int

def application_setup(args):
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig({"x": Inner}))
    return wallaroo.build_application("Inner", rows.to_sink(wallaroo.DataFrameSinkConfig({"x": Inner})))
"""


def refused(call: Callable[[], Any], reason: str, fix: str = "") -> None:
    with pytest.raises(RunError) as caught:
        call()
    assert str(caught.value).startswith("R716 ")
    assert reason in str(caught.value)
    assert f"fix: {fix}" in str(caught.value)


def test_a_worker_that_lacks_what_a_step_needs(session: Any, program: str, tmp_path: Any) -> None:
    document = json.loads(json.dumps(load(program)._topology.document))
    (worker,), (step,) = document["workers"], document["pipelines"][0]["steps"][-1:]
    # A worker in another language, which knows the interface of any program.
    command = ["env", f"PYTHONPATH={Path(PLAIN_WORKER).parent}", sys.executable, PLAIN_WORKER]
    worker |= {"language": "plain", "command": command, "args": ["any-hash"], "components": []}
    step["state"]["ttl_ms"], step["time"] = 60_000, "ingest"
    worker["interface_hash"] = interface_hash(load_document(document))
    file = tmp_path / "plain.json"
    file.write_text(json.dumps(document))
    rows = session.readStream.format("rate").load().selectExpr("'a' AS user", "value AS amount", "timestamp AS at")
    with pytest.raises(RunError, match='W416 worker "main" lacks the capability "timers", which stage'):
        load(file).apply(rows)


def test_load_takes_a_path_and_a_list_of_texts(program: str) -> None:
    for args in (None, 5, "--in", b"--in", ["--count", 3], {"--in"}):
        with pytest.raises(DiagnosticError) as caught:
            load(program, args)
        assert str(caught.value).startswith(f"T207 load: parameter args is {args!r}; expected a list of texts")
    with pytest.raises(DiagnosticError, match="T207 load: parameter app is None; expected the path of a program"):
        load(None)


def test_messages_of_other_sources_are_in_the_column_value(session: Any) -> None:
    program = Path(__file__).parents[2] / "examples" / "tutorial" / "word_count" / "app.py"
    rows = rows_of(session, [("a", 1, BEGIN)])
    said = 'source "lines" is not usable; it has no column "value" for its messages; it has user, amount, at\n'
    refused(lambda: load(program).apply(lines=rows), said.strip())


def test_where_case_counts_the_exact_column_is_taken(session: Any, changed: Change, steps: Steps) -> None:
    rows = rows_of(session, [("a", 1, BEGIN), ("a", 5, BEGIN)])
    changed("spark.sql.caseSensitive", "true")
    for columns in (["USER", "user", "amount", "AMOUNT", "at", "At"], ["At", "at", "AMOUNT", "amount", "user", "USER"]):
        more = {"USER": "'b'", "AMOUNT": "100", "At": "-id"}
        frame = rows.selectExpr("*", "row_number() OVER (ORDER BY amount) AS id")
        frame = frame.selectExpr(*(f"{more.get(name, name)} AS {name}" for name in columns))
        assert [tuple(row)[:2] for row in steps.apply(frame, order_by="At").collect()] == [("a", 5), ("a", 6)]
    refused(
        lambda: steps.apply(rows.selectExpr("user AS USER", "amount", "at")), 'no column "user"; it has USER, amount'
    )
    refused(lambda: steps.apply(rows, order_by="AT"), 'no column "AT"')


def test_where_case_does_not_count_two_columns_are_one_too_many(session: Any, steps: Steps) -> None:
    rows = rows_of(session, [("a", 1, BEGIN)])
    refused(lambda: steps.apply(rows.selectExpr("*", "1 AS AMOUNT")), 'have the name "amount": amount, AMOUNT')
    refused(lambda: steps.apply(rows.selectExpr("*", "1 AS amount")), 'have the name "amount": amount, amount')
    two = rows.selectExpr("*", "1 AS x", "2 AS X")
    assert [row["total"] for row in steps.apply(two).collect()] == [1], "nobody asks for x"
    refused(lambda: steps.apply(two, order_by="x"), 'have the name "x": x, X')


def test_fields_of_a_struct_that_differ_by_case(session: Any, tmp_path: Any) -> None:
    (tmp_path / "inner.py").write_text(INNER)
    frame = session.range(1).selectExpr("named_struct('a', id, 'A', id) AS x")
    refused(
        lambda: load(tmp_path / "inner.py").apply(frame),
        'column "x" has the fields a, A; the program declares a',
        "make it from its fields with F.struct; a cast takes fields by their order",
    )


def test_the_cast_of_an_error_is_one_to_paste(session: Any, tmp_path: Any) -> None:
    (tmp_path / "dotted.py").write_text(INNER.replace('"x": Inner', '"a.b": int'))
    steps, frame = load(tmp_path / "dotted.py"), session.sql("SELECT '7' AS `a.b`")
    code = '.withColumn("a.b", F.col("`a.b`").cast("bigint"))'
    refused(lambda: steps.apply(frame), 'column "a.b" is string', f"cast it, e.g. {code}")
    assert steps.apply(eval(f"frame{code}")).collect() == [(7,)]


def structs(fields: list[tuple[str, tuple[str, str]]]) -> tuple[str, ...]:
    quoted = [(name.replace("`", "``"), kinds) for name, kinds in fields]
    return tuple(f"STRUCT<{', '.join(f'`{name}`: {kinds[at]}' for name, kinds in quoted)}>" for at in range(2))


NAMES = st.sampled_from(["a", "from", "a b", "é", "a`b", "a.b", 'say "a"', "*", "\\"])
DECLARED = st.sampled_from([
    "STRING", "BIGINT", "INT", "DOUBLE", "BINARY", "DATE", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DECIMAL(10,2)", "BOOLEAN"
])  # fmt: skip
ACTUAL = DECLARED | st.sampled_from(["INTERVAL YEAR", "VARIANT", "VOID"])
PAIRS = st.recursive(
    st.tuples(ACTUAL, DECLARED),
    lambda pairs: st.one_of(
        st.tuples(pairs, DECLARED).map(lambda found: (found[0][0], found[1])),
        pairs.map(lambda pair: tuple(f"ARRAY<{kind}>" for kind in pair)),
        pairs.map(lambda pair: tuple(f"MAP<STRING, {kind}>" for kind in pair)),
        st.lists(st.tuples(NAMES, pairs), min_size=1, max_size=3, unique_by=lambda field: field[0]).map(structs),
    ),
    max_leaves=4,
)


@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(name=NAMES, kinds=PAIRS, zoned=st.booleans(), ansi=st.booleans())
def test_an_error_has_only_casts_that_spark_has(
    session: Any, changed: Change, name: str, kinds: tuple[str, str], zoned: bool, ansi: bool
) -> None:
    """The remedy of a column of another type is a cast after which the column fits, or no cast if Spark has none."""
    changed("spark.sql.timestampType", "TIMESTAMP_LTZ" if zoned else "TIMESTAMP_NTZ")
    changed("spark.sql.ansi.enabled", str(ansi).lower())
    quoted = "`" + name.replace("`", "``") + "`"
    schema, kind = f"{quoted} {kinds[1]}", session.createDataFrame([], f"x {kinds[1]}").schema[0].dataType
    frame = session.createDataFrame([], f"{quoted} {kinds[0]}")
    try:
        declared_columns(frame, schema, "rows")
    except RunError as error:
        code = re.search(r"fix: cast it, e\.g\. (.*), or declare another type", str(error))
        if code is not None:
            declared_columns(eval(f"frame{code[1]}"), schema, "rows")
        elif NO_CAST not in str(error):
            with pytest.raises(AnalysisException):
                frame.select(F.col(quoted).cast(kind))


def test_a_timestamp_of_a_program_has_a_zone(session: Any, changed: Change) -> None:
    text = "timestamp TIMESTAMP, `TIMESTAMP, ` timestamp NOT NULL, a STRUCT<timestamp: TIMESTAMP, b: MAP<STRING, "
    text += "ARRAY<TIMESTAMP>>>, ntz TIMESTAMP_NTZ COMMENT 'TIMESTAMP, x y', t TIMESTAMP COMMENT 'no TIMESTAMP', "
    text += "d DATE, m MAP<STRING, INTERVAL DAY TO SECOND>, n DECIMAL(10, 2) NOT NULL, o STRUCT<from BIGINT, b: DATE>"
    before = struct_of(text)
    assert before == session.createDataFrame([], text).schema
    changed("spark.sql.ansi.enabled", "true")
    changed("spark.sql.ansi.enforceReservedKeywords", "true")
    changed("spark.sql.timestampType", "TIMESTAMP_NTZ")
    assert struct_of(text) == before
    assert before.simpleString().count("timestamp_ntz") == 1


def test_states_and_dead_letters_under_all_settings(session: Any, changed: Change, steps: Steps, tmp_path: Any) -> None:
    changed("spark.sql.ansi.enabled", "true")
    changed("spark.sql.ansi.enforceReservedKeywords", "true")
    changed("spark.sql.timestampType", "TIMESTAMP_NTZ")
    changed("spark.sql.caseSensitive", "true")
    rows = session.createDataFrame(
        [("a", 1, BEGIN), ("b", -2, BEGIN)], "`user` STRING, amount BIGINT, at TIMESTAMP_LTZ"
    )
    rows.coalesce(1).write.parquet(str(tmp_path / "in"))
    found = steps.apply_all(rows, order_by="at", gives_states=True).persist()
    assert [row["step"] for row in steps.dead_letters(found).collect()] == ["sum"]
    steps.states(found).write.parquet(str(tmp_path / "states"))
    states = session.read.parquet(str(tmp_path / "states"))
    stream = session.readStream.schema(rows.schema).parquet(str(tmp_path / "in")).where("amount > 0")
    writer = steps.apply(stream, states=states, order_by="amount").writeStream.format("parquet")
    writer = writer.option("path", str(tmp_path / "out")).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert [row["total"] for row in session.read.parquet(str(tmp_path / "out")).collect()] == [2]
    assert [row["key"] for row in steps.read_states(session, str(tmp_path / "checkpoint")).collect()] == [b"a"]
