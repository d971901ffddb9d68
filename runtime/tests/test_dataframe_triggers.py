"""Steps give the same rows with each trigger that has micro-batches. One without them suits some steps only."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from support.dated_totals import SCHEMA, drawn, rows_of, totals
from wallaroo_runtime.dataframe import Steps, load

pytestmark = pytest.mark.jvm
TOPICS = """
import wallaroo

def application_setup(args):
    topic = wallaroo.KafkaSourceConfig("in", [("127.0.0.1", 9)], "warn", decode)
    upper = wallaroo.KafkaSinkConfig("out", [("127.0.0.1", 9)], "warn", 0, 100000, encode)
    return wallaroo.build_application("Same", wallaroo.source("topic", topic).to_sink(upper))

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs

@wallaroo.encoder
def encode(bs):
    return bs
"""
INTERVALS = 10
TRIGGERS: list[dict[str, Any]] = [{"processingTime": "0 seconds"}, {"once": True}, {"availableNow": True}, {}]


def test_a_query_may_start_again_with_another_trigger(session: Any, steps: Steps, tmp_path: Path) -> None:
    orders = sorted(drawn(21, 80), key=lambda order: order[2])
    for number, trigger in enumerate(TRIGGERS):
        part = orders[20 * number : 20 * number + 20]
        rows_of(session, part).coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
        source = session.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
        writer = steps.apply(source, order_by="at").writeStream.option("path", str(tmp_path / "out"))
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = (writer.trigger(**trigger) if trigger else writer).start()
        query.processAllAvailable()
        query.stop()
        found = session.read.parquet(str(tmp_path / "out")).collect()
        assert sorted((row["user"], row["total"]) for row in found) == sorted(totals(orders[: 20 * number + 20]))


def count_objects(session: Any, name: str) -> int:
    """Return how many objects of a class Java keeps."""
    number = session._jvm.java.lang.ProcessHandle.current().pid()
    done = subprocess.run(["jcmd", str(number), "GC.class_histogram"], capture_output=True, text=True, check=True)
    return sum(int(line.split()[1]) for line in done.stdout.splitlines() if name in line.split())


def test_continuous_is_for_topics_and_rows_leave_at_each_interval(
    session: Any, steps: Steps, wait_until: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "topics.py").write_text(TOPICS)
    source = session.readStream.format("rate").option("numPartitions", 1).load()  # a task occupies a core
    orders = source.selectExpr("'a' AS user", "value AS amount", "timestamp AS at")
    writer = steps.apply(orders).writeStream.format("memory").queryName("refused").trigger(continuous="1 second")
    with pytest.raises(AnalysisException, match="Continuous processing does not support"):
        writer.option("checkpointLocation", str(tmp_path / "refused")).start()
    rows = load(tmp_path / "topics.py").apply(source.selectExpr("string(value) AS value", "timestamp"))
    writer = rows.writeStream.format("memory").queryName("continuous").trigger(continuous="100 milliseconds")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    wait_until(lambda: session.table("continuous").count() > 1, "rows of several intervals", 300.0)
    commits = tmp_path / "checkpoint" / "commits"
    wait_until(lambda: sum(1 for _ in commits.glob("[0-9]*")) > INTERVALS, "many intervals", 300.0)
    assert count_objects(session, "org.wallaroo.spark.stage.SourceLevel") < INTERVALS / 2, "a task keeps all intervals"
    query.stop()
