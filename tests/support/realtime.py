"""Applications in real-time mode, their processes, and their senders."""

import contextlib
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from support.run import CASES, Receiver, Run, finish, framed, wait_until

WORDS = [f"{letter}{number}" for letter in "abcdefghij" for number in range(2)]  # keys of several buckets


REALTIME = ("--mode", "realtime")


SHORT = "spark.wallaroo.realtime.batchSeconds=1"


APPS = {"go": CASES / "word_count", "python": CASES / "word_count" / "app.py"}


def lines(receiver: Receiver) -> list[str]:
    """Return what has arrived, without a last line that is not whole."""
    return receiver.data().decode().split("\n")[:-1]


def wrong(found: list[str], sent: Counter[str], *, may_repeat: bool = False) -> list[str]:
    """Return what is not as it must be: each word with each of its totals once, in order.

    `may_repeat`: an egress that was killed sends again what it had not recorded as delivered.
    """
    seen: Counter[str] = Counter()
    faults = []
    for line in found:
        word, _, total = line.partition(" => ")
        if may_repeat and int(total) <= seen[word]:
            continue
        seen[word] += 1
        if int(total) != seen[word]:
            faults.append(f"{line}, expected {seen[word]}")
    return faults + [f"{word}: {seen[word]} of {count}" for word, count in sent.items() if seen[word] != count]


class Sender:
    """Sends words at a pace on one connection, from a thread of its own; after each `bad_every` one that is no text."""

    def __init__(self, run: Run, rate: float, seed: int, bad_every: int = 0, words: Sequence[str] = WORDS) -> None:
        self.sent: Counter[str] = Counter()
        self.order: list[str] = []
        self._words = words
        self.bad, self._bad_every = 0, bad_every
        self._source, self._rate = random.Random(seed), rate
        self._connection = run.connect()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        while not self._over.wait(1 / self._rate):
            word = self._source.choice(self._words)
            self._connection.sendall(framed([word.encode()]))
            self.order.append(word)
            self.sent[word] += 1
            if self._bad_every and self.sent.total() % self._bad_every == 0:
                self._connection.sendall(framed([b"\xff"]))
                self.bad += 1

    def end(self) -> Counter[str]:
        """End, and return how often each word was sent, all safe in the journal."""
        self._over.set()
        self._thread.join()
        finish(self._connection)
        self._connection.close()
        return self.sent


def wait_for_all(receiver: Receiver, sent: Counter[str], said: Callable[[], str]) -> None:
    """Wait until as many lines have come as words were sent."""
    count = sum(sent.values())
    wait_until(lambda: len(lines(receiver)) >= count, lambda: f"{len(lines(receiver))} of {count}; {said()}", 120)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def kill_driver(run: Run) -> None:
    """Kill the driver of a run. Its Java ends with it, or is killed if it makes the archive of its classes."""
    java = process_of_java(run)
    os.kill(run.process.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(java, signal.SIGKILL)


def process_of_java(run: Run) -> int:
    """Return the Java virtual machine of a run: the child of its driver whose program is `java`."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == run.process.pid and Path(os.readlink(entry / "exe")).name.startswith("java"):
                return int(entry.name)
        except OSError:
            continue
    pytest.fail("the run has no Java")


def processes_of_worker(run: Run) -> list[int]:
    """Return the processes of the worker: those with its private directory in their environment."""
    java = str(process_of_java(run))
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if b"WALLAROO_WORKER_DIR=" in environment and is_below(int(entry.name), int(java), run.process.pid):
                found.append(int(entry.name))
    return found


def is_below(pid: int, *ancestors: int) -> bool:
    """Say whether a process descends from one of the given ones."""
    while pid > 1:
        if pid in ancestors:
            return True
        try:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            return False
    return False
