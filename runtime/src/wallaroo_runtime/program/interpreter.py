"""Checks that the interpreter of `spark.wallaroo.worker.python` can run the workers of an application."""

import subprocess
import sys
from pathlib import Path

from wallaroo_runtime.errors import USAGE, WORKER, RunError
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.interpreter import OPTION, refused
from wallaroo_runtime.worker.spec import PYTHON_PLACEHOLDER

NEEDED = {"wallaroo": "wallaroo-spark[worker]", "grpc": "grpcio"}
FIND_S = 60.0
MISSING_MODULE = str(Path(__file__).with_name("missing_module.py"))


def check_interpreter(python: str, topology: Topology, *, is_here: bool, is_packed: bool) -> None:
    """Refuse an interpreter of `spark.wallaroo.worker.python` that cannot run the application's workers.

    Args:
        python: Value of the setting; empty if it is not set.
        is_here: Whether the workers run on this machine, so that the interpreter can be checked.
        is_packed: Whether the workers bring their own libraries.

    Raises:
        RunError: R608 if the application has no worker in Python; W404 if the interpreter cannot run a worker.
    """
    if not python:
        return
    if not any(worker.command[0] == PYTHON_PLACEHOLDER for worker in topology.workers):
        reason = f'{OPTION} is for workers in Python; "{topology.name}" has none'
        fix = f"leave out {OPTION}; the Python of Spark's own tasks is --conf spark.pyspark.python=PATH"
        raise RunError.of("R608", USAGE, reason=reason, fix=fix)
    if not is_here:
        return
    if missing := missing_modules(python, () if is_packed else tuple(NEEDED)):
        fix = f"`{python} -m pip install '{NEEDED[missing[0]]}'`, or give an interpreter that has it"
        reason = f"it has no module {missing[0]}"
        raise RunError.of("W404", WORKER, path=f"{OPTION}={python}", reason=reason, fix=fix)


def missing_modules(python: str, names: tuple[str, ...]) -> list[str]:
    """Return the modules among `names` that an interpreter does not find.

    Raises:
        RunError: W404 if the interpreter cannot be executed, or is no Python.
    """
    try:
        done = subprocess.run([python, MISSING_MODULE, *names], capture_output=True, check=False, timeout=FIND_S)
    except OSError as error:
        raise RunError([refused(python, error)], WORKER) from error
    except subprocess.TimeoutExpired:
        done = None
    if done is None or done.returncode:
        reason = f"it did not answer within {FIND_S:g} s" if done is None else f"asked for its modules, {_ending(done)}"
        fix = f"give the path of a Python interpreter, e.g. {sys.executable}"
        raise RunError.of("W404", WORKER, path=f"{OPTION}={python}", reason=reason, fix=fix)
    missing = done.stdout.decode(errors="replace").split()
    return [name for name in names if name in missing]


def _ending(done: "subprocess.CompletedProcess[bytes]") -> str:
    errors = done.stderr.decode(errors="replace").strip().splitlines()
    return f"it exited with status {done.returncode}" + (f": {errors[-1]}" if errors else "")
