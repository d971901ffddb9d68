"""The processes of a contender: started, weighed, killed all at once."""

import contextlib
import os
import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.processor_time import memory
from wallaroo_runtime.system.process import dying_with_parent

MARK = "PEERS_RUN"  # the variable of the environment by which the processes of a run are known
WEIGH_S, KILL_S, BYTES_PER_MB = 1.0, 60.0, 1 << 20


class Processes:
    """One run of a contender in a directory of its own; it may be killed and started again.

    Args:
        directory: Of all runs.
        log: What it prints goes there, in place of what is there.

    Attributes:
        name: Of the run, in names of topics and groups.
        directory: For its state.
        peak_mb: The largest PSS of all its processes together.
        began: When it was started last.
    """

    def __init__(self, directory: Path, log: Path) -> None:
        self.name = f"r{secrets.token_hex(4)}"
        self.directory = directory / self.name
        self.directory.mkdir(parents=True)
        self.log = log
        log.parent.mkdir(exist_ok=True)
        log.write_bytes(b"")
        self.peak_mb, self.began = 0.0, 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._weigh, daemon=True)
        self._thread.start()

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it; a bench that is killed takes it along."""
        variables = {**os.environ, **environment, MARK: self.name}
        variables.pop("PYTHONPATH", None)
        self.began = time.time()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=variables,
                cwd=self.directory,
                start_new_session=True,
                preexec_fn=dying_with_parent(signal.SIGKILL),
            )

    @property
    def is_alive(self) -> bool:
        """Whether its first process is there."""
        return self._process is not None and self._process.poll() is None

    def pids(self) -> list[int]:
        """Return its processes: those that inherited the mark."""
        mark, found = f"{MARK}={self.name}".encode(), []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):  # gone meanwhile, or of another user
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    def kill(self) -> None:
        """Kill all processes, also those that others start meanwhile."""
        deadline = time.monotonic() + KILL_S
        while pids := self.pids():
            assert time.monotonic() < deadline, f"processes {pids} do not end"
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if self._process is not None:
                self._process.wait(KILL_S)
            time.sleep(0.01)

    def close(self) -> None:
        """End everything."""
        self._is_over.set()
        self._thread.join()
        self.kill()

    def last_line(self) -> str:
        """Return what it said last."""
        lines = self.log.read_text(errors="replace").splitlines()
        return next((line.strip()[:200] for line in reversed(lines) if line.strip()), "")

    def _weigh(self) -> None:
        while not self._is_over.wait(WEIGH_S):
            self.peak_mb = max(self.peak_mb, sum(map(memory, self.pids())) / BYTES_PER_MB)
