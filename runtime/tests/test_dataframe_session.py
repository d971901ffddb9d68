"""Workers end with the session, also if tasks run, and the next session starts others. Only Spark itself warns."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.dated_totals import PROGRAM
from support.run import QUICK_SPARK

pytestmark = [pytest.mark.jvm, pytest.mark.slow]
JOB = """
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from wallaroo_runtime.dataframe import load

def workers():
    found = set()
    for place in Path("/proc").glob("[0-9]*"):
        try:
            is_ours = sys.argv[2].encode() in (place / "environ").read_bytes()
            if is_ours and b".worker" in (place / "cmdline").read_bytes():
                found.add(place.name)
        except OSError:
            pass
    return found

for turn in range(2):
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.sql.shuffle.partitions", 1).getOrCreate()
    rows = spark.sql("SELECT 'a' AS user, 2L AS amount, current_timestamp() AS at")
    assert [row["total"] for row in load(sys.argv[1]).apply(rows).collect()] == [2]
    assert workers(), "none is seen"
    print("the first result is there", file=sys.stderr, flush=True)
    live = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
    live = live.selectExpr("string(value) AS user", "1L AS amount", "timestamp AS at")
    query = load(sys.argv[1]).apply(live).writeStream.format("noop")
    query = query.option("checkpointLocation", f"{sys.argv[3]}/{turn}").start()
    while not (query.lastProgress and query.lastProgress["numInputRows"]):  # after which many rows wait
        assert query.isActive, query.exception()
        time.sleep(0.1)
    time.sleep(1)
    spark.stop()  # while tasks run
    deadline = gone = time.monotonic() + 60
    while time.monotonic() < gone + 5:  # none comes back
        gone = time.monotonic() if workers() else min(gone, time.monotonic())
        assert gone < deadline, f"these live on: {workers()}"
        time.sleep(0.1)
print("ended")
"""


def test_workers_end_with_the_session_and_none_comes_back(tmp_path: Path) -> None:
    program = tmp_path / "totals.py"
    program.write_text(
        "import time\n" + PROGRAM.replace("    state.total += ", "    time.sleep(0.05)\n    state.total += ")
    )
    job = tmp_path / "job.py"
    job.write_text(JOB)
    mark = f"WALLAROO_TEST_SESSION={tmp_path}"
    name, _, value = mark.partition("=")
    done = subprocess.run(
        [sys.executable, str(job), str(program), mark, str(tmp_path)], env={**os.environ, **QUICK_SPARK, name: value},
        timeout=300, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip().endswith("ended"), done.stdout + done.stderr
    start = done.stderr.partition("the first result is there")[0]
    assert "WARN NativeCodeLoader" in start, "Spark's warnings are seen"
    assert "SO_KEEPALIVE" not in done.stderr
    assert "StateStoreCoordinator" not in start
