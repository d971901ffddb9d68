"""The workers of both languages conform, and the driver notices each broken rule."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
DEADLINE_S = 180
PYTHON_WORKER = [sys.executable, "-m", "wallaroo.worker", str(HERE / "conformance" / "app.py")]

# What the driver must report for each fault: part of the name of a check that fails.
NOTICED = {
    "wrong-bucket": "process: many keys",
    "later-sequence": "process: keys, buckets and sequences",
    "no-dead-letters": "dead letters: each kind",
    "one-code": "dead letters: a message that cannot",
    "says-twice": "process: keys, buckets",
    "loses-messages": "process: many keys",
    "done-first": "process: many data in flight",
    "reused-nonce": "state: the copy in the worker",
    "stale-copy": "state: another nonce",
    "loses-changes": "state: a worker that knows nothing",
    "always-snapshot": "state: a delta holds",
    "never-snapshot": "state: a delta holds",
    "unmarked-rollback": "state: a failing message leaves",
    "blind": "in flight: the file tells",
    "ignores-skips": "skips: messages that are not run are dead letters",
    "swallows-failures": "damage: each kind",
    "internal-failures": "stage: a path that the worker",
    "accepts-any-hash": "init: another interface hash",
    "accepts-any-version": "init: a range of versions that does not meet",
    "lax-codec": "codec int64: other bytes",
    "keyless-border": "send: messages keep sequence",
    "wrong-cut": "SplitFrames",
    "ignores-sigterm": "end: SIGTERM ends the worker",
    "leaves-orphan": "end: SIGKILL leaves",
}

pytestmark = pytest.mark.slow


def drive(command: list[str], only: str = "") -> subprocess.CompletedProcess[str]:
    """Run the driver against a worker."""
    arguments = [sys.executable, "-m", "conformance", "--worker", shlex.join(command), "--only", only]
    return subprocess.run(arguments, cwd=HERE, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def wrong_worker(fault: str) -> list[str]:
    return [sys.executable, str(HERE / "conformance" / "wrong_worker.py"), fault, *PYTHON_WORKER]


def assert_conforms(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout
    passed = done.stdout.splitlines()[-1].split()
    assert passed[0] == passed[2], done.stdout
    assert int(passed[0]) >= 75, done.stdout


def test_python_worker_conforms() -> None:
    assert_conforms(drive(PYTHON_WORKER))


def test_go_worker_conforms(go_conformance: Path) -> None:
    assert_conforms(drive([str(go_conformance)]))


def test_driver_passes_the_wrong_worker_without_a_fault() -> None:
    assert_conforms(drive(wrong_worker("none")))


@pytest.mark.parametrize(("fault", "noticed"), NOTICED.items())
def test_driver_notices(fault: str, noticed: str) -> None:
    done = drive(wrong_worker(fault), noticed)
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert done.returncode == 1, f"{fault} was not noticed: {done.stdout}{done.stderr}"
    assert [line for line in failed if noticed in line], done.stdout


def test_every_fault_is_tried() -> None:
    sys.path.insert(0, str(HERE))
    from conformance.fault import FAULTS

    assert {*NOTICED} == {*FAULTS} - {"none"}


def test_driver_reports_a_worker_that_does_not_start() -> None:
    done = drive([sys.executable, "-c", "import sys; sys.exit('no such application')"])
    assert done.returncode == 1
    assert "FAILED  start" in done.stdout
    assert "no such application" in done.stdout
