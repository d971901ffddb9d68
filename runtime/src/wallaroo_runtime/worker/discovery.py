"""Finds the worker that a spec describes on this executor. The first task that needs a worker starts it."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.system.process import ProcessId, parent_of
from wallaroo_runtime.worker import control, supervisor
from wallaroo_runtime.worker.directory import check_existing, locked, make_private, worker_directory
from wallaroo_runtime.worker.ending import Ending
from wallaroo_runtime.worker.launch import SOCKET
from wallaroo_runtime.worker.spec import WorkerSpec

MARGIN_SECONDS = 30.0
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class ServingWorker:
    """A worker process that answers calls, as its supervisor has reported it.

    Attributes:
        spec: Spec from which the worker was started.
        directory: Private directory of the worker.
        generation: Number of this start of the worker, from 1, over all its supervisors.
    """

    spec: WorkerSpec
    directory: Path
    generation: int
    pid: int

    def is_alive(self) -> bool:
        """Return whether the process still exists."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        return True

    @property
    def target(self) -> str:
        """The gRPC target of the worker's first endpoint, which stays the same after a restart."""
        return f"unix:{self.directory / SOCKET}"


def ensure_worker(spec: WorkerSpec, owner: ProcessId | None = None, *, retry: bool = False) -> ServingWorker:
    """Return a worker that serves. The first call on an executor starts the worker and its supervisor.

    Args:
        owner: Process whose end is also the end of the worker; by default the executor's JVM.
        retry: Whether a worker that has failed for good is started again, as in a new run.

    Raises:
        RunError: W401, W404, W406, or the error that the worker's own setup reported.
    """
    directory = worker_directory(spec, owner or find_owner())
    return _ask(spec, directory, owner, {"op": "retry" if retry else "wait"})


def recover_worker(connection: ServingWorker, owner: ProcessId | None = None) -> ServingWorker:
    """Wait for the new process that replaces an ended process of a worker, and return the new process.

    Raises:
        RunError: As `ensure_worker`.
    """
    request = {"op": "recover", "generation": connection.generation}
    return _ask(connection.spec, connection.directory, owner, request)


def kill_worker(connection: ServingWorker, reason: str, *, is_excused: bool) -> None:
    """Kill this process of the worker, and no later process. The supervisor starts another process."""
    request = {"op": "kill", "generation": connection.generation, "reason": reason, "is_excused": is_excused}
    control.ask(connection.directory, request, MARGIN_SECONDS)


def ending_of(connection: ServingWorker) -> Ending | None:
    """Wait for the end of this process of the worker, and return how it ended; None if that is not known."""
    reply = _asked(connection.directory, {"op": "ending", "generation": connection.generation})
    return Ending.from_json(reply["ending"]) if reply.get("ending") else None


def stop_worker(spec: WorkerSpec, owner: ProcessId | None = None) -> bool:
    """Stop the worker and its supervisor. Return whether a supervisor ran."""
    directory = worker_directory(spec, owner or find_owner())
    check_existing(directory)
    return bool(_asked(directory, {"op": "stop"}))


def _ask(spec: WorkerSpec, directory: Path, owner: ProcessId | None, request: dict[str, Any]) -> ServingWorker:
    try:
        return _answer(spec, directory, owner, request)
    except (RunError, OSError) as error:
        if owner is None or owner.is_alive:
            raise
        cause = _did_not_start(spec, f"Spark's Java, process {owner.pid}, has ended")
        raise RunError([*cause.diagnostics, *getattr(error, "diagnostics", ())], WORKER) from error


def _answer(
    spec: WorkerSpec, directory: Path, owner: ProcessId | None, request: dict[str, Any], attempts: int = ATTEMPTS
) -> ServingWorker:
    timeout = spec.start_timeout_ms / 1000 + spec.restart_window_ms / 1000 + MARGIN_SECONDS
    check_existing(directory)
    try:
        reply = control.ask(directory, request, timeout)
    except (FileNotFoundError, ConnectionError):
        if attempts == 1:
            raise
        _start_supervisor(spec, directory, owner or find_owner())
        # No process of the new supervisor is the one in `request`.
        return _answer(spec, directory, owner, {"op": "wait"}, attempts - 1)
    except TimeoutError as error:
        raise _did_not_start(spec, f"its supervisor gave no answer within {timeout:g} s") from error
    if reply["state"] == "ready":
        return ServingWorker(spec, directory, reply["generation"], reply["pid"])
    if reply["state"] == "failed":
        raise RunError([Diagnostic.from_json(finding) for finding in reply["diagnostics"]], WORKER)
    raise _did_not_start(spec, "the application is being stopped")


def _start_supervisor(spec: WorkerSpec, directory: Path, owner: ProcessId) -> None:
    try:
        with locked(directory):
            make_private(directory)
            if not _asked(directory, {"op": "status"}):
                supervisor.start(directory, spec, owner)
    except OSError as error:
        raise _did_not_start(spec, f"its supervisor did not start; {error}") from error


def _asked(directory: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Return the reply of a supervisor; empty if none runs. The socket of a killed supervisor refuses connections."""
    try:
        return control.ask(directory, request, MARGIN_SECONDS)
    except (FileNotFoundError, ConnectionError):
        return {}


def _did_not_start(spec: WorkerSpec, reason: str) -> RunError:
    return RunError.of("W401", WORKER, worker=spec.name, reason=reason, fix="run it again; its log has more")


def is_java(pid: int) -> bool:
    """Return whether the process runs a Java virtual machine."""
    try:
        return Path(os.readlink(f"/proc/{pid}/exe")).name.startswith("java")
    except OSError:
        return False


def find_owner() -> ProcessId:
    """Return the executor's JVM that started this process (`worker/executor.py`); without a JVM this process."""
    pid = os.getppid()
    while pid > 1 and not is_java(pid):
        pid = parent_of(pid) or 0
    return ProcessId.of(pid if pid > 1 else os.getpid())
