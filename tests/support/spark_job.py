"""A PySpark job of somebody's own with an application's steps: submitted, killed, submitted again.

Orders are files, a micro-batch each. Amounts are equal, so that their order in a micro-batch does not show.
"""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pyspark

from support.host import marked
from support.row_totals import write_program
from support.run import wait_until
from support.standalone import EXECUTOR, cmdline
from wallaroo_runtime.system.java import QUICK_JAVA

FILES, ROWS, USERS = 6, 200, 5
END_S, LEFT_S = 600.0, 60.0
MARK = "JOB_OF_THE_TEST"
# The session has no settings of ours. The table that the stream has written is a batch in the end, with the same steps.
JOB = """
import sys
from pyspark.sql import SparkSession
from wallaroo_runtime.dataframe import load

app, folder, kind = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
steps = load(app)
orders = spark.readStream.schema("user STRING, amount INT").option("maxFilesPerTrigger", 1).json(folder + "/in")
names = spark.createDataFrame([(f"u{n}", f"name {n}") for n in range(5)], "user STRING, name STRING")
writer = steps.apply(orders=orders).join(names, "user").writeStream.format(kind).option("path", folder + "/out")
query = writer.option("checkpointLocation", folder + "/checkpoint").trigger(availableNow=True).start()
query.awaitTermination()
table = spark.read.format(kind).load(folder + "/out")
again = steps.apply(orders=table.selectExpr("user", "1 AS amount"))
for rows in (table, again.join(names, "user")):
    print("rows", sorted([row["name"], row["total"]] for row in rows.select("name", "total").collect()))
"""


class Job:
    """The job on a folder with drawn orders, and what it must give.

    Args:
        folder: Empty; executors see it, too.
        language: Of the program.
        master: Of Spark.
        kind: Format of the table that is written.
        options: More, for `spark-submit`.
        spark: Folder that has another PySpark than that of the tests.
        more: Variables of the environment.
        prefix: What starts the driver on its host.
    """

    def __init__(
        self, folder: Path, language: str, master: str, *options: str, kind: str = "parquet", spark: str = "",
        prefix: tuple[object, ...] = (), **more: str,
    ) -> None:  # fmt: skip
        self.folder, self.app, self.kind = folder, write_program(folder, language), kind
        home = Path(spark, "pyspark") if spark else Path(pyspark.__file__).parent
        settings = {
            "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "3", "spark.executor.memory": "600m",
            "spark.driver.extraJavaOptions": QUICK_JAVA, "spark.executor.extraJavaOptions": QUICK_JAVA,
        }  # fmt: skip
        given = [item for name, value in settings.items() for item in ("--conf", f"{name}={value}")]
        files = (str(folder / "job.py"), str(self.app), f"file://{folder}", kind)
        self._command = [*prefix, home / "bin" / "spark-submit", "--master", master, *given, *options, *files]
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
        own = {
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            MARK: str(folder),
        }
        self._environment = kept | own | ({"PYTHONPATH": spark} if spark else {}) | more
        (folder / "job.py").write_text(JOB)
        (folder / "in").mkdir()
        chance, sums, self.expected = random.Random(7), dict[str, int](), []
        for number in range(FILES):
            orders = [{"user": f"u{chance.randrange(USERS)}", "amount": 1} for _ in range(ROWS)]
            for order in orders:
                sums[str(order["user"])] = total = sums.get(str(order["user"]), 0) + 1
                self.expected.append([f"name {str(order['user'])[1:]}", total])
            (folder / "in" / f"{number}.json").write_text("\n".join(map(json.dumps, orders)))

    def start(self) -> "subprocess.Popen[str]":
        """Submit it: the process is the driver."""
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(
                list(map(str, self._command)), cwd=self.folder, env=self._environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True,
            )  # fmt: skip

    def finish(self, process: "subprocess.Popen[str]") -> None:
        """Wait for the end of the job, and check what it gives."""
        said, _ = process.communicate(timeout=END_S)
        assert process.returncode == 0, said[-3000:] + (self.folder / "log").read_text()[-3000:]
        self.check(said)
        assert [*(self.folder / "checkpoint" / "state").rglob("*.changelog")]

    def check(self, said: str) -> None:
        """Check what the job has printed."""
        found = [json.loads(line[5:].replace("'", '"')) for line in said.splitlines() if line.startswith("rows ")]
        assert found == [sorted(self.expected)] * 2

    def reach(self, batches: int, process: "subprocess.Popen[str]") -> None:
        """Wait for so many micro-batches."""

        def reached() -> bool:
            assert process.poll() is None, (process.communicate()[0] + (self.folder / "log").read_text())[-3000:]
            return self.batches() >= batches

        wait_until(reached, lambda: f"{batches} micro-batches, {self.batches()} are there", END_S, every=0.05)

    def family(self) -> list[int]:
        """Return the processes of the job on this machine: workers are nobody's descendants."""
        return marked(MARK, str(self.folder))

    def executors(self) -> list[int]:
        """Return the executors of a `local-cluster`."""
        return [pid for pid in self.family() if EXECUTOR in cmdline(pid)]

    def kill(self, process: "subprocess.Popen[str]") -> None:
        """Kill the driver, and wait until all that it has started has ended by itself."""
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.wait_for_the_end()

    def wait_for_the_end(self) -> None:
        """Wait until no process of the job is left."""
        wait_until(lambda: not self.family(), lambda: f"the end of {[*map(cmdline, self.family())]}", LEFT_S)

    def batches(self) -> int:
        """Return how many micro-batches are committed."""
        return len(list((self.folder / "checkpoint" / "commits").glob("[0-9]*")))
