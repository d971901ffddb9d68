"""An application that goes on while its parts are killed: the sequence checker of `tests/recovery` and its peers."""

import contextlib
import os
import random
import shutil
import socket
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from support.ledger import Ledger
from support.run import TESTS, WAIT_S, Run
from support.throttle import Throttle

LOOK_S = 0.05
FREE_PORTS = range(20_000, 32_000)  # below those that the system gives to connections
ROLES = {
    "gateway": b"wallaroo_runtime.gateway",
    "egress": b"wallaroo_runtime.egress",
    "supervisor": b"wallaroo_runtime.worker.supervisor",
}
UNANSWERED = b" of the worker left a call unanswered]"


def free_port(seed: int) -> int:
    """Return a port at which a source can listen again and again."""
    source = random.Random(f"{seed} {os.getpid()}")  # a sum would be that of another process with another seed
    while True:
        port = source.choice(FREE_PORTS)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def directory_of(worker: int) -> Path:
    """Return the private directory of a worker's process.

    Raises:
        OSError: The process is gone.
    """
    variables = Path(f"/proc/{worker}/environ").read_bytes().split(b"\0")
    (found,) = [each for each in variables if each.startswith(b"WALLAROO_WORKER_DIR=")]
    return Path(os.fsdecode(found.partition(b"=")[2]))


class Life:
    """All drivers of one checkpoint, one after the other.

    Args:
        language: `python` or `go`.
        folder: Empty; the checkpoint and what is remembered of faults go there.
        options: Of `wallaroo run`.
        seed: Of the messages.
        rate: Messages per second.
        faults: For `WALLAROO_FAULT`.

    Attributes:
        ends: How the drivers ended that did not end as asked: number of the signal or exit code.
    """

    def __init__(
        self, language: str, folder: Path, *options: object, seed: int, rate: int, faults: tuple[str, ...] = ()
    ) -> None:
        self.app = TESTS / "recovery" / "sequence" / ("app.py" if language == "python" else "")
        self.checkpoint, self.fired = folder / "checkpoint", folder / "fired"
        self.fired.mkdir()
        self.faults, self._options = faults, options
        self.ledger = Ledger()
        port = free_port(seed)
        self.source = f"127.0.0.1:{port}"
        self.throttle = Throttle(("127.0.0.1", port), self.checkpoint / "journal", seed, rate)
        self.run: Run | None = None
        self.ends: Counter[int] = Counter()
        self.said: list[str] = []

    def start(self) -> Run:
        """Run the application, or run it again."""
        if self.run is not None:
            self.run.close()
            self.said += self.run.errors + self.run.output
        faults = {"WALLAROO_FAULT": ",".join(self.faults), "WALLAROO_FAULT_DIR": str(self.fired)}
        self.run = Run(self.app, self.ledger, self.checkpoint, *self._options, source=self.source, **faults)
        return self.run

    def keep(self, until: Callable[[], bool], what: Callable[[], str], seconds: float = WAIT_S) -> None:
        """Wait for a condition, and run the application again whenever the driver has ended."""
        deadline = time.monotonic() + seconds
        while not until():
            run = self.run or self.start()
            code = run.process.poll()
            if code is not None:
                self.ends[-code if code < 0 else code] += 1
                run = self.start()
            assert time.monotonic() < deadline, f"waited {seconds:g} s for {what()}; the run said:\n{run.said()}"
            time.sleep(LOOK_S)

    def fired_points(self) -> set[str]:
        """Return the entries of `faults` that have killed their process."""
        return {path.name for path in self.fired.iterdir()}

    def unanswered(self) -> int:
        """Count the worker's processes that died while a task waited for an answer; the supervisors recorded it."""
        logs = (self.checkpoint / "logs").glob("worker-*.log*")
        return sum(log.read_bytes().count(UNANSWERED) for log in logs)

    def restarts(self, name: str) -> int:
        """Count how often drivers said that gateway or egress was started again."""
        said = self.said + (self.run.errors + self.run.output if self.run else [])
        return sum(f"the {name} ended unexpectedly" in line and "started again" in line for line in said)

    def members(self, role: str) -> list[int]:
        """Return the processes of a role that belong to this life: a key of ROLES, or `worker`."""
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                pid = int(entry.name)
                environment = (entry / "environ").read_bytes().split(b"\0")
                if f"WALLAROO_FAULT_DIR={self.fired}".encode() in environment:
                    is_worker = b"WALLAROO_MODE=worker" in environment
                    words = [*(entry / "cmdline").read_bytes().split(b"\0"), (entry / "comm").read_bytes().strip()]
                    mine = is_worker if role == "worker" else not is_worker and ROLES[role] in words
                    found += [pid] if mine else []
        return found

    def finish(self, messages: int, seconds: float = WAIT_S) -> Counter[str]:
        """Send up to a number of messages and wait for the last line; returns the words that were sent."""
        self.throttle.goal = messages
        expected = self.throttle.expected()
        total = expected.total()
        self.keep(
            lambda: self.ledger.lines >= total or bool(self.throttle.fault or self.ledger.differences),
            lambda: f"{total} lines, have {self.ledger.lines}; {self.throttle.acknowledged} messages acknowledged",
            seconds,
        )
        return expected

    def check(self, expected: Counter[str]) -> None:
        """Assert that what came out is exact, and that the run ends as it should."""
        assert self.run is not None
        assert not self.throttle.fault, self.throttle.fault
        assert not self.ledger.differences, f"{self.ledger.differences} differences; first: {self.ledger.first}"
        assert self.ledger.counts == expected
        self.run.ready()
        assert self.run.stop() == 0, self.run.said()
        assert self.ledger.lines == expected.total(), "more came at the end"
        assert not self.ledger.differences, self.ledger.first

    def __enter__(self) -> "Life":
        return self

    def __exit__(self, *_: object) -> None:
        self.throttle.close()
        if self.run is not None:
            self.run.close()
        for role in ("gateway", "egress"):  # of a driver that was killed
            for pid in self.members(role):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
        self.ledger.close()
        shutil.rmtree(self.checkpoint, ignore_errors=True)
