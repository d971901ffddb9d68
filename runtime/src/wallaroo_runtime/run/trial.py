"""Starts the workers of a changed program next to those that run: one that fails must not end a good run first."""

import errno
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.program.application import Application
from wallaroo_runtime.run.hosted import hosted_workers
from wallaroo_runtime.run.options import RunOptions
from wallaroo_runtime.system.child import end_group, endable
from wallaroo_runtime.worker.launch import SOCKET, explain_refusal, explain_start, launch, status_text
from wallaroo_runtime.worker.spec import WorkerSpec

LOOK_S = 0.02
TAIL_LINES = 20
IN_USE = os.strerror(errno.EADDRINUSE).lower()


def try_workers(options: RunOptions, application: Application) -> None:
    """Start the workers of a program, and end them once they serve.

    That one fails since the running worker holds its port says nothing about it.

    Raises:
        RunError: Why one does not start.
    """
    workers = hosted_workers(options, application)
    with ExitStack() as stack:
        # Mixed programs: all at the same time.
        trials = [stack.enter_context(_started(workers.spec(worker.name))) for worker in application.topology.workers]
        for trial in trials:
            _wait(trial)


class Trial(NamedTuple):
    """A worker on trial; its socket will be in `directory`."""

    spec: WorkerSpec
    process: "subprocess.Popen[bytes]"
    directory: Path
    log: Path


@contextmanager
def _started(spec: WorkerSpec) -> Iterator[Trial]:
    """Start a worker; it ends with the context, and all that it has started."""
    log = Path(spec.log_directory, f"trial-{spec.name}.log")
    with tempfile.TemporaryDirectory(prefix="wallaroo-trial-") as folder:
        try:
            with log.open("wb") as output:
                process = launch(spec, Path(folder), output.fileno())
        except OSError as error:
            raise RunError([explain_refusal(spec, error)], WORKER) from error
        try:
            with endable(process):
                yield Trial(spec, process, Path(folder), log)
        finally:
            end_group(process)


def _wait(trial: Trial) -> None:
    """Wait until a worker serves."""
    spec, seconds = trial.spec, trial.spec.start_timeout_ms / 1000
    deadline = time.monotonic() + seconds
    while not (trial.directory / SOCKET).exists():
        ended = trial.process.poll() is not None
        if not ended and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            continue
        ending = status_text(trial.process.returncode) if ended else f"it did not listen within {seconds:g} s"
        tail = "\n".join(trial.log.read_text(encoding="utf-8", errors="replace").splitlines()[-TAIL_LINES:])
        findings = explain_start(spec, trial.directory, f"{ending} before it served", tail, log=trial.log)
        if any(IN_USE in finding.traceback.lower() for finding in findings):
            return
        raise RunError(findings, WORKER)
