"""Builds Go programs to worker binaries: `wallaroo build`.

A program in the style of Wallaroo's tutorials is built as it is: the compiler reads a prepared copy of its files
(`go build -overlay`), made by the SDK's command `overlay`. The program and the SDK are joined in a temporary
workspace, so that the program needs no go.mod, and its directory is not touched.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.program.cache import cached
from wallaroo_runtime.program.sdk import go_command, sdk_directory

HOST = "wallaroo.local"  # of module paths that nobody fetches
MODULE = "wallarooapi"
GOKA = f"{MODULE}/goka"
IMPORTS_GOKA = re.compile(rf'"{GOKA}[/"]')
BUILD_SECONDS = 600
NOTE_SECONDS = 5
SHOWN_LINES = 40
_PLACE = re.compile(r"^(?P<file>[^\s:][^:]*\.go):(?P<line>\d+)(?::\d+)?: ", re.MULTILINE)
_NOT_FETCHED = re.compile(r"(?:module lookup disabled by GOPROXY|Get \"https?://|dial tcp|proxyconnect).*")


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
        output: Where the binary goes; by default into the user's cache, under a name made from its content, so
            that a running worker's binary is never replaced.
        goos: Operating system to build for; by default this one.
        goarch: Architecture to build for; by default this machine's.
        static: Whether a program that needs cgo does not compile, rather than getting a binary for this machine alone.

    Returns:
        The absolute path of the binary.

    Raises:
        RunError: W407 (with the compiler's message at the user's line), W408, W409, R697, T201, T202 or T216.
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
        overlay = _workspace(directory, prepared["replace"], version, work)
        if output is not None:
            _compile(go, directory, overlay, output.absolute(), environment=environment)
            return output.absolute()
        target = "-".join(environment.get(name, "") for name in ("GOOS", "GOARCH", "CGO_ENABLED"))
        return cached(
            f"{directory}\0{target}",
            _module_name(directory).removeprefix(f"{HOST}/"),
            lambda path: _compile(go, directory, overlay, path, environment=environment),
        )


def init(directory: Path) -> list[Path]:
    """Make plain go tools (`go vet`, `go test`, editors) work in a program's directory.

    Writes a go.mod that requires the SDK from where it is installed, and a go.sum. Files that are there are
    amended, not replaced.

    Returns:
        The files written.

    Raises:
        RunError: W407, W408 or R697.
    """
    directory = directory.resolve()
    go, _ = go_command()
    sdk = sdk_directory()
    module, sums = directory / "go.mod", directory / "go.sum"
    if not module.exists():
        module.write_text(f"module {_module_name(directory)}\n\ngo 1.24.0\n", encoding="utf-8")
    environment = {**os.environ, "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"}
    requires = [f"-require={line}" for line in _required(sdk)]
    edits = [f"-require={MODULE}@v0.0.0", f"-replace={MODULE}={sdk}", *requires]
    modules = _sdk_modules(directory)
    if len(modules) > 1:
        goka = modules[1]
        edits += [f"-require={GOKA}@v0.0.0", f"-replace={GOKA}={goka}", f"-go={_go_version(goka)}"]
        edits += [f"-require={line}" for line in _required(goka) if not line.startswith(MODULE)]
    _run([go, "mod", "edit", *edits], directory, environment)
    known = set(sums.read_text(encoding="utf-8").splitlines()) if sums.exists() else set()
    for path in modules:
        known |= set((path / "go.sum").read_text(encoding="utf-8").splitlines())
    sums.write_text("\n".join(sorted(known - {""})) + "\n", encoding="utf-8")
    return [module, sums]


def _sdk_modules(program: Path) -> list[Path]:
    """Return the modules of the SDK that a program needs: that for Goka's programs has many dependencies of its own."""
    goka = any(IMPORTS_GOKA.search(file.read_text(encoding="utf-8", errors="replace")) for file in _go_files(program))
    return [sdk_directory(), sdk_directory() / "goka"] if goka else [sdk_directory()]


def _go_files(directory: Path) -> Iterator[Path]:
    for folder, names, files in os.walk(directory):
        names[:] = [
            name for name in names if not name.startswith((".", "_")) and name not in ("testdata", "node_modules")
        ]
        yield from (Path(folder) / name for name in files if name.endswith(".go"))


