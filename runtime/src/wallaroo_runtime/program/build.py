"""Builds worker binaries from Go programs: `wallaroo build`.

A program in the style of Wallaroo's tutorials needs no change: the SDK's command `overlay` makes a prepared copy of its
files, which the compiler reads (`go build -overlay`). A temporary workspace has the program and the SDK, so that the
program needs no go.mod, and its directory stays as it is.
"""

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic, Family
from wallaroo_runtime.errors import TOPOLOGY, WORKER, RunError
from wallaroo_runtime.program.cache import cached
from wallaroo_runtime.program.go import broken, run_go
from wallaroo_runtime.program.module import go_environment, write_workspace
from wallaroo_runtime.program.sdk import go_command, sdk_directory

NAME_CHARACTERS = 60  # limit for the part of a binary's name that is the directory's name


def build(
    directory: Path,
    output: Path | None = None,
    *,
    goos: str | None = None,
    goarch: str | None = None,
    static: bool = False,
) -> Path:
    """Build the Go program in a directory and return the path of its worker binary.

    Args:
        directory: The directory of the program's main package. It is only read.
        output: Path of the binary; by default in the user's cache, under a name made from its content, so that a
            running worker's binary is never replaced.
        goos: Operating system to build for; by default this one.
        goarch: Architecture to build for; by default this machine's.
        static: Whether to refuse cgo: then a program that needs cgo does not compile. A binary with cgo only runs on
            this platform.

    Returns:
        The absolute path of the binary.

    Raises:
        RunError: W407 (with the compiler's message at the user's line), W408, W409, R697, T201 or T202.
    """
    directory = directory.resolve()
    go, version = go_command()
    with tempfile.TemporaryDirectory(prefix="wallaroo-build-") as folder:
        work = Path(folder)
        environment = _environment(work, goos, goarch)
        prepared = _prepare(go, directory, work, environment)
        with_cgo = bool(prepared["cgo"]) and not static
        environment["CGO_ENABLED"] = "1" if with_cgo else "0"
        if with_cgo:
            names = ", ".join(prepared["cgo"])
            print(f"note: {directory} uses {names}; it is built with cgo, for this platform only", file=sys.stderr)
        overlay = _workspace(go, version, directory, work, prepared["replace"])
        if output is not None:
            _compile(go, directory, overlay, output.absolute(), environment=environment)
            return output.absolute()
        target = "-".join(environment.get(name, "") for name in ("GOOS", "GOARCH", "CGO_ENABLED"))
        return cached(
            f"{directory}\0{target}",
            f"app-{re.sub('[^A-Za-z0-9_-]', '_', directory.name)[:NAME_CHARACTERS]}",
            lambda path: _compile(go, directory, overlay, path, environment=environment),
        )


def _environment(work: Path, goos: str | None, goarch: str | None) -> dict[str, str]:
    environment = go_environment(str(work / "go.work"))
    environment.update({name: value for name, value in (("GOOS", goos), ("GOARCH", goarch)) if value})
    return environment


def _prepare(go: str, directory: Path, work: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Run the SDK's command `overlay`: it writes changed copies of files that Go cannot build unchanged into `work`.

    Examples are a file with `import "C"`, and an empty `main`. The program's own files stay as they are.

    Returns:
        The copies by the files that they replace (`replace`), and the packages that need cgo (`cgo`).
    """
    if not directory.is_dir():
        raise broken(directory, "this is not a directory")
    # The tool is compiled for this machine, whatever the program is built for; it reads the target as its default.
    native = {**environment, "GOWORK": "off", "CGO_ENABLED": "0"}
    target: dict[str, str] = {name: native.pop(name) for name in ("GOOS", "GOARCH") if name in native}
    make = [go, "build", "-buildvcs=false", "-o"]
    tool = cached(
        f"{sdk_directory()}\0overlay",
        "overlay",
        lambda path: run_go([*make, str(path), "./cmd/overlay"], sdk_directory(), native),
    )
    answer = run_go([str(tool), str(directory), str(work)], work, {**native, **target})
    prepared: dict[str, Any] = json.loads(answer)
    if prepared["diagnostics"]:
        findings = [Diagnostic.from_json(each) for each in prepared["diagnostics"]]
        raise RunError(findings, TOPOLOGY if all(each.family is Family.TOPOLOGY for each in findings) else WORKER)
    return prepared


def _workspace(go: str, version: str, directory: Path, work: Path, replace: dict[str, str]) -> Path:
    """Write the workspace and the overlay file of a build, and return the overlay file."""
    write_workspace(go, version, directory, work, replace)
    overlay = work / "overlay.json"
    overlay.write_text(json.dumps({"Replace": replace}), encoding="utf-8")
    return overlay


def _compile(go: str, directory: Path, overlay: Path, output: Path, *, environment: dict[str, str]) -> None:
    # Without tables for debuggers, as in `go test`: linking takes a third less time, the binary a third less space.
    command = [go, "build", "-overlay", str(overlay), "-buildvcs=false", "-ldflags=-s -w", "-o", str(output), "."]
    run_go(command, directory, environment)
