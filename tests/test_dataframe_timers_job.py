"""A PySpark job with timers and ttl between DataFrames, by event time under a watermark: killed at random."""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from support import row_timers
from support.drawn_timers import DELAY_MS, check, drawn, steps_of, with_watermarks
from support.row_stream import parts
from support.spark_job import Job

pytestmark = [pytest.mark.jvm, pytest.mark.long]
BATCHES, ROWS, SEED = 10, 30, 6
JOB = """
import json
import sys
from pyspark.sql import SparkSession
from wallaroo_runtime.dataframe import load

app, folder = sys.argv[1:3]
spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.schema("SCHEMA").option("maxFilesPerTrigger", 1)
rows = rows.json(folder + "/in").withWatermark("at", "DELAY milliseconds")
writer = load(app, ARGUMENTS).apply_all(rows=rows, order_by="n").writeStream.format("parquet")
writer = writer.option("path", folder + "/out").option("checkpointLocation", folder + "/checkpoint")
writer.trigger(availableNow=True).start().awaitTermination()
found = spark.read.parquet(folder + "/out")
columns = "output", "decode(value, 'UTF-8') AS value", "dead_letter.code", "dead_letter.step"
for row in found.selectExpr(*columns, "decode(dead_letter.key, 'UTF-8') AS key").collect():
    print("row", json.dumps(row.asDict()))
"""


class TimerJob(Job):
    """The job on a folder with drawn rows, whose messages set timers of several steps, some of which have a ttl."""

    def __init__(self, folder: Path, language: str) -> None:
        super().__init__(folder, language, "local[2]")
        self.described = steps_of(SEED)
        self.batches_of_rows = parts(drawn(SEED, BATCHES * ROWS), ROWS)
        program = folder / "timers"
        program.mkdir()
        app = str(row_timers.write_program(program, language))
        self._command = [app if each == str(self.app) else each for each in self._command]
        job = JOB.replace("SCHEMA", row_timers.SCHEMA).replace("DELAY", str(DELAY_MS))
        (folder / "job.py").write_text(job.replace("ARGUMENTS", repr(row_timers.arguments(self.described))))
        names = [each.split()[0] for each in row_timers.SCHEMA.split(", ")]
        for number, rows in enumerate(self.batches_of_rows):
            path = folder / "in" / f"{number}.json"
            texts = [json.dumps(dict(zip(names, row, strict=True)), default=lambda at: at.isoformat()) for row in rows]
            path.write_text("\n".join(texts))
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))  # they are read in this order

    def check(self, said: str) -> None:
        """Compare what the job has printed with the reference."""
        rows = [json.loads(line[4:]) for line in said.splitlines() if line.startswith("row ")]
        for row in rows:
            row["dead_letter"] = None if row["code"] is None else {**row, "key": row["key"].encode()}
        assert any(row["code"] for row in rows)
        check(self.described, rows, with_watermarks(self.batches_of_rows))


@pytest.mark.parametrize("language", ["python", "go"])
def test_a_job_with_timers_that_is_killed_is_exact(tmp_path: Path, language: str) -> None:
    job, chance = TimerJob(tmp_path, language), random.Random(7)
    for killing in range(2):
        process = job.start()
        job.reach(job.batches() + 1, process)
        time.sleep(chance.random())
        if killing % 2:
            others = [pid for pid in job.family() if pid != process.pid]  # Python, a supervisor, a worker
            os.kill(chance.choice(others), signal.SIGKILL)
            time.sleep(1)
        job.kill(process)
        assert 0 < job.batches() < BATCHES
    job.finish(job.start())
