"""The processes of a worker: a parent and its children run user code in parallel, each with its own socket.

Parent and children end together: a child ends when the parent's end of a pipe closes, and the parent notices the death
of a child at once.
"""

import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError

NUMBER = "WALLAROO_WORKER_NUMBER"
LIFELINE = "WALLAROO_WORKER_LIFELINE"
READY = "WALLAROO_WORKER_READY"
KILL_SECONDS = 4.5


def socket_path(directory: Path, number: int) -> Path:
    """Return the socket path of a process of the worker. The parent has number 0."""
    return directory / ("worker.sock" if number == 0 else f"worker-{number}.sock")


class WorkerChildren:
    """The child processes of a worker, which run user code in parallel with the parent.

    Args:
        count: Number of children.
        command: Command that starts a child. An environment variable has the child's number.
    """

    def __init__(self, count: int, command: Sequence[str]) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []
        self._ready: list[int] = []
        lifeline, self._held = os.pipe()
        try:
            for number in range(1, count + 1):
                self._processes.append(self._start(command, number, lifeline))
        finally:
            os.close(lifeline)

    def wait_ready(self) -> None:
        """Wait until every child serves.

        Raises:
            DiagnosticError: W401 if a child ended before it served.
        """
        for number, pipe in enumerate(self._ready, 1):
            with os.fdopen(pipe, "rb") as ready:
                if ready.read(1):
                    continue
            status = self._processes[number - 1].wait()
            reason = f"its process {number} ended with status {status}"
            raise DiagnosticError([Diagnostic.of("W401", worker="main", reason=reason, fix="look into its log")])

    def watch(self, on_death: Callable[[int, int], None]) -> None:
        """Call `on_death` with process id and status, in a separate thread, as soon as a child ends."""
        for process in self._processes:
            threading.Thread(target=_wait, args=(process, on_death), daemon=True).start()

    def kill(self) -> None:
        """Kill all children."""
        for process in self._processes:
            process.kill()

    def stop(self) -> None:
        """Terminate all children, and kill those that do not end in time."""
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(KILL_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, command: Sequence[str], number: int, lifeline: int) -> "subprocess.Popen[bytes]":
        ready, write = os.pipe()
        self._ready.append(ready)
        added = {NUMBER: str(number), LIFELINE: str(lifeline), READY: str(write)}
        try:
            return subprocess.Popen(
                command, env={**os.environ, **added}, pass_fds=(lifeline, write), stdin=subprocess.DEVNULL
            )
        finally:
            os.close(write)


def end_with_parent(environment: Mapping[str, str]) -> None:
    """End this child process as soon as the parent has ended, for whatever reason."""
    lifeline = int(environment[LIFELINE])
    for pipe in (lifeline, int(environment[READY])):
        os.set_inheritable(pipe, False)

    def wait() -> None:
        os.read(lifeline, 1)
        os._exit(1)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def tell_ready(environment: Mapping[str, str]) -> None:
    """Notify the parent that the socket of this child process has its final name."""
    with os.fdopen(int(environment[READY]), "wb") as pipe:
        pipe.write(b"1")


def tell_end(directory: Path, process_id: int, status: int) -> None:
    """Write the id and status of the process that ended first to `ended.json`, for the supervisor."""
    temporary = directory / ".ended.json"
    temporary.write_text(json.dumps({"process_id": process_id, "status": status}), encoding="ascii")
    temporary.rename(directory / "ended.json")


def _wait(process: "subprocess.Popen[bytes]", on_death: Callable[[int, int], None]) -> None:
    on_death(process.pid, process.wait())
