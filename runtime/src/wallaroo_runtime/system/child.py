"""Ends child processes together with their group."""

import os
import signal
import subprocess
from contextlib import suppress


def end_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a child that leads its own process group, and all other processes of that group."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
