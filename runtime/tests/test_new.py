"""`wallaroo new`: what it writes passes its own test and can be run, whatever the directory is called."""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.run import with_archive
from wallaroo_runtime.cli import main as cli
from wallaroo_runtime.cli.new import next_command, write
from wallaroo_runtime.errors import RunError

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
VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid" / "word_count.json"
PYTEST = (sys.executable, "-m", "pytest", "-q")
LETTERS = st.characters(codec="utf-8", exclude_characters="/", exclude_categories=["Cc"])


def is_name(text: str) -> bool:
    """Say whether a directory may have this name."""
    return text.strip(".") != "" and len(text.encode()) < 200


def test_what_to_do_next_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "python", str(tmp_path / "counter")]) == 0
    said = capsys.readouterr().err
    command = next_command(tmp_path / "counter", "python")
    assert said == f"next:\n  {command}\n" and command.startswith(f"cd {tmp_path}/counter && ")
    readme = (tmp_path / "counter" / "README.md").read_text()
    assert readme.startswith("# counter\n") and "wallaroo run app.py" in readme
    assert (tmp_path / "counter" / ".gitignore").read_text() == "__pycache__/\n.venv/\n"


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(st.lists(st.text(LETTERS | st.sampled_from("-~$'\" "), min_size=1, max_size=9).filter(is_name), max_size=3))
@example(["-"]).via("that is where the shell was before")
@example(["--", "Ä B"])
@example(["~root"])
@example(["it's $HOME `x` !!"])
@example(["\\0"]).via("`echo` of dash")
def test_what_is_printed_to_do_next_can_be_pasted(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        directory = Path(*names)
        write("python", directory)
        (stub := Path(folder) / ".stub" / "wallaroo").parent.mkdir()
        stub.write_text('#!/bin/sh\nprintf "%s in %s.\\n" "$*" "$(pwd -P)"')
        stub.chmod(0o700)
        patch.setenv("PATH", f"{stub.parent}:{os.environ['PATH']}")
        command, place = next_command(directory, "python"), directory.resolve()
        done = subprocess.run(["sh", "-c", command], capture_output=True, timeout=300, check=True)
    assert os.fsdecode(done.stdout) == f"test . in {place}.\nrun app.py --engine memory in {place}.\n"


def test_a_command_that_is_not_on_the_path_is_printed_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    own = Path(sys.executable).with_name("wallaroo")
    assert next_command(Path(), "python") == f"{own} test . && {own} run app.py --engine memory"


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2J", "a\tb"])
def test_a_name_that_moves_a_cursor_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="its name has control characters"):
        write("go", tmp_path / name)
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["go", pytest.param("mixed", marks=pytest.mark.long)])
def test_a_project_in_a_module_of_the_user_s(language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "go.mod").write_text("module example.com/mine\n\ngo 1.24.0\n")
    ran(("git", "init", "--quiet"), tmp_path)
    assert cli.main(["new", language, str(tmp_path / "first")]) == 0
    assert f"\n{tmp_path}/go.work\n" in capsys.readouterr().out
    ran((sys.executable, "-m", "wallaroo_runtime.cli.start", "test", "."), tmp_path / "first")
    ran(("git", "add", "--force", "go.work"), tmp_path)
    assert cli.main(["new", language, str(tmp_path / "second")]) == 2
    assert "R780" in capsys.readouterr().err
    assert not [*(tmp_path / "second").iterdir()]


