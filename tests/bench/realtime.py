"""`make bench-realtime`: latency, throughput and idle cost of both modes, in Go and Python, from TCP to TCP.

Runs the word count as a user does, keyed state and all. Each message is one word; its latency is the time from the
moment at which it was to be sent until its total arrives, so a sender that is held up hides nothing. Batches are made
short enough that each measurement contains borders of them. The totals are checked: each once, in order.

Spark's own operators run the same messages. They give a total for each word and micro-batch, which answers all
messages of the word before it.
"""

import argparse
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from latency_chart import chart
from paced import Bench, Receiver
from spark_alone import SparkBench, SparkRun

from support.remote import Site, running
from support.run import CASES, Run

CASE = CASES / "word_count"
APPS = {"python": CASE / "app.py", "go": CASE}
MODES = ("microbatch", "realtime")
SPARK = "spark"  # alone, without user code
PERCENTILES = (50.0, 99.0, 99.9)
WARM_S, IDLE_S, SETTLE_S = 5.0, 20.0, 12.0
BATCH_SETTING = "spark.wallaroo.realtime.batchSeconds"
TARGETS: dict[int | str, str] = {  # of real-time mode
    100: "",
    1000: "Go 3, 15, 100; Python 4, 20",
    20000: "Go 4, 20",
    "words": "Go 1,800, Python 650",
    "first": "100",
    "idle": "2",
}


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that a share, in percent, of sorted values does not exceed."""
    return values[min(len(values) - 1, int(len(values) * share / 100))]


def measure(language: str, mode: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run a language in a mode, and return what was measured."""
    found: dict[str, Any] = {"language": language, "mode": mode, "rates": {}}
    settings = ("--conf", f"{BATCH_SETTING}={options.batch_seconds}") if mode == "realtime" else ()
    settings += ("--master", "local[2]")
    receiver = Receiver()
    with tempfile.TemporaryDirectory(prefix="wallaroo-bench-") as folder, ExitStack() as stack:
        checkpoint = Path(folder) / "checkpoint"
        if language == SPARK:
            run: Any = SparkRun(receiver, checkpoint)
            stack.callback(run.stop)
        else:
            named = ("--mode", mode, *settings, *remote(Path(folder), stack, is_wanted=options.remote))
            run = stack.enter_context(Run(APPS[language], receiver, checkpoint, *named)).ready()
        connection = stack.enter_context(run.connect())
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        bench = (SparkBench if language == SPARK else Bench)(run, receiver, connection)
        found["first_ms"] = round(1000 * bench.send(1, 1)[0][1], 1)
        bench.send(100, WARM_S)
        for rate in options.rates:
            load = os.getloadavg()[0]
            results: list[tuple[float, float]] = []
            used = bench.processor_share(lambda: results.extend(bench.send(rate, options.seconds)))  # noqa: B023
            found["rates"][rate] = {**summary(results, load), "percent": used}
            print(json.dumps({"language": language, "mode": mode, "rate": rate} | found["rates"][rate]), flush=True)
            if options.picture and mode == "realtime" and rate == options.picture_rate:
                title = f"{language}, {rate} messages/s"
                Path(options.picture).write_text(chart(results, title), encoding="utf-8")
        if options.messages and language != SPARK:  # its socket source would be measured: `raw_spark`
            found["words_per_second"] = round(bench.saturate(options.messages))
        time.sleep(SETTLE_S)
        found["idle_percent"] = bench.processor_share(lambda: time.sleep(IDLE_S))
        run.stop()
    receiver.close()
    return found


def remote(folder: Path, stack: ExitStack, *, is_wanted: bool) -> tuple[object, ...]:
    """Start a gateway and an egress as services on ports of this machine; returns the options of the run."""
    return stack.enter_context(running(Site(folder, ""))).options() if is_wanted else ()


def summary(results: Sequence[tuple[float, float]], load: float) -> dict[str, float]:
    """Return percentiles in milliseconds."""
    values = sorted(latency for _, latency in results)
    named = {f"p{share:g}": round(1000 * percentile(values, share), 1) for share in PERCENTILES}
    return named | {"max": round(1000 * values[-1], 1), "count": len(values), "load": round(load, 1)}


def main() -> None:
    """Measure what was asked for, and print a line of JSON for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--languages", nargs="+", choices=sorted(APPS), default=sorted(APPS))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--rates", nargs="+", type=int, default=[100, 1000, 20000], help="messages per second")
    parser.add_argument("--seconds", type=float, default=60.0, help="of each rate")
    parser.add_argument("--batch-seconds", type=int, default=20, help="of a batch in real-time mode")
    parser.add_argument("--messages", type=int, default=400_000, help="of eight words, as fast as possible; 0: not")
    parser.add_argument("--remote", action="store_true", help="gateway and egress as services on ports")
    parser.add_argument("--spark", action="store_true", help="Spark's own operators, too")
    parser.add_argument("--picture", help="file for a picture (SVG) of latency over time in real-time mode")
    parser.add_argument("--picture-rate", type=int, default=1000)
    options = parser.parse_args()
    sys.setswitchinterval(0.0005)  # a sender that computes must not hold up the clock of the receiver
    print(f"{os.cpu_count()} processors; {' '.join([sys.executable, *sys.argv])}")
    turns = [(language, mode) for language in options.languages for mode in options.modes]
    found = [measure(language, mode, options) for language, mode in [*turns, *[(SPARK, "microbatch")] * options.spark]]
    for each in found:
        print(json.dumps(each))
    print_table(found, options.rates)


def print_table(found: Sequence[Mapping[str, Any]], rates: Sequence[int]) -> None:
    """Print targets, and what each run has measured."""
    columns = [f"{each['language']}, {each['mode']}" for each in found]
    rows = [["", "target, real-time", *columns]]
    for rate in rates:
        cells = [", ".join(f"{each['rates'][rate][f'p{share:g}']:g}" for share in PERCENTILES) for each in found]
        rows.append([f"{rate:,}/s: p50, p99, p99.9, ms", TARGETS.get(rate, ""), *cells])
    speeds = [f"{each['words_per_second'] / 1000:,.0f}" if "words_per_second" in each else "" for each in found]
    idle = [f"{sum(each['idle_percent'].values()):.1f}" for each in found]
    rows.append(["thousand words/s", TARGETS["words"], *speeds])
    rows.append(["first message, ms", TARGETS["first"], *[f"{each['first_ms']:g}" for each in found]])
    rows.append(["processor at idle, % of a core", TARGETS["idle"], *idle])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    main()
