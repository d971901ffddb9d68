"""The conformance driver, as a command."""

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from conformance import every  # noqa: F401

HERE = Path(__file__).resolve().parents[1]


DEADLINE_S = 240


def drive(
    command: list[str], only: str = "", python: list[str] | None = None, without: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run the driver against a worker."""
    driver = python or [sys.executable, "-m", "conformance"]
    arguments = [*driver, "--worker", shlex.join(command), "--only", only, "--without", *without]
    return subprocess.run(arguments, cwd=HERE, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
