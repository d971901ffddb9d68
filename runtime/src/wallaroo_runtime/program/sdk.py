"""Finds the installed Go SDK and the go command."""

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import WORKER, RunError

MIN_GO = (1, 24)
GO_VERSION_SECONDS = 30


@cache
def sdk_directory() -> Path:
    """Return the directory of the Go module `wallarooapi`: in the checkout, else in the installed package.

    Raises:
        RunError: I901 if the installation is not complete.
    """
    package = Path(__file__).resolve().parents[1]
    places = (package.parents[2] / "api" / "go", package / "_sdk" / "go")
    for directory in places:
        if (directory / "go.mod").is_file():
            return directory
    raise RunError(
        [Diagnostic.of("I901", reason=f"the Go SDK is missing; looked in {places[0]} and {places[1]}")], WORKER
    )


def go_command() -> tuple[str, str]:
    """Return the path of the go command and its version, e.g. `go1.26.1`.

    Raises:
        RunError: W408 if there is no usable go command.
    """
    go = shutil.which("go")
    if go is None:
        raise RunError.of("W408", WORKER, reason="it is not on PATH")
    try:
        answer = subprocess.run(
            [go, "env", "GOVERSION"], capture_output=True, text=True, timeout=GO_VERSION_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError.of("W408", WORKER, reason=f"{go} does not run: {error}") from error
    version = answer.stdout.strip()
    numbers = re.match(r"(?:devel )?go(\d+)\.(\d+)", version)
    if numbers is None:
        raise RunError.of("W408", WORKER, reason=f"{go} is {version or 'of an unknown version'}")
    if (int(numbers[1]), int(numbers[2])) < MIN_GO:
        raise RunError.of("W408", WORKER, reason=f"{go} is {version}, too old")
    return go, version
