"""Paths of another user: each command refuses them as R616, and none of them is called damaged or a bug of ours."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.history import History
from support.ordinary import close, ordinary
from wallaroo_runtime.cli.main import COMMANDS, main
from wallaroo_runtime.maintenance.backup import back_up

OF_CHECKPOINTS = (
    *("status {}", "stop {}", "logs {}", "diff {} {}", "visit {} key", "backup {} new"),
    *("state ls {}", "state get {} totals key", "state dump {} totals", "state rescale {} --partitions 2"),
    *("dead-letters ls {}", "dead-letters show {} 1", "dead-letters prune {} --all", "dead-letters replay {} 1"),
)
OF_PROGRAMS = (
    *("run {}", "explain {}", "graph {}", "validate {}", "emit {}", "submit {} --master local", "diff {} {}"),
    *("pack {} -o new.tar.gz", "status {}", "logs {}", "stop {}"),
)
OF_FILES = ("send --host 127.0.0.1:9 --file {}", "complete {}", "restore {} new")
OF_FOLDERS = ("test {}", "build {}", "new python {}/shop")
WITHOUT = {"ps", "doctor", "completion", "gateway", "egress", "broker", "receive", "topics"}  # they read no path


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("places")
    history = History(place / "checkpoint", random.Random(5))
    history.go_on(2, 2)
    back_up(history.path, place / "backup")
    (place / "open").mkdir()
    history = History(place / "open" / "checkpoint", random.Random(5))
    history.go_on(2, 2)
    for name in ("app.py", "app.tar.gz", "app.json", "app.bin", "in/app.py", "in/app.tar.gz", "in/app.json"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("x = 1\n")
    closed = [place / "checkpoint", place / "backup", place / "in", place / "open/checkpoint/application.json"]
    closed += (path for path in place.iterdir() if path.is_file())
    for path in closed:
        close(path)
    yield place
    for path in closed:
        path.chmod(0o700)


def refused(command: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run a command on a path, which it must refuse because it is another user's."""
    with ordinary():
        code = main(command.format(path, path).split())
    said = capsys.readouterr().err
    lines = [line for line in said.splitlines() if line.startswith(("R", "I", "T", "W", "P"))]
    if command.startswith("new"):
        assert lines[0].startswith("R734 "), said
    else:
        assert lines[0].startswith(f"R616 {path}"), said
    assert "Permission denied" in lines[0], said
    assert code == 2


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    yield
    assert not (tmp_path / "state" / "wallaroo" / "crashes").exists()


@pytest.mark.parametrize("command", OF_CHECKPOINTS)
@pytest.mark.parametrize("name", ["checkpoint", "in/checkpoint"])
def test_a_checkpoint_of_another_user(
    command: str, name: str, places: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused(command, places / name, capsys)


@pytest.mark.parametrize("command", [each for each in OF_CHECKPOINTS if not each.startswith(("stop", "logs", "visit"))])
def test_a_file_of_a_checkpoint(command: str, places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(command, places / "open" / "checkpoint", capsys)


@pytest.mark.parametrize("command", OF_PROGRAMS)
@pytest.mark.parametrize("name", ["app.py", "app.tar.gz", "app.json", "app.bin", "in", "in/app.py", "in/app.tar.gz"])
def test_a_program_of_another_user(command: str, name: str, places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(command, places / name, capsys)


@pytest.mark.parametrize("name", ["app.json", "in/app.json", "backup"])
@pytest.mark.parametrize("command", OF_FILES)
def test_a_file_of_another_user(command: str, name: str, places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if (name == "backup") == command.startswith("restore"):
        refused(command, places / name, capsys)


@pytest.mark.parametrize("command", OF_FOLDERS)
def test_a_folder_of_another_user(command: str, places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused(command, places / "in", capsys)


def test_every_command_that_reads_a_path_is_tried() -> None:
    tried = {each.split()[0] for each in (*OF_CHECKPOINTS, *OF_PROGRAMS, *OF_FILES, *OF_FOLDERS)}
    assert tried | WITHOUT == set(COMMANDS)
