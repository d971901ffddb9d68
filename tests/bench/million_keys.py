"""`make bench-keys`: a million keys with state, against PySpark's own row-wise `transformWithState`.

Ours is the whole pipeline: journal, checkpoint, state store with changelog, staging with fsync, outbox; PySpark's reads
text files and writes to the sink `noop`. Both have the same cores, state store and key distribution; PySpark
gets fewer messages, and keeps fewer keys for that. Each part runs in a process and a Spark of its own. The
rate leaves out the micro-batches that meet most keys for the first time. Then ours is stopped and started again on its
checkpoint.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import key
import row_count
from processor_time import descendants
from word_count import process_behind

from support.spark_topology import options_in, recent_reports
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.spark.query import RunningQuery, start_query
from wallaroo_runtime.spark.session import create_session
from wallaroo_runtime.storage.outbox.log import LogReader
from wallaroo_runtime.worker.spec import CACHE_BYTES

CASE = Path(__file__).resolve().parent / "count"
APPS = {"go": CASE, "python": CASE / "app.py"}
ROW = "row"
GOAL = 20
DEADLINE_S = 170.0
MIB = 1024 * 1024


class Run:
    """The application on a directory's journal and checkpoint, until it is stopped."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.directory = Path(options.directory)
        arguments = ["--in", "127.0.0.1:0", "--out", "127.0.0.1:1"]
        topology = load_application(str(APPS[options.side]), arguments, "", "").topology
        plan = compile_topology(topology, shuffle_partitions=options.cores, buckets_per_partition=options.buckets)
        self.session = create_session(
            topology.name,
            master=f"local[{options.cores}]",
            shuffle_partitions=options.cores,
            directory=self.directory / "logs",
        )
        chosen = options_in(self.directory, max_batch_bytes=options.batch_bytes, cache_bytes=options.cache_bytes)
        self.query: RunningQuery = start_query(self.session, plan, topology, chosen)
        self._worker = process_behind(next(iter(self.query.targets.values())))
        self.processes = [self._worker, *descendants(self._worker)]
        self.idle_bytes = self.memory("VmRSS")

    def memory(self, name: str) -> int:
        """Return a number of the worker's processes, from /proc, in bytes."""
        total = 0
        for process in self.processes:
            lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
        return total

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a condition while the query runs."""
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            if (error := self.query.exception()) is not None:
                raise error
            if time.monotonic() > deadline:
                message = f"{what}: {self.query.progress()} after {DEADLINE_S:g} s"
                raise TimeoutError(message)
            time.sleep(0.01)

    def wait_for(self, messages: int) -> None:
        """Wait until so many messages of the journal are processed."""
        self.wait(lambda: self.query.progress().messages_in >= messages, f"{messages} messages")

    def stop(self) -> None:
        """Stop query, workers and Spark."""
        self.query.stop()
        self.session.stop()


def steady(options: argparse.Namespace) -> dict[str, Any]:
    """Process all messages; returns rates and memory."""
    run = Run(options)
    run.wait_for(options.messages)
    reports = [report for report in recent_reports(run.query) if report["numInputRows"]]
    ends = [report["sources"][0]["endOffset"]["sequence"] for report in reports]
    rows = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    batches = list(zip(rows, [report["durationMs"]["triggerExecution"] / 1000 for report in reports], strict=True))
    found = {
        "batches": batches,
        "rate": rate(after(batches, options.keys)),
        "memory": {"idle": run.idle_bytes, "end": run.memory("VmRSS"), "peak": run.memory("VmHWM")},
    }
    run.stop()
    return found


def after(batches: list[tuple[int, float]], keys: int) -> list[tuple[int, float]]:
    """Return the micro-batches after those that met every key once."""
    seen = 0
    for number, (messages, _) in enumerate(batches):
        if seen >= keys:
            return batches[number:]
        seen += messages
    return batches[-1:]


def rate(batches: list[tuple[int, float]]) -> float:
    """Return messages per second."""
    return sum(messages for messages, _ in batches) / sum(seconds for _, seconds in batches)


def restart(options: argparse.Namespace) -> dict[str, Any]:
    """Continue from the checkpoint; returns how long it takes until output appears, and what reloading costs."""
    began = time.monotonic()
    directory = Path(options.directory)
    numbers = key.draw(options.keys, options.more, every_key_first=False, seed=3)
    key.append(directory / "journal", numbers[:1])
    log = LogReader(directory / "outbox")
    for _ in log.records():
        pass
    published = log.base.number
    run = Run(options)
    started = time.monotonic()
    seconds = {"start of Spark and workers": started - began}
    run.wait(lambda: bool(list(log.records())) or log.base.number > published, "the first output")
    log.close()
    seconds["first output after that (one bucket reloaded)"] = time.monotonic() - started
    run.wait_for(options.messages + 1)
    done = 1
    for what in ("all other buckets reloaded", "nothing reloaded"):
        part = numbers[done : done + (options.more - 1) // 2]
        key.append(directory / "journal", part)
        done += len(part)
        before = time.monotonic()
        run.wait_for(options.messages + done)
        seconds[f"{len(part):,} more messages ({what})"] = time.monotonic() - before
    memory = {"end": run.memory("VmRSS"), "peak": run.memory("VmHWM")}
    run.stop()
    drawn = key.draw(options.keys, options.messages, every_key_first=True, seed=2)
    key.check(directory / "outbox", drawn + numbers[:done])
    return {"seconds": seconds, "memory": memory}


def by_row(options: argparse.Namespace) -> dict[str, Any]:
    """Let PySpark do it."""
    directory = Path(options.directory)
    log4j = f"-Dlog4j2.configurationFile=file:{directory}/logs/log4j2.properties"
    settings = {  # Spark's defaults where ours are for frames
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        "spark.sql.execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch": "10000",
        "spark.driver.extraJavaOptions": log4j,
    }
    session = create_session(
        ROW,
        master=f"local[{options.cores}]",
        shuffle_partitions=options.cores,
        directory=directory / "logs",
        settings=settings,
    )
    batches = row_count.run(session, directory, DEADLINE_S - 30)
    session.stop()
    return {"batches": batches, "rate": rate(batches[1:] or batches)}


PARTS = {"steady": steady, "restart": restart, "row": by_row}


def prepare(options: argparse.Namespace, directory: Path) -> None:
    """Write the messages of one side."""
    if options.side == ROW:
        (directory / "input").mkdir()
        numbers = key.draw(options.keys, options.row_messages, every_key_first=False, seed=4)
        size = options.row_messages // options.row_batches
        for number in range(options.row_batches):
            lines = b"".join(key.name(each) + b"\n" for each in numbers[number * size : (number + 1) * size])
            (directory / "input" / f"{number:02}.txt").write_bytes(lines)
    else:
        drawn = key.draw(options.keys, options.messages, every_key_first=True, seed=2)
        key.append(directory / "journal", drawn)


def part(options: argparse.Namespace, name: str, directory: Path) -> dict[str, Any]:
    """Run one part in a process of its own."""
    given = {name: value for name, value in vars(options).items() if name not in ("part", "directory", "sides")}
    arguments = [f"--{option.replace('_', '-')}={value}" for option, value in given.items()]
    command = [sys.executable, __file__, *arguments, f"--part={name}", f"--directory={directory}"]
    # Spark's Python processes must find `row_count`.
    environment = os.environ | {"PYTHONPATH": str(CASE.parent)}
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, timeout=2 * DEADLINE_S, env=environment
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure one side and print it; returns what its main part found."""
    directory = Path(tempfile.mkdtemp(prefix="wallaroo-bench-"))
    try:
        prepare(options, directory)
        found = part(options, ROW if options.side == ROW else "steady", directory)
        batches = ", ".join(f"{messages:,} in {seconds:.1f} s" for messages, seconds in found["batches"])
        print(f"{options.side}: {found['rate']:,.0f} messages/s; micro-batches: {batches}", flush=True)
        if options.side != ROW:
            show(options, found["memory"])
            again = part(options, "restart", directory)
            print("  restart: " + "; ".join(f"{what} {value:.2f} s" for what, value in again["seconds"].items()))
            show(options, again["memory"])
        return found
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def show(options: argparse.Namespace, memory: dict[str, int]) -> None:
    """Print the worker's memory."""
    numbers = ", ".join(f"{name} {value / MIB:,.0f} MiB" for name, value in memory.items())
    print(
        f"  worker's memory (RSS): {numbers}; its state cache may take {options.cache_bytes / MIB:,.0f} MiB", flush=True
    )


