"""`make bench-dataframe`: a keyed sum between DataFrames, live and in a batch, against `transformWithStateInPandas`.

Each part has a process and a Spark of its own, with the same data, cores, partitions and state store, and the sink
`noop`. PySpark's gets fewer rows and keys.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from support.host import marked
from support.row_totals import write_program

SCHEMA, PARTITIONS, FILES = "user STRING, amount BIGINT", 2, 4
BATCH_ROWS, BATCH_PARTITIONS = 500_000, 40  # of a partition of a batch, at most, and the least number
MARK = "PART_OF_THE_BENCH"  # by which processes of a part are found: workers are nobody's descendants
STORE = "spark.sql.streaming.stateStore"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Memory:
    """The resident memory of all processes of a part, at most; shared pages count for each."""

    def __enter__(self) -> "Memory":
        self.most, self._over = 0, threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(1.0):
            self.most = max(self.most, sum(map(resident, marked(MARK, os.environ[MARK]))))


def resident(pid: int) -> int:
    """Return the bytes of a process in memory; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def session(partitions: int) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", partitions).config("spark.driver.memory", "3g")
    builder = builder.config(f"{STORE}.providerClass", ROCKSDB)
    spark = builder.config(f"{STORE}.rocksdb.changelogCheckpointing.enabled", "true").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def in_pandas(rows: Any) -> Any:
    """Return the sums by PySpark's own operator, a key at a time."""
    import pandas
    from pyspark.sql.streaming import StatefulProcessor

    class Sum(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.total = handle.getValueState("total", "n BIGINT")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
            found = self.total.get()
            total = found[0] if found else 0
            for frame in rows:
                totals = []
                for amount in frame["amount"]:
                    total += int(amount)
                    totals.append(total)
                yield pandas.DataFrame({"user": [key[0]] * len(totals), "total": totals})
            self.total.update((total,))

        def close(self) -> None:
            pass

    return rows.groupBy("user").transformWithStateInPandas(Sum(), "user STRING, total BIGINT", "Append", "None")


def part(side: str, mode: str, rows: int, keys: int, folder: Path) -> None:
    """Run one part, and print its rate."""
    from pyspark.sql import functions as F

    spark = session(PARTITIONS if mode == "stream" else max(BATCH_PARTITIONS, rows // BATCH_ROWS))
    data = folder / f"{rows}-{keys}"
    if not data.exists():
        user = F.concat(F.lit("u"), F.pmod(F.xxhash64("id"), F.lit(keys)).cast("string")).alias("user")
        spark.range(0, rows, 1, FILES).select(user, (F.col("id") % 100).alias("amount")).write.parquet(str(data))
    reader = spark.read if mode == "batch" else spark.readStream.option("maxFilesPerTrigger", 1)
    frame = reader.schema(SCHEMA).parquet(str(data))
    if side == "pandas":
        found = in_pandas(frame)
    else:
        from wallaroo_runtime.dataframe import load

        found = load(write_program(Path(tempfile.mkdtemp(dir=folder)), side)).apply(orders=frame)
    begin = time.monotonic()
    with Memory() as memory:
        if mode == "batch":
            found.write.format("noop").mode("overwrite").save()
        else:
            writer = found.writeStream.format("noop").option("checkpointLocation", tempfile.mkdtemp(dir=folder))
            writer.trigger(availableNow=True).start().awaitTermination()
    seconds = time.monotonic() - begin
    amount = f"{rows:>11,} rows {keys:>10,} keys {seconds:7.1f} s {rows / seconds:>10,.0f} rows/s"
    print(f"{side:7} {mode:7} {amount} {memory.most / 1e9:5.1f} GB at most", flush=True)


def run(side: str, mode: str, rows: int, keys: int, folder: Path) -> None:
    """Run one part in a process of its own, and show why it failed."""
    command = [sys.executable, __file__, "--rows", rows, "--keys", keys, "--part", side, mode, folder]
    environment, errors = {**os.environ, MARK: f"{folder}-{side}-{mode}"}, folder / "errors"
    with errors.open("w") as file:
        done = subprocess.run([*map(str, command)], stderr=file, env=environment, check=False)
    if done.returncode:
        sys.exit(errors.read_text(errors="replace")[-4000:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument(
        "--only", nargs="+", metavar="SIDE-MODE", help="go-batch, python-stream and so on; default: all"
    )
    parser.add_argument("--part", nargs=3, metavar=("SIDE", "MODE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        part(options.part[0], options.part[1], options.rows, options.keys, Path(options.part[2]))
        return
    parts = [(side, mode) for side in ("go", "python") for mode in ("stream", "batch")] + [("pandas", "stream")]
    with tempfile.TemporaryDirectory(prefix="wallaroo-bench-") as folder:
        for side, mode in parts:
            if not options.only or f"{side}-{mode}" in options.only:
                least = 20 if side == "pandas" else 1
                run(side, mode, options.rows // least, options.keys // least, Path(folder))


if __name__ == "__main__":
    main()
