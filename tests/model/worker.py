"""Starts the workers of drawn applications without a supervisor; one that dies is started again by the real thing."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from wallaroo_runtime.worker.client import WorkerClient
from wallaroo_runtime.worker.directory import make_private, worker_directory
from wallaroo_runtime.worker.discovery import ServingWorker, find_owner, stop_worker
from wallaroo_runtime.worker.endpoint import connect
from wallaroo_runtime.worker.launch import SOCKET, environment
from wallaroo_runtime.worker.spec import PYTHON_PLACEHOLDER, WorkerSpec

START_SECONDS = 60.0
TESTS = Path(__file__).resolve().parent.parent


class Nursery:
    """Has a process that forks Python workers."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._children: list[subprocess.Popen[bytes]] = []

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    @contextmanager
    def serving(self, specs: Iterable[WorkerSpec], more: Mapping[str, str]) -> Iterator[list[WorkerClient]]:
        """Let workers serve; gives a client of each.

        Args:
            specs: The workers.
            more: Variables that they get, but not those that follow when they die.
        """
        connections = [self._start(spec, more) for spec in specs]
        clients = [WorkerClient(connection.spec) for connection in connections]
        try:
            for client, connection in zip(clients, connections, strict=True):
                directory = connection.directory
                _wait_for(directory / SOCKET, connection.pid, directory / "worker.log")
                client._endpoints = connect(connection)
            yield clients
        finally:
            for client in clients:
                client.close()
            for connection in connections:
                stop_worker(connection.spec)  # a supervisor, where the worker has died
                with suppress(ProcessLookupError):
                    os.kill(connection.pid, signal.SIGKILL)
            for child in self._children:
                child.wait()
            self._children.clear()
            for connection in connections:
                shutil.rmtree(connection.directory, ignore_errors=True)

    def emit(self, app: str, arguments: Sequence[str], directory: Path) -> dict[str, Any]:
        """Return what a Python program writes in mode `emit`; the directory is for this alone."""
        file = directory / "emitted.json"
        variables = {**os.environ, "WALLAROO_MODE": "emit", "WALLAROO_ARGS": json.dumps(list(arguments))}
        child = self._fork(app, directory, {**variables, "WALLAROO_EMIT_FILE": str(file)})
        _wait_for(file, child, directory / "worker.log")
        found: dict[str, Any] = json.loads(file.read_bytes())
        return found

    def _start(self, spec: WorkerSpec, more: Mapping[str, str]) -> ServingWorker:
        directory = worker_directory(spec, find_owner())
        for path in (directory.parent.parent, directory.parent, directory):
            make_private(path)
        variables = {**environment(spec, directory), **more}
        if spec.command[0] == PYTHON_PLACEHOLDER:
            return ServingWorker(spec, directory, 1, self._fork(spec.command[-1], directory, variables))
        with (directory / "worker.log").open("ab") as log:
            child = subprocess.Popen(spec.program(), env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._children.append(child)
        return ServingWorker(spec, directory, 1, child.pid)

    def _fork(self, app: str, directory: Path, variables: dict[str, str]) -> int:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "model.nursery"],
                env={**os.environ, "PYTHONPATH": str(TESTS), "PYTHONHASHSEED": "0"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._process.stdin and self._process.stdout
        order = {"app": app, "environment": variables, "directory": str(directory)}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def _wait_for(file: Path, child: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not file.exists():
        is_alive = Path(f"/proc/{child}").exists()
        assert (is_alive or file.exists()) and time.monotonic() < deadline, log.read_text()
        time.sleep(0.002)
