"""`make bench-realtime`: latency, throughput and idle cost of both modes, in Go and Python, from TCP to TCP.

Runs the word count as a user does, keyed state and all. Each message is one word; its latency is the time from the
moment at which it was to be sent until its total arrives, so a sender that is held up hides nothing. Batches are made
short enough that each measurement contains borders of them. The totals are checked: each once, in order.
"""

import argparse
import json
import math
import os
import random
import socket
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from latency_chart import chart
from processor_time import TICKS, descendants

from support.run import CASES, Run, framed

CASE = CASES / "word_count"
APPS = {"python": CASE / "app.py", "go": CASE}
MODES = ("microbatch", "realtime")
WORDS = [f"{letter}{number}" for letter in "abcdefghijklmnopqrstuvwxyz" for number in range(40)]
PERCENTILES = (50.0, 99.0, 99.9)
SEED = 7
STEP_S = 0.001  # a sender sends what is due so often
WARM_S, IDLE_S, SETTLE_S = 5.0, 20.0, 12.0
PROCESSES = (("JVM", "java"), ("gateway", "_runtime.gateway"), ("egress", "_runtime.egress"), ("PySpark", "pyspark"))
BATCH_SETTING = "spark.wallaroo.realtime.batchSeconds"


class Receiver:
    """Takes what a sink sends, and the moment at which each block came."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        self.blocks: list[tuple[float, bytes]] = []
        self.lines = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        connection, _ = self._listener.accept()
        while block := connection.recv(1 << 20):
            self.blocks.append((time.monotonic(), block))
            self.lines += block.count(b"\n")

    def take(self) -> Iterator[tuple[float, bytes]]:
        """Yield the lines of all blocks, each with the moment at which its end came, and forget them."""
        blocks, self.blocks = self.blocks, []
        rest = b""
        for moment, block in blocks:
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                yield moment, line

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()


@dataclass
class Bench:
    """A run, and how often each word was sent."""

    run: Run
    receiver: Receiver
    connection: socket.socket
    source: random.Random = field(default_factory=lambda: random.Random(SEED))
    totals: dict[bytes, int] = field(default_factory=lambda: defaultdict(int))
    sent: int = 0

    def wait(self) -> None:
        """Wait for the results of all that was sent."""
        self.run.wait_while_alive(
            lambda: self.receiver.lines >= self.sent, lambda: f"{self.receiver.lines} of {self.sent} lines"
        )

    def send(self, rate: float, duration_s: float) -> list[tuple[float, float]]:
        """Send words at a pace; returns for each the moment at which it was due, and its latency in seconds."""
        words = [self.source.choice(WORDS).encode() for _ in range(int(rate * duration_s))]
        messages = [framed([word]) for word in words]  # before the clock runs: a second for half a million
        begin = time.monotonic() + 0.1
        self._send_at_pace(messages, rate, begin)
        self.sent += len(words)
        self.wait()
        due: dict[tuple[bytes, int], float] = {}
        for number, word in enumerate(words):
            self.totals[word] += 1
            due[word, self.totals[word]] = begin + number / rate
        found = []
        for moment, line in self.receiver.take():
            word, _, total = line.partition(b" => ")
            at = due.pop((word, int(total)), None)
            assert at is not None, f"{line!r} was not expected"
            found.append((at, moment - at))
        assert not due, f"{len(due)} results are missing"
        return found

    def _send_at_pace(self, messages: Sequence[bytes], rate: float, begin: float) -> None:
        at = 0
        while at < len(messages):
            due = min(len(messages), math.floor((time.monotonic() - begin) * rate) + 1)
            if due > at:
                self.connection.sendall(b"".join(messages[at:due]))
                at = due
            else:
                time.sleep(max(STEP_S / 10, min(STEP_S, begin + at / rate - time.monotonic())))

    def saturate(self, count: int, words: int = 8) -> float:
        """Send messages of several words as fast as they are taken; returns words per second."""
        lines = [[self.source.choice(WORDS) for _ in range(words)] for _ in range(1000)]
        block = framed(" ".join(line).encode() for line in lines)
        begin = time.monotonic()
        for _ in range(count // len(lines)):
            self.connection.sendall(block)
            self.sent += len(lines) * words
        self.wait()
        last = self.receiver.blocks[-1][0]
        for line in lines:
            for word in line:
                self.totals[word.encode()] += count // len(lines)
        ends = {line.rpartition(b" => ")[0]: int(line.rpartition(b" => ")[2]) for _, line in self.receiver.take()}
        wrong = [word for word, total in ends.items() if self.totals[word] != total]
        assert not wrong, f"{len(wrong)} totals are wrong"
        return count * words / (last - begin)

    def processor_share(self, what: Callable[[], object]) -> dict[str, float]:
        """Return the use of a processor in percent, by process, while something is done."""
        before, begin = self._seconds(), time.monotonic()
        what()
        duration_s = time.monotonic() - begin
        used = {name: value - before.get(name, 0.0) for name, value in self._seconds().items()}
        return {name: round(100 * value / duration_s, 1) for name, value in used.items()}

    def _seconds(self) -> dict[str, float]:
        found: dict[str, float] = defaultdict(float)
        for pid in [self.run.process.pid, *descendants(self.run.process.pid)]:
            found[_name(pid, self.run.process.pid)] += _own_seconds(pid)
        return dict(found)


def _own_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0  # it has ended
    return sum(map(int, fields[11:13])) / TICKS


def _name(pid: int, driver: int) -> str:
    if pid == driver:
        return "driver"
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "worker"
    for name, word in (
        ("JVM", "java"),
        ("gateway", "_runtime.gateway"),
        ("egress", "_runtime.egress"),
        ("PySpark", "pyspark"),
    ):
        if word in command:
            return name
    return "worker"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that a share, in percent, of sorted values does not exceed."""
    return values[min(len(values) - 1, int(len(values) * share / 100))]


def measure(language: str, mode: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run a language in a mode, and return what was measured."""
    found: dict[str, Any] = {"language": language, "mode": mode, "rates": {}}
    settings = ("--conf", f"{BATCH_SETTING}={options.batch_seconds}") if mode == "realtime" else ()
    receiver = Receiver()
    with (
        tempfile.TemporaryDirectory(prefix="wallaroo-bench-") as folder,
        Run(APPS[language], receiver, Path(folder) / "checkpoint", "--mode", mode, *settings) as run,
        run.ready().connect() as connection,
    ):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        bench = Bench(run, receiver, connection)
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
        if options.messages:
            found["words_per_second"] = round(bench.saturate(options.messages))
        time.sleep(SETTLE_S)
        found["idle_percent"] = bench.processor_share(lambda: time.sleep(IDLE_S))
        run.stop()
    receiver.close()
    return found


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
    parser.add_argument("--picture", help="file for a picture (SVG) of latency over time in real-time mode")
    parser.add_argument("--picture-rate", type=int, default=1000)
    options = parser.parse_args()
    sys.setswitchinterval(0.0005)  # a sender that computes must not hold up the clock of the receiver
    print(f"{os.cpu_count()} processors; {' '.join([sys.executable, *sys.argv])}")
    for language in options.languages:
        for mode in options.modes:
            print(json.dumps(measure(language, mode, options)), flush=True)


if __name__ == "__main__":
    main()
