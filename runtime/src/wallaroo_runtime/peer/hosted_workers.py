"""Runs workers in addition to those of a query's tasks: for a gateway, and to decode states outside of a query."""

import secrets
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import grpc

from wallaroo_runtime.archive.archive import Archive, unpack
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.discovery import ensure_worker, stop_worker
from wallaroo_runtime.worker.endpoint import connect
from wallaroo_runtime.worker.spec import WorkerSpec

DIGITS = 16
CACHE_BYTES = 16 * 1024 * 1024  # these workers keep no state


class HostedWorkers:
    """Runs workers of an application on this machine, without Spark. They end with this process.

    Args:
        directory: Directory for the unpacked archive and the logs of the workers.
        archive: Archive with the workers; None if they are on this machine.
        python: Interpreter of Python workers; empty for the interpreter of this process.
    """

    def __init__(self, topology: Topology, directory: Path, archive: Archive | None = None, python: str = "") -> None:
        self._topology, self._directory, self._archive, self._python = topology, directory, archive, python
        self._started: dict[str, tuple[WorkerSpec, str]] = {}

    def target(self, name: str) -> str:
        """Return the gRPC target of a worker. Start the worker at the first call.

        Raises:
            RunError: R655 if the archive cannot be unpacked here; another error if the worker does not start.
        """
        if name not in self._started:
            spec = self.spec(name)
            self._started[name] = spec, ensure_worker(spec).target
        return self._started[name][1]

    def spec(self, name: str) -> WorkerSpec:
        """Unpack the archive, if any, and return the description by which a worker is started.

        Raises:
            RunError: R655 if the archive cannot be unpacked here.
        """
        worker = self._topology.worker(name)
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        spec = replace(
            WorkerSpec.of(self._topology, worker),
            cache_bytes=CACHE_BYTES,
            processes=1,
            run=secrets.token_hex(DIGITS),
            log_directory=str(self._directory),
            python=self._python,
        )
        if self._archive is None:
            return spec
        unpacked = self._directory / f"archive-{self._archive.digest[:DIGITS]}"
        unpack(self._archive.path, self._archive.digest, unpacked, spec.interpreter())
        return spec.unpacked(unpacked)

    def check(self) -> None:
        """Start each worker, so that the program's setup runs. Check that the worker was made for the topology.

        Raises:
            RunError: The errors of `target`; the errors of the setup; an error if the worker is not of the topology.
        """
        for worker in self._topology.workers:
            self.target(worker.name)
            with suppress(grpc.RpcError):  # the worker has ended; its next start reports why
                connect(ensure_worker(self._started[worker.name][0])).close()

    def close(self) -> None:
        """Stop the workers that were started."""
        for spec, _ in self._started.values():
            stop_worker(spec)
        self._started.clear()
