"""`make bench-peers`: the same work here and on other stream processors, on one broker, in turns, each result checked.

Needs Java, Maven, Go and a network for what is installed once into build/peers; the work itself is on loopback alone.
Each finished run is a line of build/peers/results.jsonl. Ctrl-C ends everything, and prints the tables of the runs so
far; `--table` prints those of all runs of this commit and size.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.peers.contender import CONTENDERS, HOME, OFTEN, install
from bench.peers.measure import measured
from bench.peers.table import Run, tables
from bench.peers.topics import warm
from bench.peers.workload import SIZES, WORKLOADS
from support.kafka import Broker

RESULTS = HOME / "results.jsonl"
TURNS, WARM_S = {"whole": 3, "short": 1, "tiny": 1}, {"whole": 60.0, "short": 60.0, "tiny": 2.0}
ENDING, INTERRUPTED = (signal.SIGINT, signal.SIGTERM), 130


def parsed() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(prog="bench-peers", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--short", dest="size", action="store_const", const="short", help="a look: half an hour or so")
    size.add_argument("--tiny", dest="size", action="store_const", const="tiny", help="whether all works; no figures")
    parser.add_argument("--only", nargs="+", choices=CONTENDERS, default=[*CONTENDERS], metavar="CONTENDER")
    parser.add_argument("--work", nargs="+", choices=WORKLOADS, default=[*WORKLOADS], metavar="WORKLOAD")
    parser.add_argument("--turns", type=int, help="the tables have medians; default: 3, else 1")
    parser.add_argument("--table", action="store_true", help="run nothing")
    parser.set_defaults(size=SIZES[0])
    parser.epilog = f"contenders: {' '.join(CONTENDERS)}; workloads: {' '.join(WORKLOADS)}"
    return parser.parse_args()


def commit() -> str:
    """Return the commit that is checked out, and whether it was changed since."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, cwd=HOME.parent, capture_output=True, text=True, check=True).stdout.strip()


def order(options: argparse.Namespace, names: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Yield turn, workload and contender of each run; every other turn goes from the last contender to the first."""
    for turn in range(options.turns or TURNS[options.size]):
        for work in options.work:
            in_turn = names if turn % 2 == 0 else names[::-1]
            yield from ((turn, work, name) for name in in_turn if work == "w2" or CONTENDERS[name].environment != OFTEN)


def compete(broker: Broker, options: argparse.Namespace, names: Sequence[str], folder: Path, runs: list[Run]) -> None:
    """Measure all, and keep each result at once."""
    about = {"commit": commit(), "size": options.size, "cores": os.cpu_count()}
    for turn, work, name in order(options, names):
        begin = time.strftime("%Y-%m-%dT%H:%M:%S")
        run = about | {"at": begin, "turn": turn, "work": work, "contender": name, "load": os.getloadavg()[0]}
        run |= measured(broker, name, work, options.size, folder)
        runs.append(run)
        with RESULTS.open("a") as results:
            print(json.dumps(run), file=results)
        print(json.dumps({name: value for name, value in run.items() if name not in about}), flush=True)


def bench(options: argparse.Namespace, runs: list[Run], absent: dict[str, str]) -> None:
    """Install the contenders, start a broker, and measure."""
    for name in options.only:
        print(f"installing {name}", flush=True)
        if reason := install(name):
            absent[name] = reason
    names = [name for name in options.only if name not in absent]
    with tempfile.TemporaryDirectory(prefix="runs-", dir=HOME) as folder:
        broker = Broker(Path(folder))
        broker.start()
        try:
            warm(broker, WARM_S[options.size])
            compete(broker, options, names, Path(folder), runs)
        finally:
            broker.stop()


def interrupt(*_: object) -> None:
    """End the bench once: what comes while everything is ended does not disturb that."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def main() -> int:
    """Run the command; returns the exit status."""
    options = parsed()
    HOME.mkdir(parents=True, exist_ok=True)
    for number in ENDING:
        signal.signal(number, interrupt)
    runs: list[Run] = []
    absent: dict[str, str] = {}
    status = 0
    if options.table:
        known = [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []
        runs = [run for run in known if (run["commit"], run["size"]) == (commit(), options.size)]
    else:
        try:
            bench(options, runs, absent)
        except KeyboardInterrupt:
            status = INTERRUPTED
    print(f"\n{tables(runs, absent)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
