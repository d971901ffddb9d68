"""`wallaroo new`: what it writes passes its own test and can be run, whatever the directory is called."""

import configparser
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import pytest
from editor import WAIT_S, Editor
from hypothesis import given, settings
from hypothesis import strategies as st

from support.kafka import free_port
from wallaroo_runtime.cli import main as cli
from wallaroo_runtime.cli.editor import PYTHON
from wallaroo_runtime.cli.new import write
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
LETTERS = st.characters(codec="utf-8", exclude_characters="/\0")


def test_what_to_do_next_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["new", "python", str(tmp_path / "counter")]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == f"next: cd {tmp_path}/counter && python -m pytest && wallaroo run app.py"
    readme = (tmp_path / "counter" / "README.md").read_text()
    assert readme.startswith("# counter\n") and "wallaroo run app.py" in readme
    assert (tmp_path / "counter" / ".gitignore").read_text() == "__pycache__/\n.venv/\n"


@settings(deadline=None, max_examples=20)
@given(st.text(LETTERS, min_size=1, max_size=20).filter(lambda name: name.strip(".") and len(name.encode()) < 200))
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
@pytest.mark.parametrize(("language", "command"), [("python", PYTEST), ("go", GO_TEST), ("mixed", PYTEST)])
def test_the_test_of_a_project_passes(language: str, command: Sequence[str], tmp_path: Path) -> None:
    assert cli.main(["new", language, str(tmp_path / "counter")]) == 0
    ran(("git", "init", "--quiet"), tmp_path / "counter")
    ran(command, tmp_path / "counter")
    if language != "python":
        ran(("go", "build"), tmp_path / "counter" / ("words" if language == "mixed" else ""))
    ran(("git", "add", "--all"), tmp_path / "counter")
    names = ran(("git", "ls-files"), tmp_path / "counter").split()
    kinds = {Path(name).suffix or Path(name).name for name in names}
    assert ran((sys.executable, "-m", "wallaroo_runtime.cli.driver", "test", "."), tmp_path / "counter").endswith(
        "1 passed\n"
    )
    assert kinds <= {".go", ".py", ".txt", ".mod", ".md", ".gitignore", ".json", ".toml", ".editorconfig"}, names


@pytest.mark.parametrize("language", ["python", "go", "mixed"])
def test_editors_find_what_they_read(language: str, tmp_path: Path) -> None:
    write(language, folder := tmp_path / "counter")
    tasks = {task["label"] for task in read(folder, "tasks.json")["tasks"]}
    launch = read(folder, "launch.json")["configurations"]
    assert {name for each in launch if (name := each.get("preLaunchTask"))} == tasks
    kinds = {each["type"] for each in launch}
    extensions = read(folder, "extensions.json")["recommendations"]
    of_kind = {"debugpy": "ms-python.debugpy", "go": "golang.go"}
    assert {of_kind[kind] for kind in kinds} <= set(extensions)
    assert ("golang.go" in extensions) == (language != "python")
    assert ("[go]" in read(folder, "settings.json")) == (language != "python")
    if language != "go":
        assert "tool" in tomllib.loads((folder / "pyproject.toml").read_text())
    configparser.ConfigParser().read_string("[all]\n" + (folder / ".editorconfig").read_text())


@pytest.mark.jvm
@pytest.mark.long
def test_a_breakpoint_in_an_editor_stops_a_run(tmp_path: Path) -> None:
    write("python", folder := tmp_path / "counter")
    (task,) = read(folder, "tasks.json")["tasks"]
    command = [sys.executable if part == PYTHON else part for part in (task["command"], *task["args"])]
    source, sink, port = (str(free_port()) for _ in range(3))
    app = folder / "app.py"
    app.write_text(app.read_text().replace("7010", source).replace("7002", sink))
    (line,) = [number for number, text in enumerate(app.read_text().splitlines(), 1) if "total.count += 1" in text]
    (configuration,) = [each for each in read(folder, "launch.json")["configurations"] if "connect" in each]
    assert command[-1] == str(configuration["connect"]["port"])
    command[-1], configuration["connect"]["port"] = port, int(port)
    command += ["--checkpoint", str(tmp_path / "checkpoint")]
    with (
        socket.create_server(("127.0.0.1", int(sink))) as listener,
        subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        ) as run,
    ):
        assert run.stdout
        said = b""
        ready = task["problemMatcher"]["background"]["endsPattern"].encode()
        while ready not in said:
            said += (text := run.stdout.readline())
            assert text, said
        editor = Editor(configuration)
        editor.stop_at(str(app), line)
        while b"initialized" not in said:
            said += (text := run.stdout.readline())
            assert text, said
        with socket.create_connection(("127.0.0.1", int(source))) as sender:
            sender.sendall(b"\0\0\0\5hello")
        assert editor.value("word + '!'") == "'hello!'"
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(WAIT_S)
            assert connection.recv(100) == b"hello 1\n"
        editor.leave()
        os.killpg(run.pid, signal.SIGINT)
        said += run.communicate(timeout=WAIT_S)[0]
    assert run.returncode == 0, said
    assert b"frozen" not in said, "debugpy warns that breakpoints may be missed"


@pytest.mark.slow
def test_a_port_for_an_editor_that_cannot_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "app.py", "--debug-port", "70000"]) == 2
    assert "--debug-port 70000 is no port" in capsys.readouterr().err
    worker = tmp_path / "worker"
    (tmp_path / "result").write_text(json.dumps({"topology": json.loads(VALID.read_text())}))
    worker.write_text(f'#!/bin/sh\ncp {tmp_path}/result "$WALLAROO_EMIT_FILE"\n')
    worker.chmod(0o700)
    assert cli.main(["run", str(worker), "--debug-port", "5678"]) == 2
    assert "--debug-port is for programs in Python" in capsys.readouterr().err


@pytest.mark.slow
def test_any_directory_is_a_go_program(tmp_path: Path) -> None:
    for name in NAMES:
        assert cli.main(["new", "go", str(tmp_path / name)]) == 0
        ran(("go", "list", "-deps", "-test", "./..."), tmp_path / name)
    ran(GO_TEST, tmp_path / "log")


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / ".vscode" / name).read_text())


def ran(command: Sequence[str], directory: Path) -> str:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{directory.name}: {done.stdout}{done.stderr}"
    return done.stdout
