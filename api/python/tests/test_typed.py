"""Types that users' checkers see: programs of every generation are accepted, faults are refused at their line."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = Path(__file__).parent / "typed" / "program.py"
EXAMPLES = sorted([*ROOT.glob("tests/cases/*/app*.py"), *ROOT.glob("examples/tutorial/*/app.py")])
TEMPLATES = ROOT / "runtime" / "src" / "wallaroo_runtime" / "template"
# A cache of its own: `make lint` has other options, and each of the two would drop what the other has cached.
MYPY = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(ROOT / ".mypy_cache" / "users"))
UNTYPED = ("no-untyped-def", "no-untyped-call")


@pytest.fixture(scope="module")
def errors() -> set[tuple[str, int, str]]:
    """Return what one run of mypy finds in all programs: file, line, code."""
    options = ("--explicit-package-bases", "--namespace-packages", "--no-pretty", "--python-version", "3.10")
    command = [*MYPY, *options, *map(str, (PROGRAM, *EXAMPLES))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    found = re.findall(r"^(.+?):(\d+): error: .*\[([a-z-]+)\]$", done.stdout, re.MULTILINE)
    return {(str(ROOT / file), int(line), code) for file, line, code in found}


@pytest.mark.slow
def test_faults_are_refused_and_all_forms_accepted(errors: set[tuple[str, int, str]]) -> None:
    lines = PROGRAM.read_text(encoding="utf-8").splitlines()
    expected = {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}
    assert len(expected) > 40
    assert {line for file, line, _ in errors if file == str(PROGRAM)} == expected


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "mixed"])
def test_a_new_project_is_typed(language: str, tmp_path: Path) -> None:
    for template in TEMPLATES.glob(f"{language}/*.py.template"):
        (tmp_path / template.stem).write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
    command = [*MYPY, "--python-version", "3.10", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 source files" in done.stdout


@pytest.mark.slow
def test_the_examples_are_accepted(errors: set[tuple[str, int, str]]) -> None:
    assert len(EXAMPLES) > 20
    found = {(file, line, code) for file, line, code in errors if file != str(PROGRAM) and code not in UNTYPED}
    # Wallaroo's market spread calls Rejection(*data, ...): mypy cannot know how many values `data` has.
    assert {each for each in found if each[2] != "call-arg"} == set()
