"""A word count under way: words at a pace or as fast as they are taken, and what came of them."""

import math
import random
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from processor_time import TICKS, descendants

from support.run import framed

WORDS = [f"{letter}{number}" for letter in "abcdefghijklmnopqrstuvwxyz" for number in range(40)]
SEED = 7
STEP_S = 0.001  # a sender sends what is due so often
PROCESSES = (("JVM", "java"), ("gateway", "_runtime.gateway"), ("egress", "_runtime.egress"), ("PySpark", "pyspark"))


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

    run: Any  # has `process`, and `wait_while_alive`
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
        messages = [self.messages([word]) for word in words]  # before the clock runs: a second for half a million
        begin = time.monotonic() + 0.1
        self._send_at_pace(messages, rate, begin)
        self.sent += len(words)
        due: dict[tuple[bytes, int], float] = {}
        for number, word in enumerate(words):
            self.totals[word] += 1
            due[word, self.totals[word]] = begin + number / rate
        self.wait()
        return self.answered(due)

    def messages(self, lines: Iterable[bytes]) -> bytes:
        """Return lines as messages of the source."""
        return framed(lines)

    def answered(self, due: dict[tuple[bytes, int], float]) -> list[tuple[float, float]]:
        """Return for each message, by its word and total, the moment at which it was due, and its latency."""
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
        block = self.messages(" ".join(line).encode() for line in lines)
        begin = time.monotonic()
        for _ in range(count // len(lines)):
            self.connection.sendall(block)
            self.sent += len(lines) * words
        for line in lines:
            for word in line:
                self.totals[word.encode()] += count // len(lines)
        self.wait()
        last = self.receiver.blocks[-1][0]
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
            found[name_of(pid, self.run.process.pid)] += _own_seconds(pid)
        return dict(found)


def _own_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0  # it has ended
    return sum(map(int, fields[11:13])) / TICKS


def name_of(pid: int, driver: int) -> str:
    """Return the kind of a process of a run."""
    if pid == driver:
        return "driver"
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return "worker"
    for name, word in PROCESSES:
        if word in command:
            return name
    return "worker"
