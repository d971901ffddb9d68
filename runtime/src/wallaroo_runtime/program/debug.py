"""Runs a worker as one process in the foreground terminal, where a debugger can talk to the user: `run --debug`."""

import contextlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from wallaroo_runtime.errors import USAGE, WORKER, RunError
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.launch import SOCKET, environment, explain_refusal, explain_start, status_text
from wallaroo_runtime.worker.spec import PYTHON_PLACEHOLDER, WorkerSpec

START_S = 120.0
LOOK_S = 0.05
STOP_S = 10.0
# Modules of Python that are frozen have no files, and no breakpoints stop in them; debugpy warns of that, and gives the
# option to programs that it starts itself. Interpreters before 3.11 ignore it.
UNFROZEN = ("-X", "frozen_modules=off")


@contextlib.contextmanager
def foreground(topology: Topology, port: int | None = None, python: str = "") -> Iterator[tuple[str, Path, int]]:
    """Start the first worker of an application in this terminal; it ends with the context.

    Args:
        port: Of the loopback address, where debugpy listens in the worker, which is then one in Python; None: it runs
            without.
        python: Interpreter of a worker in Python; empty: this one.

    Yields:
        Name of the worker, the socket on which it serves, and its process id.

    Raises:
        RunError: R608, debugpy knows only programs in Python. It did not start: W401, W404 or what its program reports.
    """
    worker = topology.workers[0]
    if port is not None and worker.command[0] != PYTHON_PLACEHOLDER:
        fix = "give --debug, and let the debugger attach to the process that it names"
        raise RunError.of("R608", USAGE, reason="--debug-port is for programs in Python", fix=fix)
    with tempfile.TemporaryDirectory(prefix="wallaroo-debug-") as folder:
        directory = Path(folder)
        spec = replace(WorkerSpec.of(topology, worker), processes=1, python=python)
        # Ctrl-C ends the run; the worker then ends after it.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            variables = environment(spec, directory) | {"WALLAROO_DEBUG": "1"}
            child = subprocess.Popen(_program(spec, port), cwd=spec.directory, env=variables)
        except OSError as error:
            raise RunError([explain_refusal(spec, error)], WORKER) from error
        finally:
            signal.signal(signal.SIGINT, before)
        try:
            _wait(spec, child, directory)
            yield worker.name, directory / SOCKET, child.pid
        finally:
            _end(child)


def _program(spec: WorkerSpec, port: int | None) -> list[str]:
    interpreter, *rest = spec.program()
    debugger = [] if port is None else [*UNFROZEN, "-m", "debugpy", "--listen", f"127.0.0.1:{port}"]
    return [interpreter, *debugger, *rest]


def _wait(spec: WorkerSpec, child: "subprocess.Popen[bytes]", directory: Path) -> None:
    deadline = time.monotonic() + START_S
    while not (directory / SOCKET).exists():
        ended = child.poll() is not None
        if ended or time.monotonic() > deadline:
            ending = status_text(child.returncode) if ended else f"it did not serve within {START_S:g} s"
            raise RunError(explain_start(spec, directory, f"{ending}; see above", "", log=directory), WORKER)
        time.sleep(LOOK_S)


def _end(child: "subprocess.Popen[bytes]") -> None:
    child.terminate()
    try:
        child.wait(STOP_S)
    except subprocess.TimeoutExpired:  # it waits at a breakpoint
        child.kill()
        child.wait()
