"""`make bench`: words per second of the word count from the journal to the outbox, in Python and in Go.

The pipeline is the whole one: checkpoint, state store, staging with fsync, outbox. The rate is words divided by the
time from the start of the first micro-batch to the commit of the last. Each language runs in a Spark of its own.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from processor_time import measure
from text import fill_journal

from support.spark_topology import options_in, recent_reports
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.spark.options import BATCH_BYTES, CHUNK_BYTES
from wallaroo_runtime.spark.query import start_query
from wallaroo_runtime.spark.session import create_session

CASE = Path(__file__).resolve().parent.parent / "cases" / "word_count"
APPS = {"python": CASE / "app.py", "go": CASE}
GOALS = {"python": 400_000, "go": 1_000_000}
WORDS_PER_MESSAGE = 8
PHASES = ("latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets", "triggerExecution")
DEADLINE_SECONDS = 300


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Run one language and return what was measured."""
    directory = Path(tempfile.mkdtemp(prefix="wallaroo-bench-"))
    try:
        return measured(options, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def measured(options: argparse.Namespace, directory: Path) -> dict[str, Any]:
    """Fill a journal, run the application on it, and return the numbers."""
    arguments = ["--in", "127.0.0.1:0", "--out", "127.0.0.1:1"]
    topology = load_application(str(APPS[options.language]), arguments, "", "").topology
    plan = compile_topology(topology, shuffle_partitions=options.cores, buckets_per_partition=options.buckets)
    size = fill_journal(directory / "journal", options.messages, words=options.vocabulary)
    settings = dict(setting.split("=", 1) for setting in options.set)
    session = create_session(
        topology.name,
        master=f"local[{options.cores}]",
        shuffle_partitions=options.cores,
        directory=directory / "logs",
        settings=settings,
    )
    chosen = options_in(directory, max_batch_bytes=options.batch_bytes, chunk_bytes=options.chunk_bytes)
    query = start_query(session, plan, topology, chosen)
    workers = {name: [process_behind(target)] for name, target in query.targets.items()}
    before = measure(os.getpid(), workers)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while query.progress().messages_in < options.messages:
        if (error := query.exception()) is not None:
            raise error
        if time.monotonic() > deadline:
            message = f"{query.progress()} after {DEADLINE_SECONDS} s"
            raise TimeoutError(message)
        time.sleep(0.05)
    after = measure(os.getpid(), workers)
    progress, reports = query.progress(), recent_reports(query)
    query.stop()
    session.stop()
    if progress.messages_out != options.messages * WORDS_PER_MESSAGE or progress.dead_letters:
        message = f"expected {options.messages * WORDS_PER_MESSAGE} messages out, got {progress}"
        raise AssertionError(message)
    return summary(options, size, reports, {name: after[name] - before[name] for name in after})


def process_behind(target: str) -> int:
    """Return the process that a worker's supervisor runs."""
    from wallaroo_runtime.worker import control

    reply = control.ask(Path(target.removeprefix("unix:")).parent, {"op": "wait"}, 10.0)
    return int(reply["pid"])


def summary(
    options: argparse.Namespace, size: int, reports: list[dict[str, Any]], processors: dict[str, float]
) -> dict[str, Any]:
    """Return the numbers of a run."""
    batches = [report for report in reports if report["numInputRows"]]
    start = datetime.fromisoformat(batches[0]["timestamp"].replace("Z", "+00:00")).timestamp()
    last = batches[-1]
    end = datetime.fromisoformat(last["timestamp"].replace("Z", "+00:00")).timestamp()
    seconds = end + last["durationMs"]["triggerExecution"] / 1000 - start
    words = options.messages * WORDS_PER_MESSAGE
    return {
        "language": options.language,
        "words": words,
        "journal_bytes": size,
        "seconds": round(seconds, 2),
        "words_per_second": round(words / seconds),
        "batches": [report["durationMs"]["triggerExecution"] for report in batches],
        "phases_ms": {name: sum(report["durationMs"].get(name, 0) for report in batches) for name in PHASES},
        "processor_seconds": {name: round(value, 2) for name, value in processors.items()},
    }


def show(found: dict[str, Any]) -> None:
    """Print the numbers for people."""
    language, rate = found["language"], found["words_per_second"]
    print(f"{language}: {rate:,} words/s ({found['words']:,} words in {found['seconds']} s; goal {GOALS[language]:,})")
    print(f"  micro-batches, ms: {found['batches']}")
    print("  phases, ms: " + ", ".join(f"{name} {value}" for name, value in found["phases_ms"].items()))
    total = sum(found["processor_seconds"].values())
    parts = ", ".join(f"{name} {value:.1f}" for name, value in found["processor_seconds"].items())
    print(f"  CPU seconds: {parts}; together {total:.1f}, which is {found['words'] / total:,.0f} words per CPU second")


def main() -> None:
    """Run each language in a process of its own, or the one that was asked for in this one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--language", choices=sorted(APPS), help="only this one, in this process")
    parser.add_argument("--messages", type=int, default=1_000_000, help="messages of eight words")
    parser.add_argument("--vocabulary", type=int, default=5_000, help="different words")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--buckets", type=int, default=4, help="per shuffle partition")
    parser.add_argument("--batch-bytes", type=int, default=BATCH_BYTES, help="of journal per batch")
    parser.add_argument("--chunk-bytes", type=int, default=CHUNK_BYTES, help="of journal per call")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    if options.language:
        found = run(options)
        print(json.dumps(found)) if options.json else show(found)
        return
    print(f"{os.cpu_count()} processors; {' '.join([sys.executable, *sys.argv])}")
    for language in APPS:
        subprocess.run([sys.executable, *sys.argv, "--language", language], check=True)


if __name__ == "__main__":
    main()
