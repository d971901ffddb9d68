"""Real full disks, end to end: for the journal, for output, and for Spark's own checkpoint."""

import os
import subprocess
import sys

import pytest

from full_disk import SCENARIOS
from support.run import TESTS

pytestmark = [pytest.mark.jvm, pytest.mark.long]
SECONDS = 900


@pytest.mark.parametrize("scenario", list(SCENARIOS))
def test_a_full_disk_loses_nothing(scenario: str) -> None:
    """In a mount namespace of its own; who is not root gets a user namespace, too."""
    namespaces = ["unshare", "--mount"] + ([] if os.getuid() == 0 else ["--map-root-user"])
    command = [*namespaces, sys.executable, str(TESTS / "full_disk.py"), scenario]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
