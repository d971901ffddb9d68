"""`wallaroo backup` and `restore`: drawn histories go on from a copy with the exact output; parts are refused."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from support.history import STEPS, History, resumed
from support.manifest import change_manifest
from support.small_checkpoint import files_of
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.maintenance import backup as module
from wallaroo_runtime.maintenance.backup import back_up, restore
from wallaroo_runtime.system.process import process_start_time


@pytest.mark.parametrize("seed", range(6))
def test_a_copy_goes_on_with_the_exact_output(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    history = History(tmp_path / "main", draw)
    history.go_on(draw.randint(0, 4), draw.randint(0, len(STEPS)))
    sent, got = list(history.sent), list(history.got)
    done = back_up(history.path, tmp_path / "backups" / "one")
    history.go_on(draw.randint(0, 3), draw.randint(0, len(STEPS)))
    if draw.randint(0, 1):
        place = tmp_path / "elsewhere"
        restored = restore(done.backup, place)
    else:
        place = history.path
        shutil.rmtree(place)
        restored = restore(done.backup)
    assert (restored.checkpoint, restored.files, restored.bytes) == (place, done.files, done.bytes)
    rest, repairs = resumed(place)
    assert repairs == []
    assert got + rest == sent
    assert [entry.name for entry in (tmp_path / "backups").iterdir()] == ["one"]


@pytest.fixture
def history(tmp_path: Path) -> History:
    made = History(tmp_path / "main", random.Random(5))
    made.go_on(3, 3)
    (made.path / "logs" / "spark.log").write_text("text")
    (made.path / "driver.json").write_text("{}")
    return made


def codes(call: Callable[[], object]) -> str:
    with pytest.raises(RunError) as caught:
        call()
    return str(caught.value)


def test_what_belongs_together_is_copied_and_logs_are_not(history: History, tmp_path: Path) -> None:
    os.mkfifo(history.path / "gateway-pipe")
    back_up(history.path, tmp_path / "copy")
    found = {
        str(path.relative_to(tmp_path / "copy" / "files"))
        for path in (tmp_path / "copy").rglob("*")
        if path.is_file() and path.name != "backup.json"
    }
    wanted = {name for name in files_of(history.path) if not name.startswith(("logs/", "driver.json"))}
    assert found >= wanted
    assert not any(name.startswith(("logs", "driver")) for name in found)
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("gone", ["spark", "journal"])
def test_what_the_next_run_would_refuse_is_not_copied(gone: str, history: History, tmp_path: Path) -> None:
    shutil.rmtree(history.path / (read_manifest(history.path).spark if gone == "spark" else gone))
    with pytest.raises(RunError, match="R698 "):
        back_up(history.path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_every_damage_of_a_copy_is_refused(history: History, tmp_path: Path) -> None:
    copy = back_up(history.path, tmp_path / "copy").backup
    names = sorted(path for path in (copy / "files").rglob("*") if path.is_file())
    for number, path in enumerate(names):
        before = path.read_bytes()
        if number % 3 == 0:
            path.unlink()
        else:
            path.write_bytes(before[:-1] if before and number % 3 == 1 else before + b"x")
        message = codes(lambda: restore(copy, tmp_path / "new"))
        assert message.startswith(f"R698 backup {copy} is damaged; {path.relative_to(copy / 'files')} is ")
        assert not (tmp_path / "new").exists()
        path.write_bytes(before)
    (copy / "files" / "more").write_text("")
    assert "more is not in its list" in codes(lambda: restore(copy, tmp_path / "new"))
    (copy / "files" / "more").unlink()
    listed = json.loads((copy / "backup.json").read_text())
    (copy / "backup.json").write_text(json.dumps({**listed, "files": {"../out": {}}}))
    assert "a name outside of it" in codes(lambda: restore(copy, tmp_path / "new"))
    (copy / "backup.json").write_text(json.dumps({**listed, "version": 2}))
    assert "its version is 2; this release reads 1" in codes(lambda: restore(copy, tmp_path / "new"))
    for wrong in ({"files": ["journal/head"]}, {"checkpoint": 7}, {"spark": None}):
        (copy / "backup.json").write_text(json.dumps({**listed, **wrong}))
        assert codes(lambda: restore(copy)).startswith("R698"), wrong
    (copy / "backup.json").write_text("{")
    assert codes(lambda: restore(copy, tmp_path / "new")).startswith("R698")
    for other in (tmp_path / "no", history.path):
        assert codes(lambda: restore(other, tmp_path / "new")).startswith(  # noqa: B023
            f"R616 {other} cannot be copied; there is no backup at this path\n  fix: give the directory of one"
        )
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["copy", "main"]


def test_a_checkpoint_that_is_in_use_is_refused(history: History, tmp_path: Path) -> None:
    place = HeldDirectory.take(history.path)
    assert codes(lambda: back_up(history.path, tmp_path / "copy")).startswith("R610")
    place.release()
    process = {"pid": os.getpid(), "start_time": process_start_time(os.getpid())}
    (history.path / "egress.json").write_text(json.dumps(process))
    told = codes(lambda: back_up(history.path, tmp_path / "copy"))
    assert told.startswith(f"R616 {history.path} cannot be copied; its egress, process {os.getpid()}, still runs")
    (history.path / "egress.json").write_text(json.dumps({**process, "start_time": 1}))
    change_manifest(history.path, services={"gateway": "1", "egress": "2"})
    told = codes(lambda: back_up(history.path, tmp_path / "copy"))
    assert "part of it lies at remote services (egress and the gateway)" in told
    assert not (tmp_path / "copy").exists()


def test_nothing_is_put_over_something(history: History, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("text")
    assert f"{tmp_path / 'full'} is there already" in codes(lambda: back_up(history.path, tmp_path / "full"))
    copy = back_up(history.path, tmp_path / "copy").backup
    told = codes(lambda: restore(copy, tmp_path / "full"))
    assert told.startswith(f"R616 {copy} cannot be copied; {tmp_path / 'full'} is there already"), told
    assert "is within it" in codes(lambda: back_up(history.path, history.path / "backup"))
    assert f"{history.path} is there already" in codes(lambda: restore(tmp_path / "copy"))
    (tmp_path / "empty").mkdir()
    assert restore(tmp_path / "copy", tmp_path / "empty").files


def test_a_copy_that_fails_leaves_nothing(history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy, count = shutil.copy2, 0

    def fails(source: Path, target: Path) -> None:
        nonlocal count
        count += 1
        if count == 3:
            raise OSError(28, "No space left on device", str(source))  # as the system reports it
        copy(source, target)

    monkeypatch.setattr(module.shutil, "copy2", fails)
    said = codes(lambda: back_up(history.path, tmp_path / "copy"))
    assert said.startswith(f"R626 the disk of {tmp_path / 'copy'} takes nothing more; No space left on device\n"), said
    assert "fix: free some space, and repeat it; a run continues" in said
    assert [entry.name for entry in tmp_path.iterdir()] == ["main"]
    monkeypatch.undo()
    back_up(history.path, tmp_path / "copy")


def test_what_a_killed_command_has_left_is_removed(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object, **__: object) -> None:
        raise Killed

    copy = tmp_path / "backups" / "one"
    copy.parent.mkdir()
    for command in (lambda: back_up(history.path, copy), lambda: restore(copy, tmp_path / "new")):
        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(module.os, "sync", killed)
            patch.setattr(module.shutil, "rmtree", lambda *_, **__: None)
            command()
        command()
    assert [entry.name for entry in (tmp_path / "backups").iterdir()] == ["one"]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["backups", "main", "new"]
    assert sorted(entry.name for entry in copy.iterdir()) == ["backup.json", "files"]
    left_out = {"driver.json", "logs/spark.log"}
    assert {*files_of(tmp_path / "new")} == {*files_of(history.path)} - left_out


def test_two_commands_do_not_make_one_copy(history: History, tmp_path: Path) -> None:
    with module._made(tmp_path / "copy", history.path):
        assert codes(lambda: back_up(history.path, tmp_path / "copy")).startswith("R610")
    assert list((tmp_path / "copy").iterdir()) == []


def test_the_records_of_spark_name_the_new_place(history: History, tmp_path: Path) -> None:
    record = history.path / "spark" / "state" / "0" / "_metadata" / "v2" / "0"
    record.parent.mkdir(parents=True)
    names = [f"file:{history.path}/spark/state/0/_stateSchema/default/1"]
    record.write_text("v2\n" + json.dumps({"stateStoreInfo": [{"stateSchemaFilePaths": names}]}))
    copy = back_up(history.path, tmp_path / "copy").backup
    place = restore(copy, tmp_path / "new").checkpoint
    _, text = (place / record.relative_to(history.path)).read_text().split("\n", 1)
    (store,) = json.loads(text)["stateStoreInfo"]
    assert store["stateSchemaFilePaths"] == [f"file:{place}/spark/state/0/_stateSchema/default/1"]


def test_the_commands(history: History, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backup", str(history.path), str(tmp_path / "copy")]) == 0
    assert capsys.readouterr().out.startswith(f"backed up {history.path} to {tmp_path / 'copy'}: ")
    assert main(["restore", str(tmp_path / "copy"), str(tmp_path / "new"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told) == {"time", "checkpoint", "backup", "files", "bytes"}
    assert told["checkpoint"] == str(tmp_path / "new")
    assert main(["backup", "hdfs://name/checkpoint", str(tmp_path / "other")]) == 2
    assert capsys.readouterr().err.startswith("R608 hdfs://name/checkpoint is at a URL")
