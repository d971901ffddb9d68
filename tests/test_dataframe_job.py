"""A PySpark job of somebody's own with an application's steps: killed at random, and on executors of their own."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

import pyspark
import pytest

from support import row_windows
from support.host import descendants
from support.row_totals import write_program
from support.run import TESTS, wait_until

sys.path.insert(0, str(TESTS.parent / "topology-schema" / "vectors"))
from make_windows import Reference, ranges

FILES, ROWS, USERS = 6, 200, 5
# The session has no settings of ours.
JOB = """
import sys
from pyspark.sql import SparkSession
from wallaroo_runtime.dataframe import load

app, folder, master, *args = sys.argv[1:]
builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.shuffle.partitions", "3").config("spark.executor.memory", "600m").getOrCreate()
if args:
    rows = spark.readStream.schema("key STRING, value BIGINT, at TIMESTAMP, n BIGINT")
    rows = rows.option("maxFilesPerTrigger", 1).json(folder + "/in").withWatermark("at", "40 milliseconds")
    writer = load(app, args).apply(rows=rows, order_by="n").writeStream.format("parquet")
    writer = writer.option("path", folder + "/out").option("checkpointLocation", folder + "/checkpoint")
    writer.trigger(availableNow=True).start().awaitTermination()
    rows = spark.read.parquet(folder + "/out").collect()
    print("rows", sorted([row["key"], row["begin"], row["end"], *row["values"]] for row in rows))
    sys.exit()
orders = spark.readStream.schema("user STRING, amount INT").option("maxFilesPerTrigger", 1).json(folder + "/in")
totals = load(app).apply(orders=orders)
names = spark.createDataFrame([(f"u{n}", f"name {n}") for n in range(5)], "user STRING, name STRING")
writer = totals.join(names, "user").writeStream.format("parquet").option("path", folder + "/out")
query = writer.option("checkpointLocation", folder + "/checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
rows = spark.read.parquet(folder + "/out").select("name", "total").collect()
print("rows", sorted([row["name"], row["total"]] for row in rows))
"""


class Job:
    """The job on a folder with drawn orders, and what it must give."""

    def __init__(self, folder: Path, language: str, master: str) -> None:
        self.folder, self.master = folder, master
        self.app = write_program(folder, language)
        (folder / "job.py").write_text(JOB)
        (folder / "in").mkdir()
        chance, sums, self.expected = random.Random(7), dict[str, int](), []
        for number in range(FILES):
            orders = [{"user": f"u{chance.randrange(USERS)}", "amount": 1} for _ in range(ROWS)]
            for order in orders:  # amounts are equal, so that their order in a micro-batch does not show
                sums[order["user"]] = sums.get(order["user"], 0) + 1
                self.expected.append([f"name {order['user'][1:]}", sums[order["user"]]])
            (folder / "in" / f"{number}.json").write_text("\n".join(map(json.dumps, orders)))

    def arguments(self) -> list[str]:
        """Return what the program is loaded with."""
        return []

    def start(self) -> "subprocess.Popen[str]":
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        own = {
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(
                [sys.executable, "job.py", str(self.app), str(self.folder), self.master, *self.arguments()],
                cwd=self.folder, env={**kept, **own}, stdout=subprocess.PIPE, stderr=log, text=True,
                start_new_session=True,
            )  # fmt: skip

    def finish(self, process: "subprocess.Popen[str]") -> None:
        """Wait for the end of the job, and check what it gives and leaves."""
        said, _ = process.communicate(timeout=900)
        assert process.returncode == 0, (self.folder / "log").read_text()[-3000:]
        (rows,) = (line for line in said.splitlines() if line.startswith("rows "))
        assert eval(rows.removeprefix("rows ")) == sorted(self.expected)

    def batches(self) -> int:
        return len(list((self.folder / "checkpoint" / "commits").glob("[0-9]*")))


class Windows(Job):
    """A job with windows by event time, which follow a watermark."""

    WINDOW = ranges(50, 20, delay=20, late="fire_per_message", time="event")

    def __init__(self, folder: Path, language: str, master: str) -> None:
        self.folder, self.master = folder, master
        self.app = row_windows.write_program(folder, language)
        (folder / "job.py").write_text(JOB)
        (folder / "in").mkdir()
        chance, events, now, latest, number = random.Random(8), [], 1_767_225_600_000, 0, 0
        for file in range(FILES):
            rows = []
            for _ in range(ROWS):
                now += chance.choice((0, 1, 3))
                number, at = number + 1, now - chance.choice((0, 0, 30, 90))
                latest = max(latest, at)
                text = datetime.fromtimestamp(at / 1000, timezone.utc).isoformat(timespec="milliseconds")
                rows.append({"key": f"u{chance.randrange(USERS)}", "value": number, "at": text, "n": number})
                events.append({"sequence": number, "key": rows[-1]["key"], "time": at, "value": number})
            events.append({"sequence": number + 1, "tick": latest - 40})
            path = folder / "in" / f"{file}.json"
            path.write_text("\n".join(map(json.dumps, rows)))
            os.utime(path, (1_700_000_000 + file, 1_700_000_000 + file))  # they are read in this order
        reference = Reference(self.WINDOW, has_watermarks=True)
        reference.run(events)
        self.expected = [[each.key, *each.bounds, *each.values] for each in reference.given]

    def arguments(self) -> list[str]:
        return row_windows.arguments([[self.WINDOW]])


@pytest.mark.long
@pytest.mark.jvm
@pytest.mark.parametrize("kind", [Job, Windows])
@pytest.mark.parametrize("language", ["python", "go"])
def test_a_job_that_is_killed_is_exact(tmp_path: Path, language: str, kind: type[Job]) -> None:
    job, chance = kind(tmp_path, language, "local[2]"), random.Random(language)
    for killing in range(2):
        process, reached = job.start(), job.batches() + 1
        wait_until(lambda reached=reached: job.batches() >= reached, "a micro-batch", 600.0)  # type: ignore[misc]
        time.sleep(chance.random())
        family = [process.pid, *descendants(process.pid)]
        if killing % 2:
            os.kill(chance.choice(family[2:]), signal.SIGKILL)  # Java, a supervisor or a worker: the job may live on
            time.sleep(1)
        for pid in family:
            if Path(f"/proc/{pid}").exists() and (
                pid == process.pid or b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()
            ):
                os.kill(pid, signal.SIGKILL)
        process.communicate()
        wait_until(lambda family=family: not any(map(is_running, family)), "the workers to end", 60.0)  # type: ignore[misc]
    job.finish(job.start())


@pytest.mark.cluster
@pytest.mark.jvm
@pytest.mark.parametrize("language", ["python", "go"])
def test_executors_of_their_own_get_program_and_classes(tmp_path: Path, language: str) -> None:
    job = Job(tmp_path, language, "local-cluster[2,1,900]")
    process = job.start()
    family: set[int] = set()
    while process.poll() is None and not job.batches() > 3:
        family |= set(descendants(process.pid))
        time.sleep(0.2)
    job.finish(process)
    wait_until(lambda: not any(map(is_running, family)), "executors and workers to end", 60.0)


def is_java(pid: int) -> bool:
    """Say whether a process runs Java."""
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name == "java"
    except OSError:
        return False


def is_running(pid: int) -> bool:
    """Say whether a process runs, and is not only waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
