"""A PySpark job with windows between DataFrames, by event time under a watermark: killed at random."""

import json
import os
import random
import signal
import time
from datetime import datetime, timezone
from pathlib import Path

import pytest

from support import row_windows
from support.spark_job import FILES, ROWS, USERS, Job
from vector.make_windows import Reference, ranges

pytestmark = [pytest.mark.jvm, pytest.mark.long]
WINDOW = ranges(50, 20, delay=20, late="fire_per_message", time="event")
JOB = """
import sys
from pyspark.sql import SparkSession
from wallaroo_runtime.dataframe import load

app, folder = sys.argv[1:3]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("key STRING, value BIGINT, at TIMESTAMP, n BIGINT").option("maxFilesPerTrigger", 1)
rows = rows.json(folder + "/in").withWatermark("at", "40 milliseconds")
writer = load(app, ARGUMENTS).apply(rows=rows, order_by="n").writeStream.format("parquet")
writer = writer.option("path", folder + "/out").option("checkpointLocation", folder + "/checkpoint")
writer.trigger(availableNow=True).start().awaitTermination()
rows = spark.read.parquet(folder + "/out").collect()
print("rows", sorted([row["key"], row["begin"], row["end"], *row["values"]] for row in rows))
"""


class WindowJob(Job):
    """The job on a folder with drawn rows, some of them late, and what it must give."""

    def __init__(self, folder: Path, language: str) -> None:
        super().__init__(folder, language, "local[2]")
        app = str(row_windows.write_program(folder, language))
        self._command = [app if each == str(self.app) else each for each in self._command]
        (folder / "job.py").write_text(JOB.replace("ARGUMENTS", repr(row_windows.arguments([[WINDOW]]))))
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
        reference = Reference(WINDOW, has_watermarks=True)
        reference.run(events)
        self.expected = [[each.key, *each.bounds, *each.values] for each in reference.given]

    def check(self, said: str) -> None:
        """Check what the job has printed."""
        (rows,) = [json.loads(line[5:].replace("'", '"')) for line in said.splitlines() if line.startswith("rows ")]
        assert rows == sorted(self.expected)


def test_a_job_with_windows_that_is_killed_is_exact(tmp_path: Path) -> None:
    job, chance = WindowJob(tmp_path, "python"), random.Random(7)
    for killing in range(2):
        process = job.start()
        job.reach(job.batches() + 1, process)
        time.sleep(chance.random())
        if killing % 2:
            os.kill(chance.choice(job.family()), signal.SIGKILL)
            time.sleep(1)
        job.kill(process)
    job.finish(job.start())
