"""`wallaroo new`: what it writes passes its own test and can be run, whatever the directory is called."""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo_runtime.cli import main as cli

# Names that mean something to Go, to a file system or to a shell.
NAMES = [
    *("go", "std", "cmd", "all", "tool", "work", "main", "internal", "vendor", "wallarooapi", "log", "time", "net"),
    *(
        "C",
        "CON",
        "com1.x",
        "-dash",
        ".hidden",
        "my app",
        "1st",
        'quo"te',
        "back\\slash",
        "naïve",
        "日本",
        "{name}",
        "a~1",
    ),
]
GO_TEST = ("go", "test", "./...")
PYTEST = (sys.executable, "-m", "pytest", "-q")
LETTERS = st.characters(codec="utf-8", exclude_characters="/\0")


def test_what_to_do_next_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "python", str(tmp_path / "counter")]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == f"next: cd {tmp_path}/counter && python -m pytest && wallaroo run app.py"
    readme = (tmp_path / "counter" / "README.md").read_text()
    assert readme.startswith("# counter\n") and "wallaroo run app.py" in readme
    assert (tmp_path / "counter" / ".gitignore").read_text() == "__pycache__/\n"


@settings(deadline=None, max_examples=20)
@given(st.text(LETTERS, min_size=1, max_size=20).filter(lambda name: name.strip(".") and len(name.encode()) < 200))
def test_any_directory_gives_a_program_that_python_reads(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / name
        assert cli.main(["new", "python", "--json", str(directory)]) == 0
        compile((directory / "app.py").read_text(encoding="utf-8"), "app.py", "exec")


def test_what_is_there_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("kept")
    assert cli.main(["new", "go", str(tmp_path)]) == 2
    assert cli.main(["new", "go", str(tmp_path / "mine")]) == 2
    assert capsys.readouterr().err.count("R734") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.slow
@pytest.mark.parametrize(("language", "command"), [("python", PYTEST), ("go", GO_TEST), ("mixed", PYTEST)])
def test_the_test_of_a_project_passes(language: str, command: Sequence[str], tmp_path: Path) -> None:
    assert cli.main(["new", language, str(tmp_path / "counter")]) == 0
    ran(("git", "init", "--quiet"), tmp_path / "counter")
    ran(command, tmp_path / "counter")
    if language != "python":
        ran(("go", "build"), tmp_path / "counter" / ("words" if language == "mixed" else ""))
    ran(("git", "add", "--all"), tmp_path / "counter")
    names = ran(("git", "ls-files"), tmp_path / "counter").split()
    assert {Path(name).suffix or Path(name).name for name in names} <= {".go", ".py", ".mod", ".md", ".gitignore"}, (
        names
    )


@pytest.mark.slow
def test_any_directory_is_a_go_program(tmp_path: Path) -> None:
    for name in NAMES:
        assert cli.main(["new", "go", str(tmp_path / name)]) == 0
        ran(("go", "list", "-deps", "-test", "./..."), tmp_path / name)
    ran(GO_TEST, tmp_path / "log")


def ran(command: Sequence[str], directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{directory.name}: {done.stdout}{done.stderr}"
    return done.stdout
