"""Registers each run of this user on this machine by a file in the state directory, and lists the runs."""

import contextlib
import hashlib
import json
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from wallaroo_runtime.durable.file import noted, replace_file
from wallaroo_runtime.system.process import ProcessId, alive, process_start_time

RUNNING, CHOSEN = "running", "chosen"


def state_directory() -> Path:
    """Return the state directory, with lasting files of this user's runs, e.g. `~/.local/state/wallaroo`."""
    root = os.environ.get("XDG_STATE_HOME", "")
    return (Path(root) if os.path.isabs(root) else Path.home() / ".local" / "state") / "wallaroo"


@contextlib.contextmanager
def registered(checkpoint: Path, application: str, program: Path | None = None) -> Iterator[Callable[[], None]]:
    """Register this driver during the `with` block, so that `wallaroo ps` lists it.

    The block gets a function. Call it when the checkpoint has accepted the program: it notes the checkpoint if the user
    chose it with `--checkpoint`, so that later commands find it by the program.

    Args:
        program: File or directory of the application.
    """

    def note_chosen() -> None:
        if program and state_directory() not in checkpoint.parents:
            _write(_chosen(program), {"checkpoint": str(checkpoint.absolute())})

    place = str(program.resolve()) if program else ""
    _register({"application": application, "checkpoint": str(checkpoint), "program": place})
    try:
        yield note_chosen
    finally:
        unregister()


def supervise(driver: int) -> None:
    """Register this process, which starts an ended driver again. So `wallaroo ps` lists the run even without driver.

    Args:
        driver: Process id of the driver that runs now.
    """
    note = noted(_file(driver))
    if alive(note):
        known = {name: note.get(name, "") for name in ("application", "checkpoint", "program")}
        _register({**known, "supervises": True})


def unregister() -> None:
    """Remove the file by which this process is registered."""
    with contextlib.suppress(OSError):
        _file(os.getpid()).unlink(missing_ok=True)


def running() -> Iterator[dict[str, Any]]:
    """Yield pid, application and checkpoint of each run of this user. Remove the files of runs that were killed.

    If no driver runs at the moment, `pid` is the process that will start the next driver.
    """
    runs = list(_alive())
    driven = {each.get("checkpoint") for each in runs if not each.get("supervises")}
    for each in runs:
        if not each.get("supervises") or each.get("checkpoint") not in driven:
            yield {name: each.get(name, "") for name in ("pid", "application", "checkpoint")}


def running_with(program: Path) -> set[Path]:
    """Return the checkpoints of the runs of a program."""
    place = str(program.resolve())
    return {Path(each["checkpoint"]) for each in _alive() if each.get("program") == place}


def digest(program: Path) -> str:
    """Return a short hash of a program's path, for the names of the program's files in the state directory."""
    return hashlib.sha256(os.fsencode(program.resolve())).hexdigest()[:12]


def chosen_for(program: Path) -> list[Path]:
    """Return the checkpoint that a user chose for the last run of a program with `--checkpoint`, if there was one."""
    note = noted(_chosen(program))
    return [Path(note["checkpoint"])] if "checkpoint" in note else []


def _chosen(program: Path) -> Path:
    """Return the path of the file in which the checkpoint that a user chose for a program is noted."""
    return state_directory() / CHOSEN / f"{digest(program)}.json"


def supervisor_of(checkpoint: Path) -> ProcessId | None:
    """Return the process that restarts the driver of a checkpoint, or None."""
    place = checkpoint.resolve()
    named = (each for each in _alive() if each.get("supervises") and Path(each["checkpoint"]).resolve() == place)
    return next(map(alive, named), None)


def _alive() -> Iterator[dict[str, Any]]:
    """Yield the content of the file of each registered process. Remove the files of processes that have ended."""
    for path in sorted((state_directory() / RUNNING).glob(_name("*"))):
        note = noted(path)
        if alive(note):
            yield note
        else:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()


def _file(pid: int) -> Path:
    """Return the file by which a process of this machine is registered."""
    return state_directory() / RUNNING / _name(pid)


def _name(pid: object) -> str:
    # Machines may share the directory, and cannot see each other's processes.
    return f"{platform.node()}@{pid}.json"


def _register(content: Mapping[str, Any]) -> None:
    pid = os.getpid()
    _write(_file(pid), {"pid": pid, "start_time": process_start_time(pid), **content})


def _write(path: Path, content: Mapping[str, Any]) -> None:
    # A run with a checkpoint at another place does not need a writable home directory.
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, json.dumps(content).encode())
