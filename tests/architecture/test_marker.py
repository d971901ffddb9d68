"""Marks are true: a test that `make test-unit` runs cannot start a process."""

import os
import subprocess

import pytest


def test_a_test_without_mark_starts_no_process() -> None:
    with pytest.raises(RuntimeError, match=r"test_marker.py::\w+ starts 'true'; give it a mark: pytest.mark.slow"):
        subprocess.run(["true"], check=True)
    with pytest.raises(RuntimeError, match=r"starts 'os.fork'"):
        os.fork()


@pytest.mark.slow
def test_a_slow_test_starts_processes() -> None:
    assert subprocess.run(["true"], check=True).returncode == 0
