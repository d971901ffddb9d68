"""`wallaroo run --attach`: a worker that somebody else has started, and the process in its place."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.attach import DEADLINE_MS, attached
from wallaroo_runtime.system.process import ProcessId, process_start_time
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker import discovery
from wallaroo_runtime.worker.endpoint import connect
from wallaroo_runtime.worker.spec import WorkerSpec

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "topology-schema" / "vectors" / "topologies" / "valid" / "word_count.json"
PLAIN_WORKER = Path(__file__).with_name("plain_worker.py")
Wait = Callable[..., None]


@pytest.fixture
def topology() -> Topology:
    return load_document(json.loads(DOCUMENT.read_bytes()))


@pytest.fixture
def served(tmp_path: Path, wait_until: Wait) -> Iterator[tuple[int, Path]]:
    """Give the process id of a worker that nobody supervises, and its socket."""
    directory = tmp_path / "served"
    directory.mkdir(mode=0o700)
    environment = {**os.environ, "WALLAROO_WORKER_DIR": str(directory)}
    with subprocess.Popen([sys.executable, str(PLAIN_WORKER)], env=environment) as process:
        socket = directory / "worker.sock"
        wait_until(socket.exists, "the worker to serve")
        yield process.pid, socket
        process.kill()


def spec_of(topology: Topology, socket: Path, plain_spec: WorkerSpec) -> WorkerSpec:
    (worker,) = attached(topology, {"main": socket}).workers
    assert worker.call_deadline_ms == DEADLINE_MS
    return replace(plain_spec, command=worker.command)


@pytest.mark.slow
def test_worker_of_somebody_else_is_called(
    topology: Topology, served: tuple[int, Path], plain_spec: WorkerSpec, executor: ProcessId, wait_until: Wait
) -> None:
    process, socket = served
    spec = spec_of(topology, socket, plain_spec)
    connection = discovery.ensure_worker(spec, executor)
    assert connection.pid != process
    assert (connection.directory / "worker.sock").resolve() == socket
    endpoints = connect(connection)
    assert endpoints.init.process_id == process
    endpoints.close()
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: process_start_time(connection.pid) is None, "the stand-in to end with the worker")
    assert discovery.stop_worker(spec, executor)


@pytest.mark.slow
def test_end_of_a_run_leaves_the_worker(
    topology: Topology, served: tuple[int, Path], plain_spec: WorkerSpec, executor: ProcessId
) -> None:
    process, socket = served
    spec = spec_of(topology, socket, plain_spec)
    connection = discovery.ensure_worker(spec, executor)
    discovery.stop_worker(spec, executor)
    assert process_start_time(connection.pid) is None
    assert process_start_time(process) is not None
    assert socket.exists()


@pytest.mark.slow
def test_nobody_serves(topology: Topology, tmp_path: Path, plain_spec: WorkerSpec, executor: ProcessId) -> None:
    spec = spec_of(topology, tmp_path / "none.sock", plain_spec)
    with pytest.raises(RunError) as failure:
        discovery.ensure_worker(spec, executor)
    (found,) = failure.value.diagnostics
    reason = f"nobody serves at {tmp_path / 'none.sock'}: No such file or directory"
    assert (found.code, reason in found.message) == ("W401", True)
    assert found.fix == "start the program that --attach names, and let it serve there"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--attach", "main"], "--attach main names no worker and its socket"),
        (["--attach", "main=unix://w.sock"], "--attach main=unix://w.sock names no worker and its socket"),
        (["--attach", "main=unix:///w", "--attach", "main=unix:///w"], "--attach: worker main is named twice"),
        (["--attach", "a=unix:///w", "--master", "yarn"], "tasks of the Spark master yarn run on other machines"),
        (["--attach", "man=unix:///w"], '--attach: the application has no worker "man"\n  fix: did you mean main?'),
        (["--attach", "main=unix:///w", "--engine", "memory"], "--attach means nothing with --engine memory"),
    ],
)
def test_wrong_options(options: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(DOCUMENT), "--out", "127.0.0.1:1", *options]) == 2
    said = capsys.readouterr().err
    assert said.startswith("R608 ")
    assert reason in said
