"""Runs commands of the go toolchain."""

import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import WORKER, RunError

BUILD_SECONDS = 600
NOTE_SECONDS = 10
SHOWN_LINES = 40
_PLACE = re.compile(r"^(?P<file>[^\s:][^:]*\.go):(?P<line>\d+)(?::\d+)?: ", re.MULTILINE)
_FULL = re.compile(r"no space left on device|disk quota exceeded|read-only file system")
_NOT_FETCHED = re.compile(r"(?:module lookup disabled by GOPROXY|Get \"https?://|dial tcp|proxyconnect).*")


def run_go(command: list[str], directory: Path, environment: dict[str, str]) -> str:
    """Run a command of the go toolchain and return its output. If it takes long, notify the user every 10 s.

    Args:
        command: The command and its arguments.
        directory: Directory of the command; places in its messages are relative to this directory.

    Raises:
        RunError: W407; R697 if a module cannot be fetched; R742 if a disk is full.
    """
    pipe = subprocess.PIPE
    try:
        with (
            TemporaryDirectory(
                prefix="wallaroo-go-", ignore_cleanup_errors=True
            ) as work,  # this removes go's temporary files even if go is killed
            subprocess.Popen(
                command, cwd=directory, env={"GOTMPDIR": work, **environment}, stdout=pipe, stderr=pipe, text=True
            ) as process,
        ):
            output, errors = _finished(process)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise broken(directory, str(error)) from error
    if process.returncode != 0:
        raise broken(directory, errors.strip() or output.strip() or f"exit code {process.returncode}")
    return output


def _finished(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait for a command, and return its output and errors. Report a slow command, and kill it after ten minutes."""
    begun = time.monotonic()
    try:
        while (seconds := time.monotonic() - begun) <= BUILD_SECONDS:
            if seconds > NOTE_SECONDS:
                _show(f"note: go compiles, {seconds:.0f} s so far; the first time it also fetches the SDK's modules")
            with suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=NOTE_SECONDS)
        raise subprocess.TimeoutExpired(process.args, BUILD_SECONDS)
    except BaseException:
        process.kill()
        raise
    finally:
        if time.monotonic() - begun > NOTE_SECONDS:
            _show("")


def _show(text: str) -> None:
    """Print a line to stderr. On a terminal the next line replaces it, and an empty text removes it."""
    if sys.stderr.isatty():
        print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def broken(directory: Path, output: str) -> RunError:
    """Return the error for a compiler's output: R697 for a missing module, R742 for a full disk, else W407."""
    if match := _NOT_FETCHED.search(output):
        return RunError.of("R697", WORKER, reason=match[0])
    if full := next(filter(_FULL.search, output.splitlines()), ""):
        fix = "free some space, or give other directories with XDG_CACHE_HOME and TMPDIR"
        return RunError.of("R742", WORKER, what="room for the compiler of Go", reason=full, fix=fix)
    lines = [line for line in output.splitlines() if not line.startswith("# ")]
    shown = "\n".join(lines[:SHOWN_LINES] + [f"({len(lines) - SHOWN_LINES} more lines)"] * (len(lines) > SHOWN_LINES))
    first = _PLACE.search(shown)
    file, line = (str(directory / first["file"]), int(first["line"])) if first else (str(directory), 0)
    return RunError([Diagnostic.of("W407", file=file, line=line, traceback=shown)], WORKER)
