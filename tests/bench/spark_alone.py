"""The word count by Spark's own operators, with the messages and the measurements of the others."""

import os
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from paced import Bench, Receiver

from support.run import wait_until

PROGRAM = Path(__file__).with_name("raw_spark.py")
WAIT_S = 600.0


class SparkRun:
    """The word count by Spark's own operators in a process of its own."""

    def __init__(self, receiver: Receiver, checkpoint: Path) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        ports = (str(self._listener.getsockname()[1]), receiver.address.rpartition(":")[2])
        command = [sys.executable, str(PROGRAM), *ports, str(checkpoint)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

    def connect(self) -> socket.socket:
        """Wait until its source has connected."""
        return self._listener.accept()[0]

    def stop(self) -> None:
        """End it, and its Java."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait_while_alive(self, holds: Callable[[], bool], what: Callable[[], str]) -> None:
        """Wait for a condition while it runs."""

        def checked() -> bool:
            assert self.process.poll() is None, f"ended before {what()}"
            return holds()

        wait_until(checked, what, WAIT_S)


@dataclass
class SparkBench(Bench):
    """The same with Spark's own operators."""

    found: dict[bytes, int] = field(default_factory=dict)  # the last total of each word

    def messages(self, lines: Iterable[bytes]) -> bytes:
        """Return lines as lines."""
        return b"".join(line + b"\n" for line in lines)

    def wait(self) -> None:
        """Wait for the last total of each word."""
        seen, rest = 0, b""

        def is_there() -> bool:
            nonlocal seen, rest
            blocks = self.receiver.blocks[seen:]
            seen += len(blocks)
            *lines, rest = (rest + b"".join(block for _, block in blocks)).split(b"\n")
            for line in lines:
                word, _, total = line.partition(b" => ")
                self.found[word] = int(total)
            return all(self.found.get(word) == total for word, total in self.totals.items())

        self.run.wait_while_alive(is_there, lambda: "the last totals")

    def answered(self, due: dict[tuple[bytes, int], float]) -> list[tuple[float, float]]:
        """Return the same; a total answers each message before it."""
        waiting: dict[bytes, list[tuple[int, float]]] = defaultdict(list)
        for (word, total), at in due.items():
            waiting[word].append((total, at))
        found = []
        for moment, line in self.receiver.take():
            word, _, total = line.partition(b" => ")
            while waiting[word] and waiting[word][0][0] <= int(total):
                _, at = waiting[word].pop(0)
                found.append((at, moment - at))
        assert len(found) == len(due), f"{len(due) - len(found)} results are missing"
        return found