def main() -> None:
    """Measure all sides, or run the part that was asked for in this process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", nargs="+", choices=[ROW, *APPS], default=[ROW, *APPS])
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--messages", type=int, default=4_000_000)
    parser.add_argument("--more", type=int, default=200_001, help="messages after the restart")
    parser.add_argument("--row-messages", type=int, default=400_000, help="for PySpark's own way")
    parser.add_argument("--row-batches", type=int, default=5)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--buckets", type=int, default=4, help="per shuffle partition")
    parser.add_argument("--batch-bytes", type=int, default=8 * MIB, help="of journal per micro-batch")
    parser.add_argument("--cache-bytes", type=int, default=CACHE_BYTES, help="bound of the worker's state cache")
    parser.add_argument("--side", default="", help=argparse.SUPPRESS)
    parser.add_argument("--part", choices=sorted(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--directory", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps(PARTS[options.part](options)))
        return
    print(f"{options.keys:,} keys; {' '.join([sys.executable, *sys.argv])}", flush=True)
    rates = {}
    for side in options.sides:
        options.side = side
        rates[side] = measure(options)["rate"]
    for side in APPS:
        if {side, ROW} <= set(rates):
            print(f"{side} / row: {rates[side] / rates[ROW]:.1f} (goal {GOAL})")


if __name__ == "__main__":
    main()
