"""Starts an application in this process: its topology, its plan, and its workers."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from wallaroo.emit.program import LoadedProgram, load, load_setup
from wallaroo.worker.host.call import CallRunner
from wallaroo_runtime.errors import TOPOLOGY, USAGE, RunError
from wallaroo_runtime.memory.local import LocalClient
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.program.app import AppKind, resolve
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.program.emit import join_programs, say_nothing
from wallaroo_runtime.program.library import library_alone
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.client import WorkerClient
from wallaroo_runtime.worker.discovery import stop_worker
from wallaroo_runtime.worker.spec import CACHE_BYTES, WorkerSpec

MAIN = "main"
BUCKETS = 4  # more than one, so that a shuffle distributes keys as on Spark


def start(
    app: str | Callable[..., Any],
    args: Sequence[str] = (),
    *,
    check_persist: bool = False,
    on_error: str = "",
    inputs: str = "",
    outputs: str = "",
    tell: Callable[[str], None] = say_nothing,
) -> MemoryRun:
    """Start an application.

    A Python program runs in this process. Programs in other languages run as worker processes, as on Spark.

    Args:
        app: A Python file or module, a setup function, a Go package directory, a worker binary, or a topology file.
        args: The application's command-line arguments.
        check_persist: Whether a change of a state makes a dead letter if user code does not persist it.
        on_error: `dead_letter` or `fail`, which overrides the application; empty keeps the application's choice.
        inputs: Addresses for the sources of a topology file, in place of the addresses in the file.
        outputs: Addresses for the sinks of a topology file, in place of the addresses in the file.
        tell: Called before an action that may take seconds, with the action's name.

    Raises:
        RunError: The application cannot be run; the error has every finding.
    """
    program = _program(app, args)
    if program is None:
        assert isinstance(app, str)
        topology = _topology(app, args, inputs, outputs, tell)
    else:
        topology = _joined(program, args, tell)
    plan = compile_topology(topology, shuffle_partitions=1, buckets_per_partition=BUCKETS)
    with ExitStack() as stack:
        topics = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wallaroo-memory-")))
        clients = _clients(topology, program, check_persist, topics, stack)
        others = None if all(isinstance(each, LocalClient) for each in clients.values()) else topics
        return MemoryRun(topology, plan, clients, on_error=on_error, closing=stack.pop_all(), topics=others)


def _program(app: str | Callable[..., Any], args: Sequence[str]) -> LoadedProgram | None:
    """Return a Python program whose setup has run in this process; None if the program is in another language."""
    if not isinstance(app, str):
        program = load_setup(app, args)
    else:
        resolved = resolve(app)
        if resolved.kind not in (AppKind.PYTHON_FILE, AppKind.PYTHON_MODULE):
            return None
        program = load(resolved.target, args)
    if program.application.offers:
        raise RunError([library_alone(str(app))], TOPOLOGY)
    return program


def _topology(app: str, args: Sequence[str], inputs: str, outputs: str, tell: Callable[[str], None]) -> Topology:
    application = load_application(app, args, inputs, outputs, tell)
    if application.archive is not None:
        fix = "give the program that was packed, or leave out --engine memory: an archive runs on Spark"
        raise RunError.of("R608", USAGE, reason=f"{app} is an archive, which the memory engine does not run", fix=fix)
    return application.topology


def _joined(program: LoadedProgram, args: Sequence[str], tell: Callable[[str], None]) -> Topology:
    document = program.document
    programs = program.application.programs()
    if programs:
        home = Path(program.directory)
        join_programs(document, programs, home, args, tell)
    return load_document(document)


def _clients(
    topology: Topology, program: LoadedProgram | None, check_persist: bool, topics: Path, stack: ExitStack
) -> dict[str, LocalClient | WorkerClient]:
    clients: dict[str, LocalClient | WorkerClient] = {}
    run = f"memory-{os.getpid()}-{uuid.uuid4().hex}"
    for worker in topology.workers:
        spec = WorkerSpec.of(topology, worker)
        if program is not None and worker.name == MAIN:
            clients[worker.name] = LocalClient(spec, CallRunner(program, CACHE_BYTES, checks_persist=check_persist))
            continue
        logs = tempfile.mkdtemp(prefix="wallaroo-memory-")
        spec = replace(spec, run=run, processes=1, check_persist=check_persist, log_directory=logs, topics=str(topics))
        client = clients[worker.name] = ProcessClient(spec)
        stack.callback(client.remove_logs)
        stack.callback(stop_worker, spec)
        stack.callback(client.close)
    return clients


class ProcessClient(WorkerClient):
    """The client of a worker process. The log of a worker that has failed is kept, because the error names it."""

    _is_lost = False

    def endpoints(self) -> Any:
        """Return the worker's endpoints. Errors are those of `WorkerClient`."""
        try:
            return super().endpoints()
        except RunError:
            self._is_lost = True
            raise

    def recover(self, endpoints: Any, cause: Any) -> None:
        """Wait for the process that replaces an ended one. Parameters and errors are those of `WorkerClient`."""
        try:
            super().recover(endpoints, cause)
        except RunError:
            self._is_lost = True
            raise

    def remove_logs(self) -> None:
        """Remove the worker's logs, unless the worker has failed."""
        if not self._is_lost:
            shutil.rmtree(self.spec.log_directory, ignore_errors=True)
