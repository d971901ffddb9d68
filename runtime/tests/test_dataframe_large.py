"""A row that is larger than messages may be is a dead letter; other rows go on."""

import random
from pathlib import Path
from typing import Any

import pytest

from support.dated_totals import BEGIN, SCHEMA, rows_of
from wallaroo_runtime.dataframe import Steps, load
from wallaroo_runtime.spark.machine.jar import java_class

pytestmark = pytest.mark.jvm
MOST = 16 << 20
BYTES = """
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode()

@wallaroo.encoder
def encode(text):
    return text.upper(), text[:1]

@wallaroo.computation("measure")
def measure(text):
    return {"size": len(text)}

def application_setup(args):
    lines = wallaroo.source("lines", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    upper = wallaroo.KafkaSinkConfig("upper", [("127.0.0.1", 9)], "warn", 0, 100000, encode)
    lengths = wallaroo.DataFrameSinkConfig({"size": int}, name="lengths")
    return wallaroo.build_application("Upper", lines.to_sink(upper), lines.to(measure).to_sink(lengths))
"""
ROWS = """
import wallaroo

def application_setup(args):
    rows = wallaroo.source("rows", wallaroo.DataFrameSourceConfig({"id": int}))
    return wallaroo.build_application("Same", rows.to_sink(wallaroo.DataFrameSinkConfig({"id": int})))
"""


def test_a_task_may_have_more_partitions_than_a_worker_has_threads(session: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(ROWS)
    connections: Any = java_class(session, "worker.WorkerConnection")
    connections.takeEndings()
    found = load(tmp_path / "rows.py").apply(session.range(0, 520, 1, 260)).coalesce(1)
    assert sorted(row["id"] for row in found.collect()) == [*range(520)]
    assert not connections.takeEndings(), "a call waited for a thread, until its worker was killed"


def test_rows_of_all_sizes_come_back_from_their_arrays(session: Any, tmp_path: Path) -> None:
    """Rows of `apply` come in arrays of some kilobytes, those of `apply_all` one by one."""
    (tmp_path / "text.py").write_text(ROWS.replace('"id": int', '"text": str'))
    steps, chance = load(tmp_path / "text.py"), random.Random(10)
    sizes = [10] * 3000 + [20_000] * 150 + [200_000] * 15
    texts = [chance.choice('a"\\,]ü\n') * chance.randrange(most) for most in chance.sample(sizes, len(sizes))]
    rows = session.createDataFrame([(text,) for text in texts], "text STRING").repartition(3)
    for found in (steps.apply(rows), steps.select(steps.apply_all(rows), "Same")):
        assert sorted(row["text"] for row in found.collect()) == sorted(texts)


def test_a_row_that_is_too_large_is_a_dead_letter_in_a_stream(session: Any, steps: Steps, tmp_path: Path) -> None:
    orders = rows_of(session, [("a", 1, BEGIN), ("large", 2, BEGIN), ("b", 3, BEGIN), ("large", 4, BEGIN)])
    orders.coalesce(1).write.parquet(str(tmp_path / "in"))
    text = f"if(user = 'large', repeat('xy', {MOST // 2}), user) AS user"
    rows = session.readStream.schema(SCHEMA).parquet(str(tmp_path / "in")).selectExpr(text, "amount", "at")
    query = steps.apply_all(rows).writeStream.format("memory").queryName("large")
    query = query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    query.start().awaitTermination()
    found = session.table("large")
    assert sorted(row["total"] for row in steps.select(found, "Totals").collect()) == [1, 3]
    letters = steps.dead_letters(found).collect()
    for letter in letters:
        assert (letter["code"], letter["step"], letter["key"], letter["input"]) == ("R606", "orders", None, b"")
        assert letter["preview"].startswith('{"user":"xyxy')
        assert len(letter["preview"]) == 80
    assert len(letters) == 2
    assert letters[0]["error"].startswith("a row of 16,777,2")
    assert 'bytes; at most 16,777,216 are taken; its column "user" has 16,777,21' in letters[0]["error"]


def test_it_ends_a_query_that_has_no_rows_for_it(session: Any, steps: Steps) -> None:
    rows = rows_of(session, [("a", 1, BEGIN)]).selectExpr(f"repeat('x', {MOST}) AS user", "amount", "at")
    with pytest.raises(Exception, match='R611 the query stopped; source "orders": R606 a row of 16,777,2') as caught:
        steps.apply(rows).collect()
    assert "fix: drop or shorten the column before `apply`, or call apply_all" in str(caught.value)
    assert "framing" not in str(caught.value)


def test_in_a_batch_a_row_that_just_fits_is_taken_and_a_larger_one_is_a_dead_letter(session: Any, steps: Steps) -> None:
    most = MOST - len('{"user":"","amount":1,"at":"2026-01-01T00:00:00.000000Z"}')
    rows = rows_of(session, [("x", 1, BEGIN), ("y", 2, BEGIN)])
    found = steps.apply_all(rows.selectExpr(f"repeat(user, {most} + int(amount) - 1) AS user", "amount", "at"))
    found = found.selectExpr("output", "length(value) AS length", "dead_letter.code AS code").collect()
    assert sorted((row["output"], row["code"]) for row in found if row["output"]) == [("Totals", None)]
    assert [row["code"] for row in found if not row["output"]] == ["R606"]


def test_values_of_bytes_are_no_rows_and_the_codec_of_the_program_reads_and_writes_them(
    session: Any, tmp_path: Path
) -> None:
    (tmp_path / "upper.py").write_text(BYTES)
    steps = load(tmp_path / "upper.py")
    rows = session.createDataFrame([("ab",), ("cd",), ("",)], "value STRING")
    found = steps.apply_all(rows.selectExpr(f"if(value = '', repeat('x', {MOST + 1}), value) AS value")).persist()
    upper = steps.select(found, "Upper").collect()
    assert sorted((bytes(row["key"]), bytes(row["value"])) for row in upper) == [(b"a", b"AB"), (b"c", b"CD")]
    assert [row["size"] for row in steps.select(found, "lengths").collect()] == [2, 2]
    (letter,) = steps.dead_letters(found).collect()
    assert letter["error"] == "a message of 16,777,217 bytes; at most 16,777,216 are taken"