def _go_version(module: Path) -> str:
    """Return the version of Go that a module of the SDK needs."""
    found = re.search(r"^go (\S+)$", (module / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else "1.24.0"


def _required(sdk: Path) -> Iterator[str]:
    for line in (sdk / "go.mod").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\s+(\S+) (v\S+)", line):
            yield f"{found[1]}@{found[2]}"


def _module_name(directory: Path) -> str:
    """Return a module path for a directory of any name; the name alone may be a standard package, or reserved."""
    return f"{HOST}/app-{re.sub('[^A-Za-z0-9_-]', '_', directory.name)}"


def _environment(work: Path, goos: str | None, goarch: str | None) -> dict[str, str]:
    # The user's GOFLAGS may hold -mod=mod, which a workspace refuses; a toolchain must not be fetched.
    environment = {**os.environ, "GOWORK": str(work / "go.work"), "GOFLAGS": "", "GOTOOLCHAIN": "local"}
    environment.update({name: value for name, value in (("GOOS", goos), ("GOARCH", goarch)) if value})
    return environment


def _prepare(go: str, directory: Path, work: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Run the SDK's `overlay` over the program; the files that it writes go to `work`."""
    if not directory.is_dir():
        raise _broken(directory, "this is not a directory")
    # The tool runs here, whatever the program is built for; it gets the target as its own default.
    native = {**environment, "GOWORK": "off", "CGO_ENABLED": "0"}
    target: dict[str, str] = {name: native.pop(name) for name in ("GOOS", "GOARCH") if name in native}
    make = [go, "build", "-buildvcs=false", "-o"]
    tool = cached(
        f"{sdk_directory()}\0overlay",
        "overlay",
        lambda path: _run([*make, str(path), "./cmd/overlay"], sdk_directory(), native),
    )
    answer = _run([str(tool), str(directory), str(work)], work, {**native, **target})
    prepared: dict[str, Any] = json.loads(answer)
    if prepared["diagnostics"]:
        raise RunError(map(Diagnostic.from_json, prepared["diagnostics"]), WORKER)
    return prepared


def _workspace(directory: Path, replace: dict[str, str], version: str, work: Path) -> Path:
    """Write the workspace and the overlay file; return the latter."""
    module = next((parent for parent in (directory, *directory.parents) if (parent / "go.mod").is_file()), None)
    if module is None:
        module = directory
        made = work / "go.mod"
        made.write_text(f"module {_module_name(directory)}\n\ngo 1.24.0\n", encoding="utf-8")
        replace = {**replace, str(directory / "go.mod"): str(made)}
    uses = [json.dumps(str(path)) for path in {module, *_sdk_modules(module)}]
    number = re.search(r"\d+(\.\d+)+", version)
    text = f"go {number[0] if number else '1.24.0'}\n\nuse (\n\t" + "\n\t".join(uses) + "\n)\n"
    (work / "go.work").write_text(text, encoding="utf-8")
    overlay = work / "overlay.json"
    overlay.write_text(json.dumps({"Replace": replace}), encoding="utf-8")
    return overlay


def _compile(go: str, directory: Path, overlay: Path, output: Path, *, environment: dict[str, str]) -> None:
    command = [go, "build", "-overlay", str(overlay), "-buildvcs=false", "-o", str(output), "."]
    _run(command, directory, environment)


def _run(command: list[str], directory: Path, environment: dict[str, str]) -> str:
    """Run a command of the go toolchain and return its output; say so when that takes long."""
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(command, cwd=directory, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
            try:
                output, said = process.communicate(timeout=NOTE_SECONDS)
            except subprocess.TimeoutExpired:
                print("note: go compiles; the first time also the SDK's modules, which it fetches", file=sys.stderr)
                output, said = _finished(process)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _broken(directory, str(error)) from error
    if process.returncode != 0:
        raise _broken(directory, said.strip() or output.strip() or f"exit code {process.returncode}")
    return output


def _finished(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait until a command is done; one that is too slow is killed."""
    try:
        return process.communicate(timeout=BUILD_SECONDS)
    except BaseException:
        process.kill()
        raise


def _broken(directory: Path, output: str) -> RunError:
    """Make W407 of what the compiler said, at the first place that it names; R697 when a module was not to be had."""
    if found := _NOT_FETCHED.search(output):
        return RunError.of("R697", WORKER, reason=found[0])
    lines = [line for line in output.splitlines() if not line.startswith("# ")]
    shown = "\n".join(lines[:SHOWN_LINES] + [f"({len(lines) - SHOWN_LINES} more lines)"] * (len(lines) > SHOWN_LINES))
    place = _PLACE.search(shown)
    file, line = (str(directory / place["file"]), int(place["line"])) if place else (str(directory), 0)
    return RunError([Diagnostic.of("W407", file=file, line=line, traceback=shown)], WORKER)
