"""Workers end with the session, and the next session of the process starts others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
    spark.stop()
    deadline = time.monotonic() + 60
    while workers():
        assert time.monotonic() < deadline, f"these live on: {workers()}"
        time.sleep(0.1)
print("ended")
"""


def test_workers_end_with_the_session(program: str, tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB)
    mark = f"WALLAROO_TEST_SESSION={tmp_path}"
    name, _, value = mark.partition("=")
    done = subprocess.run(
        [sys.executable, str(job), program, mark], env={**os.environ, **QUICK_SPARK, name: value}, timeout=300,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip().endswith("ended"), done.stdout + done.stderr
