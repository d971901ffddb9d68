"""What a command line names: a checkpoint, a program that runs or has run, or the name of a running application."""

import json
import os
import shlex
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from wallaroo_runtime.checkpoint.directory import MANIFEST, default_directory, find_directory
from wallaroo_runtime.checkpoint.registry import registered, supervise
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.app import resolve

APPS = {"shop": "shop/app.py", "shop/app.py": "", "in/go": "in/go/main.go", "shop.tar.gz": "", "shop.json": ""}


def checkpoint_at(path: Path) -> Path:
    """Make what is found as a checkpoint."""
    path.mkdir(parents=True, exist_ok=True)
    (path / MANIFEST).touch()
    return path


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some.sampled_from(sorted(APPS)), some.booleans(), some.booleans(), some.booleans())
def test_a_program_is_that_of_its_runs(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    app: str,
    has_default: bool,
    runs: bool,
    is_named: bool,
) -> None:
    place = tmp_path_factory.mktemp("place")
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "state"))
    for name, file in APPS.items():
        path = place / (file or name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    program = Path(resolve(app).path)
    text = "shop" if is_named else app
    other = checkpoint_at(place / "other")
    wanted = set()
    with ExitStack() as stack:
        if has_default:
            default = checkpoint_at(default_directory("Orders", "python", program))
            wanted |= {default} if Path(resolve(text).path) == program else set()
        if runs:
            stack.enter_context(registered(other, "shop", program))
            wanted |= {other} if text == "shop" or not is_named else set()
        if len(wanted) == 1:
            assert find_directory(text) == wanted.pop()
            return
        with pytest.raises(RunError) as caught:
            find_directory(text)
        assert caught.value.diagnostics[0].code == ("R715" if wanted else "R616")
        assert {*map(Path, caught.value.choices)} == wanted


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(some.sets(some.sampled_from(["a", "b b", "c'", "$d"])))
def test_a_directory_of_checkpoints_is_refused_with_commands_to_paste(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str], names: set[str]
) -> None:
    place = tmp_path_factory.mktemp("place")
    for number, name in enumerate(sorted(names)):
        os.utime(checkpoint_at(place / name) / MANIFEST, (number, number))
    assert main(["state", "ls", str(place), "--json"]) in (1, 2)
    (finding,) = json.loads(capsys.readouterr().err)
    lines = [shlex.split(line) for line in finding["fix"].split("`")[1::2]]
    if names:
        assert lines == [["wallaroo", "state", "ls", str(place / name), "--json"] for name in sorted(names)[::-1]]
    else:
        assert finding["code"] == "R616"


def test_what_runs_is_found_while_its_driver_is_started_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    app, other = tmp_path / "app.py", checkpoint_at(tmp_path / "other")
    app.touch()
    with registered(other, "shop", app):
        supervise(os.getpid())  # it takes over what the driver has registered
        assert find_directory(str(app)) == other
