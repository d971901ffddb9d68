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
LINES = """
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return {"size": len(bs)}

def application_setup(args):
    lines = wallaroo.source("lines", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    return wallaroo.build_application("Lengths", lines.to_sink(wallaroo.DataFrameSinkConfig({"size": int})))
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
    found = load(tmp_path / "rows.py").apply(session.range(0, 600, 1, 300)).coalesce(1)
    assert sorted(row["id"] for row in found.collect()) == [*range(600)]
    assert not connections.takeEndings(), "a call waited for a thread, until its worker was killed"


@pytest.mark.parametrize("most", [10, 20_000, 200_000])
def test_rows_of_all_sizes_come_back_from_their_arrays(session: Any, tmp_path: Path, most: int) -> None:
    """Rows of `apply` come in arrays of some kilobytes, those of `apply_all` one by one."""
    (tmp_path / "text.py").write_text(ROWS.replace('"id": int', '"text": str'))
    steps, chance = load(tmp_path / "text.py"), random.Random(most)
    texts = [chance.choice('a"\\,]ü\n') * chance.randrange(most) for _ in range(min(3000, 3_000_000 // most))]
    rows = session.createDataFrame([(text,) for text in texts], "text STRING").repartition(3)
    assert sorted(row["text"] for row in steps.apply(rows).collect()) == sorted(texts)
    found = steps.select(steps.apply_all(rows), "Same")
    assert sorted(row["text"] for row in found.collect()) == sorted(texts)


@pytest.mark.parametrize("live", [False, True])
def test_a_row_that_is_too_large_is_a_dead_letter(session: Any, steps: Steps, tmp_path: Path, live: bool) -> None:
    orders = rows_of(session, [("a", 1, BEGIN), ("large", 2, BEGIN), ("b", 3, BEGIN), ("large", 4, BEGIN)])
    orders.coalesce(1).write.parquet(str(tmp_path / "in"))
    reader = session.readStream.schema(SCHEMA) if live else session.read
    text = f"if(user = 'large', repeat('xy', {MOST // 2}), user) AS user"
    rows = reader.parquet(str(tmp_path / "in")).selectExpr(text, "amount", "at")
    if live:
        query = steps.apply_all(rows).writeStream.format("memory").queryName("large")
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(
            availableNow=True
        ).start().awaitTermination()
        found = session.table("large")
    else:
        found = steps.apply_all(rows)
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


def test_a_row_that_just_fits_is_taken(session: Any, steps: Steps) -> None:
    least = len('{"user":"","amount":1,"at":"2026-01-01T00:00:00.000000Z"}')
    for more, kind in ((0, [1]), (1, [])):
        text = f"repeat('x', {MOST - least + more}) AS user"
        found = steps.apply_all(rows_of(session, [("a", 1, BEGIN)]).selectExpr(text, "amount", "at"))
        assert [row["total"] for row in steps.select(found, "Totals").collect()] == kind
        assert steps.dead_letters(found).count() == 1 - len(kind)


def test_a_value_of_bytes_is_no_row(session: Any, tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(LINES)
    steps = load(tmp_path / "lines.py")
    rows = session.createDataFrame([("a",)], "value STRING")
    found = steps.apply_all(rows.union(rows.selectExpr(f"repeat('x', {MOST + 1})")))
    assert [row["size"] for row in steps.select(found, "Lengths").collect()] == [1]
    (letter,) = steps.dead_letters(found).collect()
    assert letter["error"] == "a message of 16,777,217 bytes; at most 16,777,216 are taken"
