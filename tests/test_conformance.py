"""The workers of both languages conform, and the driver notices each broken rule."""

import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance import every  # noqa: F401
from conformance.__main__ import failure, main
from conformance.behaviour import BEHAVIOURS, behaving
from conformance.check import CHECKS, Context
from conformance.fault import FAULTS
from conformance.rule import RULES, Rule
from support.drive import DEADLINE_S, HERE, drive

APP = str(HERE / "conformance" / "app.py")
PYTHON_WORKER = [sys.executable, "-m", "wallaroo.worker", APP]
OF_CALLS = [rule for rule in RULES if not rule.needs_process]
OF_PROCESSES = [(rule, fault) for rule in RULES if rule.needs_process for fault in rule.faults]

pytestmark = pytest.mark.slow


def assert_conforms(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAILED" not in done.stdout
    assert f"\n{len(CHECKS)} of {len(CHECKS)} checks passed" in done.stdout, "a check failed, or was left out"


def failures(command: list[str], names: list[str]) -> Iterator[str]:
    """Run checks; yields for each what was wrong, or an empty text."""
    context = Context(shlex.join(command))
    try:
        yield from (failure(context, name) for name in names)
    finally:
        context.close()


def test_python_worker_conforms() -> None:
    assert_conforms(drive(PYTHON_WORKER))


def test_go_worker_conforms(go_conformance: Path) -> None:
    assert_conforms(drive([str(go_conformance)]))


def test_every_check_belongs_to_a_rule_and_every_rule_has_a_fault() -> None:
    assert [name for name in CHECKS if not any(rule.has(name) for rule in RULES)] == []
    assert [rule.says for rule in RULES if not any(map(rule.has, CHECKS))] == []
    assert [rule.says for rule in RULES if not rule.faults] == []
    assert [each for each, number in Counter(rule.says for rule in RULES).items() if number > 1] == []


def test_every_fault_breaks_a_rule() -> None:
    broken = {fault for rule in RULES for fault in rule.faults}
    assert {*FAULTS, *BEHAVIOURS} - broken == set()
    assert len(broken) >= 60


def test_every_fault_is_one_of_the_code() -> None:
    for name in BEHAVIOURS:
        with behaving(name):
            pass


@pytest.mark.parametrize("only", ["no-", pytest.param("", marks=pytest.mark.long)])
def test_driver_notices_every_fault_of_calls(only: str) -> None:
    """Runs the Python worker in a process of its own; the faults whose name has a text, and in the long test all."""
    command = [sys.executable, "-m", "conformance.mutation", only]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, (
        "\n".join(line for line in done.stdout.splitlines() if line[:1].isupper()) + done.stderr
    )
    lines = done.stdout.splitlines()
    tried = [fault for rule in OF_CALLS for fault in rule.faults if only in fault]
    assert lines[0] == "passed  none"
    assert [line.partition(":")[0] for line in lines[1:]] == [f"noticed  {fault}" for fault in tried]
    assert len(tried) >= 5


@pytest.mark.parametrize(("rule", "fault"), OF_PROCESSES, ids=[fault for _, fault in OF_PROCESSES])
def test_driver_notices_every_fault_of_processes(rule: Rule, fault: str) -> None:
    wrong = [sys.executable, str(HERE / "conformance" / "wrong_worker.py"), fault, APP]
    assert any(failures(wrong, [name for name in CHECKS if rule.has(name)])), f"{fault} was not noticed"


def test_driver_passes_the_wrong_worker_without_a_fault() -> None:
    wrong = [sys.executable, str(HERE / "conformance" / "wrong_worker.py"), "none", APP]
    names = [name for name in CHECKS if name.startswith(("health:", "in flight: the file names"))]
    assert [*failures(wrong, names)] == ["", ""]


Driven = Callable[..., tuple[int, str]]


@pytest.fixture
def driven(capsys: pytest.CaptureFixture[str]) -> Driven:
    """Return what runs the driver in this process; it gives exit status and report."""

    def run(command: list[str], *options: str) -> tuple[int, str]:
        return main(["--worker", shlex.join(command), *options]), capsys.readouterr().out

    return run


def test_driver_reports_a_worker_that_does_not_start(driven: Driven) -> None:
    status, report = driven([sys.executable, "-S", "-c", "import sys; sys.exit('no such application')"])
    assert status == 1
    assert "FAILED  start" in report
    assert "no such application" in report


def test_driver_shows_the_failure_of_a_worker_that_does_not_start(driven: Driven, tmp_path: Path) -> None:
    app = tmp_path / "broken_app.py"
    app.write_text("def application_setup(args):\n    raise ValueError('no setup today')\n", encoding="utf-8")
    status, report = driven([sys.executable, "-m", "wallaroo.worker", str(app)])
    assert status == 1
    assert "failure.json" in report
    assert '"T217"' in report
    assert "no setup today" in report


def test_driver_shows_both_sides(driven: Driven) -> None:
    wrong = [sys.executable, str(HERE / "conformance" / "wrong_worker.py"), "accepts-any-hash", APP]
    _, report = driven(wrong, "--only", "init: another interface hash")
    assert "got '', expected 'W403' (handshake.py:" in report


def test_driver_leaves_out_what_it_is_told(driven: Driven) -> None:
    status, report = driven(PYTHON_WORKER, "--only", "fault: ", "--without", "kill_points")
    assert status == 0
    assert "left out fault: a kill point that is reached ends the process once: --without kill_points" in report
    assert "0 of 0 checks passed" in report


def test_driver_fails_when_no_check_is_meant(driven: Driven) -> None:
    status, report = driven(PYTHON_WORKER, "--only", "no such check")
    assert status == 1
    assert "no check's name contains 'no such check'" in report


def test_driver_needs_grpcio_and_protobuf_alone(tmp_path: Path) -> None:
    """A Python without any package but these two, and what grpcio itself needs, runs the driver."""
    import google.protobuf
    import grpc
    import typing_extensions

    (tmp_path / "google").mkdir()
    (tmp_path / "google" / "protobuf").symlink_to(Path(google.protobuf.__file__).parent)
    (tmp_path / "grpc").symlink_to(Path(grpc.__file__).parent)
    (tmp_path / "typing_extensions.py").symlink_to(typing_extensions.__file__)
    extra = Path(google.protobuf.__file__).parents[1] / "_upb"
    if extra.exists():
        (tmp_path / "google" / "_upb").symlink_to(extra)
    start = f"import runpy, sys; sys.path[:0] = [{str(tmp_path)!r}, {str(HERE)!r}]; sys.argv[0] = 'conformance'; "
    start += "runpy.run_module('conformance', run_name='__main__')"
    done = drive(PYTHON_WORKER, "init:", [sys.executable, "-I", "-S", "-c", start])
    assert done.returncode == 0, done.stdout + done.stderr
    assert " of 6 checks passed" in done.stdout