@settings(deadline=None, max_examples=20)
@given(st.text(LETTERS, min_size=1, max_size=20).filter(is_name))
def test_any_directory_gives_a_program_that_python_reads(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / name
        assert cli.main(["new", "python", "--json", str(directory)]) == 0
        compile((directory / "app.py").read_text(encoding="utf-8"), "app.py", "exec")


@pytest.mark.slow
def test_what_is_there_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").write_text("kept")
    assert cli.main(["new", "go", str(tmp_path)]) == 2
    assert cli.main(["new", "go", str(tmp_path / "mine")]) == 2
    assert capsys.readouterr().err.count("R734") == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("language", ["python", "go", "mixed"])
def test_a_repository_without_files_counts_as_empty(language: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    written = write(language, tmp_path)
    assert (tmp_path / ".git" / "HEAD").read_text() == "ref: refs/heads/main\n"
    assert {path.parts[len(tmp_path.parts)] for path in written} | {".git"} == {
        path.name for path in tmp_path.iterdir()
    }
    with pytest.raises(RunError, match="R734 .* cannot become a project; it is not empty"):
        write(language, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["go", "mixed"])
def test_a_go_that_is_too_old_leaves_no_half_project(
    language: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "go").write_text("#!/bin/sh\necho go1.23.12\n")
    (tmp_path / "go").chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        assert cli.main(["new", language, str(tmp_path / "counter")]) == 4
    assert capsys.readouterr().err == (
        f"W408 go cannot be used; {tmp_path}/go is go1.23.12, too old\n"
        "  fix: install Go 1.24 or newer and put it on PATH\n"
    )
    assert not (tmp_path / "counter").exists()


def test_help_says_what_json_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "--help"]) == 0
    assert "the files as a JSON object" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "command", "form"),
    [
        ("python", PYTEST, []),
        ("go", GO_TEST, []),
        ("mixed", PYTEST, []),
        ("python", PYTEST, ["--kafka"]),
        ("go", GO_TEST, ["--kafka"]),
    ],
)
def test_a_project_passes_its_test_and_what_is_printed_to_do_next(
    language: str,
    command: Sequence[str],
    form: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "-Not there" / "my Äpp's"
    assert cli.main(["new", *form, language, "--", str(project.relative_to(tmp_path))]) == 0
    (following,) = capsys.readouterr().err.partition("next:\n")[2].splitlines()
    assert '"my Äpp-s"' in "".join(path.read_text() for path in project.glob("*.[pg][yo]"))
    ran(("git", "init", "--quiet"), project)
    ran(command, project)
    if language != "python":
        ran(("go", "build"), project / ("words" if language == "mixed" else ""))
    ran(("git", "add", "--all"), project)
    kinds = {Path(name).suffix or Path(name).name for name in ran(("git", "ls-files"), project).split()}
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    emitted = following.replace(" run ", " emit ").replace(" --engine memory", "")
    printed = ran(("sh", "-c", emitted), tmp_path)
    assert printed.startswith("ok    cases/first: ") and "\n1 passed\n{" in printed
    assert kinds <= {".go", ".py", ".txt", ".mod", ".md", ".gitignore", ".toml"}, kinds


ALERTS = """+--------+------+-----+-------------------+
|customer|amount|usual|                 at|
+--------+------+-----+-------------------+
|     ann|  61.0| 20.0|2026-01-05 00:00:00|
+--------+------+-----+-------------------+
"""


@pytest.mark.jvm
@pytest.mark.parametrize("language", [[], pytest.param(["go"], marks=pytest.mark.long)])
def test_a_project_with_a_job_passes_its_test_and_runs(
    language: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    for name, value in with_archive(tmp_path / "logs").items():
        monkeypatch.setenv(name, value)
    assert cli.main(["new", "--pyspark", *language, str(tmp_path / "totals")]) == 0
    (command,) = capsys.readouterr().err.partition("next:\n")[2].splitlines()
    said = ran(("sh", "-c", command), tmp_path)
    assert ("ok " if language else "2 passed") in said and said.endswith(ALERTS + "\n")
    names = {path.name for path in (tmp_path / "totals").iterdir()}
    assert {"README.md", "job.py", ".gitignore"} < names and "cases" not in names


@pytest.mark.parametrize("arguments", [["python"], ["--kafka", "go"], ["--pyspark", "mixed"]])
def test_a_language_without_a_directory(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", *arguments]) == 2
    said = f"R608 new has no directory\n  fix: give one, e.g. `wallaroo new {' '.join(arguments)} shop`\n"
    assert capsys.readouterr().err == said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--pyspark", "mixed"], "there is no project with --pyspark and mixed"),
        (["--kafka", "mixed"], "there is no project with --kafka and mixed"),
        (["--kafka"], "new has no language"),
        ([], "new has no language"),
    ],
)
def test_projects_that_are_not_known(
    arguments: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["new", *arguments, str(tmp_path / "totals")]) == 2
    assert f"R608 {reason}\n" in capsys.readouterr().err
    assert not (tmp_path / "totals").exists()


@pytest.mark.slow
@pytest.mark.parametrize("count", [5, pytest.param(len(NAMES), marks=pytest.mark.long)])
def test_any_directory_is_a_go_program(count: int, tmp_path: Path) -> None:
    for name in {*random.sample(NAMES, count), "log"}:
        assert cli.main(["new", "go", str(tmp_path / name)]) == 0
        ran(("go", "list", "-deps", "-test", "./..."), tmp_path / name)
    ran(GO_TEST, tmp_path / "log")


def ran(command: Sequence[str], directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{directory.name}: {done.stdout}{done.stderr}"
    return done.stdout
