"""Makes plain go commands work in the directory of a Go program: `wallaroo build --init`."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.program.go import run_go
from wallaroo_runtime.program.import_path import is_sdk
from wallaroo_runtime.program.module import (
    NEW_MODULE,
    find_module,
    find_workspace,
    go_environment,
    module_path,
    read_workspace,
    sdk_modules,
)
from wallaroo_runtime.program.sdk import go_command

HEADING = "// Names the SDK of this machine: not to be committed. `wallaroo build --init` makes it.\n\ngo 1.24.0\n"
GIT_SECONDS = 30


def init(directory: Path) -> list[Path]:
    """Make plain go tools (`go vet`, `go test`, editors) work in a program's directory.

    The directory of the SDK differs from machine to machine, so a go.work names it, and git ignores this file. The
    nearest go.mod is the program's. If there is none, the program gets one. Existing files are amended, not replaced. A
    .gitignore gets the output of `go build`, too.

    Returns:
        The files that were written.

    Raises:
        RunError: R780 if the program's go.work is committed; W407, W408 or R697 if go fails.
    """
    directory = directory.resolve()
    go, _ = go_command()
    written = []
    module = find_module(directory)
    if module is None:
        module = directory
        (module / "go.mod").write_text(NEW_MODULE, encoding="utf-8")
        written.append(module / "go.mod")
    elif _without_sdk(go, module / "go.mod"):
        written.append(module / "go.mod")
    file = find_workspace(go, module) or module / "go.work"
    written += _write_workspace(go, module, file)
    if module / "go.mod" in written and (needed := read_workspace(go, file).get("Go")):
        run_go([go, "mod", "edit", f"-go={needed}"], module, go_environment())  # the SDK needs this version
    if _ignore(directory / ".gitignore", _built(go, directory, str(file))) and directory / ".gitignore" not in written:
        written.append(directory / ".gitignore")
    if os.environ.get("GOWORK", "") not in ("", str(file)):
        print(f"note: GOWORK is {os.environ['GOWORK']}, so that go commands do not read {file}", file=sys.stderr)
    return written


def _without_sdk(go: str, file: Path) -> bool:
    """Remove the SDK's directories, which earlier versions wrote into a go.mod. Return whether the go.mod changed."""
    content = json.loads(run_go([go, "mod", "edit", "-json", str(file)], file.parent, go_environment()))
    names = [
        path
        for entry in content["Replace"] or ()
        if is_sdk(path := entry["Old"]["Path"]) and Path(entry["New"]["Path"]).is_absolute()
    ]
    edits = [f"-{edit}={name}" for name in names for edit in ("dropreplace", "droprequire")]
    if edits:
        run_go([go, "mod", "edit", *edits, str(file)], file.parent, go_environment())
    return bool(edits)


def _write_workspace(go: str, module: Path, file: Path) -> list[Path]:
    """Make a go.work name a module and the SDK of this installation, and no other SDK. Return the changed files.

    Raises:
        RunError: R780 if the go.work is committed.
    """
    if _git(file.parent, "ls-files", "--error-unmatch", file.name):
        raise RunError.of("R780", USAGE, path=file)
    if not file.exists():
        file.write_text(HEADING, encoding="utf-8")
    old = [entry["DiskPath"] for entry in read_workspace(go, file).get("Use") or ()]
    edits = [
        f"-dropuse={path}" for path in old if is_sdk(module_path(file.parent / path)) or _is_of_another_machine(path)
    ]
    if edits:
        run_go([go, "work", "edit", *edits, str(file)], module, go_environment())
    # Unlike `go work edit`, this raises the version of Go to the version that the modules need.
    run_go([go, "work", "use", ".", *map(str, sdk_modules(module))], module, go_environment(str(file)))
    ignore = file.parent / ".gitignore"
    return [file, ignore] if _ignore(ignore, [file.name, f"{file.stem}.work.sum"]) else [file]


def _is_of_another_machine(path: str) -> bool:
    return Path(path).is_absolute() and not (Path(path) / "go.mod").is_file()


def _built(go: str, directory: Path, workspace: str) -> list[str]:
    """Return the .gitignore line for the binary that `go build` writes; empty if a folder has this name."""
    listing = [go, "list", "-e", "-find", "-f", "{{.Target}}", "."]
    name = Path(run_go(listing, directory, go_environment(workspace)).strip()).name
    return [f"/{name}"] if name and not (directory / name).is_dir() else []


def _ignore(file: Path, names: list[str]) -> bool:
    """Add files to a .gitignore, unless git ignores them already. Return whether the .gitignore was changed."""
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    added = [
        name for name in names if name not in text.splitlines() and not _git(file.parent, "check-ignore", "-q", name)
    ]
    if added:
        start = text if text.endswith("\n") or not text else f"{text}\n"
        file.write_text(start + "".join(f"{name}\n" for name in added), encoding="utf-8")
    return bool(added)


def _git(directory: Path, *arguments: str) -> bool:
    """Return whether a command of git succeeds; False if there is no git."""
    git = shutil.which("git")
    if git is None:
        return False
    command = [git, *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, timeout=GIT_SECONDS, check=False).returncode == 0
