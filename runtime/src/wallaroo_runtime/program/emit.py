"""Runs a program in mode `emit`, in which it only declares its application, and returns the topology document."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from wallaroo.diagnostic.diagnostic import Diagnostic, Family
from wallaroo.emit.module import module_command
from wallaroo.emit.program import other_wallaroo
from wallaroo_runtime.errors import TOPOLOGY, WORKER, RunError
from wallaroo_runtime.program.app import App, AppKind
from wallaroo_runtime.program.library import find_library, join_libraries, library_alone
from wallaroo_runtime.system.child import end_group
from wallaroo_runtime.system.process import dying_with_parent
from wallaroo_runtime.topology.load import MAX_DOCUMENT_BYTES
from wallaroo_runtime.worker.launch import status_text
from wallaroo_runtime.worker.spec import PYTHON_PLACEHOLDER

DEADLINE_S = 120.0  # limit for the setup of one program
STDERR = 2


class Emitted(NamedTuple):
    """The declaration of a program: its topology document, and the libraries that it uses.

    Attributes:
        libraries: Programs whose components the program uses, by the names of their workers.
    """

    document: dict[str, Any]
    libraries: dict[str, App]


def say_nothing(what: str) -> None:
    """Ignore the text about slow work. This is the default of `tell`."""


def emit(app: App, args: Sequence[str], tell: Callable[[str], None] = say_nothing) -> dict[str, Any]:
    """Return the topology document of a program, as `emit_all` does."""
    return emit_all(app, args, tell).document


def emit_all(app: App, args: Sequence[str], tell: Callable[[str], None] = say_nothing) -> Emitted:
    """Run a program in mode `emit`, and return its topology document and the libraries that it uses.

    The program's output goes to stderr of this process. A Go program is built before. Libraries (programs with
    components that this program uses) run in the same way, and their workers are added to the document.

    Args:
        app: An application of `resolve` that is not a topology.
        args: Arguments of the application's own command line, without a program name.
        tell: Called with a text before work that may take seconds.

    Raises:
        RunError: With exit code 3 and the program's faults (T201, T259 and T260 for components of other programs); with
            exit code 4 if a program cannot be run.
    """
    result = run_front_end(app, args, tell)
    if "library" in result:
        raise RunError([library_alone(app.path)], TOPOLOGY)
    document: dict[str, Any] = result["topology"]
    home = Path(app.path) if app.kind is AppKind.GO_DIRECTORY else Path(app.path).parent
    return Emitted(document, join_programs(document, result.get("programs", {}), home, args, tell))


def join_programs(
    document: dict[str, Any],
    programs: Mapping[str, str],
    home: Path,
    args: Sequence[str],
    tell: Callable[[str], None] = say_nothing,
) -> dict[str, App]:
    """Run libraries in mode `emit`, and add their workers to the document of the program that names them.

    Args:
        document: Document of the program that names the others. The call changes it.
        programs: Targets of the programs, by the names of their workers.
        home: Directory of the program that names the others.
        args: Arguments of the application's own command line.
        tell: As for `emit_all`.

    Returns:
        The programs by the names of their workers.

    Raises:
        RunError: As `emit_all`.
    """
    libraries = {name: find_library(name, home, target) for name, target in programs.items()}
    results = {name: run_front_end(library, args, tell) for name, library in libraries.items()}
    if libraries:
        join_libraries(document, {name: (libraries[name].path, result) for name, result in results.items()})
    return libraries


def run_front_end(app: App, args: Sequence[str], tell: Callable[[str], None] = say_nothing) -> dict[str, Any]:
    """Run one program in mode `emit`, and return its document, with the commands that start its workers.

    Raises:
        RunError: As `emit`.
    """
    tell(f"{'compiling Go in' if app.kind is AppKind.GO_DIRECTORY else 'reading'} {app.path}")
    if app.kind is AppKind.GO_DIRECTORY:
        # Imported late: only Go programs need it.
        from wallaroo_runtime.program.build import build

        app = replace(app, kind=AppKind.BINARY, path=str(Path(build(Path(app.path))).absolute()))
    if app.kind is AppKind.BINARY:
        front_end = started = [app.path]
    else:
        _refuse_other_wallaroo(app)
        front_end = module_command(sys.executable, "wallaroo.emit", app.target)
        started = [PYTHON_PLACEHOLDER, "-m", "wallaroo.worker", app.target]
    with tempfile.TemporaryDirectory(prefix="wallaroo-emit-") as folder:
        file = Path(folder) / "topology.json"
        ending = _run(front_end, args, file, app.path)
        result = _read(file, ending, app.path)
    for entry in own_workers(result):
        entry["command"], entry["directory"] = list(started), os.getcwd()
    return result


def own_workers(result: Any) -> list[Any]:
    """Return the entries of workers from the document that a program or library writes in mode `emit`."""
    return [result["library"]["worker"]] if "library" in result else list(result["topology"]["workers"])


def _refuse_other_wallaroo(app: App) -> None:
    """Refuse a program that would import another package `wallaroo` than the SDK, e.g. from its own folder."""
    directory = os.path.dirname(app.path) if app.kind is AppKind.PYTHON_FILE else os.getcwd()
    path = os.environ.get("PYTHONPATH")
    file = other_wallaroo([directory, *(path.split(os.pathsep) if path else ())])
    if file:
        raise RunError.of("T221", TOPOLOGY, file=file, found=file)


def _run(command: Sequence[str], args: Sequence[str], file: Path, path: str) -> str:
    """Run the front-end until it ends. Return in words how it ended."""
    added = {"WALLAROO_MODE": "emit", "WALLAROO_ARGS": json.dumps(list(args)), "WALLAROO_EMIT_FILE": str(file)}
    sys.stdout.flush()
    try:
        child = subprocess.Popen(
            command,
            env=os.environ | added,
            stdin=subprocess.DEVNULL,
            stdout=STDERR,
            start_new_session=True,
            preexec_fn=dying_with_parent(signal.SIGKILL),
        )
    except OSError as err:
        fix = "build it again with `wallaroo build DIR`"
        raise RunError.of("W404", WORKER, path=command[0], reason=err.strerror or str(err), fix=fix) from err
    try:
        status = child.wait(DEADLINE_S)
    except subprocess.TimeoutExpired:
        reason = f"{path} gave no topology within {DEADLINE_S:g} s"
        fix = "look for an endless loop in its setup"
        raise RunError.of("W401", WORKER, worker="main", reason=reason, fix=fix) from None
    finally:
        end_group(child)
    return status_text(status)


def _read(file: Path, ending: str, path: str) -> dict[str, Any]:
    if not file.is_file():
        reason = f"{path} wrote no topology; {ending}"
        fix = "see what it printed above; a worker binary must be built with an SDK of this release"
        raise RunError.of("W401", WORKER, worker="main", reason=reason, fix=fix)
    size = file.stat().st_size
    if size > MAX_DOCUMENT_BYTES:
        raise RunError.of("T104", TOPOLOGY, what="the document", size=f"{size} bytes", limit=MAX_DOCUMENT_BYTES)
    try:
        result = json.loads(file.read_bytes())
        if "diagnostics" in result:
            findings = [Diagnostic.from_json(entry) for entry in result["diagnostics"]]
        else:
            own_workers(result)
            checked: dict[str, Any] = result
            return checked
    except (ValueError, TypeError, KeyError) as err:
        reason = f"its result in mode emit is damaged: {type(err).__name__}: {err}"
        raise RunError.of("W410", WORKER, worker="main", reason=reason) from err
    is_ours = all(finding.family is Family.TOPOLOGY for finding in findings)
    raise RunError(findings, TOPOLOGY if is_ours else WORKER)
