"""Kill points: which process dies, when, and that each entry does it once."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wallaroo.diagnostic.fault import Fault, parse

PROGRAM = """
from wallaroo.diagnostic.fault import reach
for _ in range(5):
    reach("a.b")
    print("passed", flush=True)
"""


def passed(**environment: str) -> tuple[int, int]:
    """Return how often the program came past its point, and its exit code."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WALLAROO_FAULT")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=kept | environment,
    )  # fmt: skip
    return done.stdout.count("passed"), done.returncode


def test_points_of_the_variable() -> None:
    assert parse("") == {}
    text = "worker.after_reply:3,driver.after_commit:1,worker.after_reply:9,worker.after_compute"
    assert parse(text) == {"worker.after_reply": {3, 9}, "driver.after_commit": {1}}
    assert not Fault({}).points


@pytest.mark.slow
def test_nothing_happens_without_the_variable() -> None:
    assert passed() == (5, 0)


@pytest.mark.slow
def test_the_process_dies_when_it_comes_to_the_point_for_the_nth_time() -> None:
    assert passed(WALLAROO_FAULT="a.b:3") == (2, -signal.SIGKILL)
    assert passed(WALLAROO_FAULT="other.point:1,a.b:1") == (0, -signal.SIGKILL)
    assert passed(WALLAROO_FAULT="other.point:1") == (5, 0)


@pytest.mark.slow
def test_each_entry_kills_one_process_when_a_directory_remembers(tmp_path: Path) -> None:
    asked = {"WALLAROO_FAULT": "a.b:4,a.b:2", "WALLAROO_FAULT_DIR": str(tmp_path)}
    assert [passed(**asked) for _ in range(3)] == [(1, -signal.SIGKILL), (3, -signal.SIGKILL), (5, 0)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.b:2", "a.b:4"]
