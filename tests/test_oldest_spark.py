"""The oldest Spark that the runtime may be installed with; all other tests run on the newest."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.run import TESTS, framed, wallaroo
from support.spark_job import Job
from support.state import STATE, by_letter, totals
from support.word_bench import Bench
from wallaroo_runtime.system.maven import fetched_jars

pytestmark = [pytest.mark.jvm, pytest.mark.long]

REQUIRED = re.compile(r'"pyspark>=(\d+\.\d+),')
DELTA = "4.4.0"  # the newest; made for this Spark, whose classes it needs as they were
PROGRAM = "import pyspark; print(pyspark.__version__)"


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Install the oldest PySpark in a folder of its own; gives the PYTHONPATH with which processes import it."""
    found = REQUIRED.search((TESTS.parent / "runtime" / "pyproject.toml").read_text(encoding="utf-8"))
    assert found is not None
    version, folder = f"{found[1]}.0", tmp_path_factory.mktemp("pyspark")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps")
    subprocess.run((*pip, "--target", str(folder), f"pyspark=={version}"), check=True, timeout=800)
    shown = subprocess.run(
        (sys.executable, "-c", PROGRAM), capture_output=True, text=True, check=True, env={"PYTHONPATH": str(folder)}
    )
    assert shown.stdout.strip() == version
    return str(folder)


@pytest.mark.parametrize("language", ["python", "go"])
def test_the_newest_spark_continues_what_the_oldest_began(
    language: str, oldest: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(language, tmp_path / "checkpoint")
    try:
        for path in (*([oldest] if language == "python" else []), oldest, ""):
            monkeypatch.setenv("PYTHONPATH", path)
            texts = [f"word{i % 50} of the oldest one{i % 7}, and of no other" for i in range(5000)]
            run = bench.start()
            bench.expect(texts)
            run.send(framed(text.encode() for text in texts))
            bench.check()
            assert run.stop() == 0, run.said()
            shown = wallaroo("state", "dump", bench.checkpoint, STATE, "--json")
            assert shown.returncode == 0, shown.stderr
            found = {row["key"]: totals(row["value"]) for row in map(json.loads, shown.stdout.splitlines())}
            assert found == by_letter(bench.expected)
    finally:
        bench.close()


def test_real_time_mode_needs_a_newer_spark(oldest: str, tmp_path: Path) -> None:
    app = TESTS / "cases" / "word_count" / "app.py"
    ends = ("--in", "127.0.0.1:0", "--out", "127.0.0.1:9", "--checkpoint", tmp_path / "checkpoint")
    done = wallaroo("run", app, *ends, "--mode", "realtime", env=os.environ | {"PYTHONPATH": oldest})
    assert done.returncode == 2
    assert "R755 real-time mode cannot run this: PySpark 4.2.0\n  fix: install PySpark 4.3.0" in done.stderr


def test_steps_write_a_delta_table_exactly_whatever_is_killed(oldest: str, tmp_path: Path) -> None:
    jars = fetched_jars(f"delta-{DELTA}", [f"io.delta:delta-storage:{DELTA}"], f"io.delta:delta-spark_4.2_2.13:{DELTA}")
    settings = {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "1",
    }
    options = [item for name, value in settings.items() for item in ("--conf", f"{name}={value}")]
    options += ["--jars", ",".join(map(str, jars.glob("*.jar")))]
    job = Job(tmp_path, "python", "local-cluster[2,1,900]", *options, kind="delta", spark=oldest)
    process = job.start()
    job.reach(1, process)
    os.kill(job.executors()[0], signal.SIGKILL)
    job.reach(3, process)
    job.kill(process)
    job.finish(job.start())
    assert len(list((tmp_path / "out" / "_delta_log").glob("*.json"))) == job.batches()
