"""`wallaroo gc`: drawn directories against a plain rule; what is in use stays."""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo_runtime.cli.main import main
from wallaroo_runtime.maintenance.gc import find_unused, held
from wallaroo_runtime.system.process import process_start_time

DAY_S = 86_400
KINDS = ("checkpoint", "leftover", "broker", "crash", "note", "jars", "slot", "binary", "classes")
USES = ("nobody", "lock", "process")
ENTRIES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(USES), st.sampled_from((0.0, 0.5, 3.0, 40.0))), max_size=8
)


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """Give directories for state and caches."""
    root = tmp_path_factory.mktemp("gc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(root / "state"))
        patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
        yield root / "state" / "wallaroo", root / "cache" / "wallaroo"


def make(homes: tuple[Path, Path], number: int, kind: str, use: str, stack: ExitStack) -> tuple[Path, bool]:
    """Make something; returns its path, and whether somebody uses it."""
    state, cache = homes
    name = f"{kind}-{number}"
    places = {"crash": state / "crashes" / f"{name}.log", "note": state / "chosen" / f"{name}.json"}
    places |= {each: cache / "go" / each / name for each in ("binary", "slot")}
    places |= {"classes": cache / "classes" / f"{name}.jsa"}
    path = places.get(kind, (cache if kind == "jars" else state) / name)
    file = path if kind in ("crash", "note", "classes") else path / "file"
    if kind == "leftover":
        file = path / "logs" / "spark.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(bytes(1000))
    if kind in ("checkpoint", "leftover"):
        (path / "driver.lock").touch()
    if kind == "checkpoint":
        (path / "application.json").write_text("{}")
    return path, used(path, file, kind, use, stack)


def used(path: Path, file: Path, kind: str, use: str, stack: ExitStack) -> bool:
    """Let somebody use it, if that is possible; returns whether it counts."""
    is_state = kind in ("checkpoint", "leftover")
    if use == "lock" and is_state:
        held = stack.enter_context((path / "driver.lock").open("r+"))
        fcntl.flock(held, fcntl.LOCK_EX)
        return True
    if use == "process" and kind == "checkpoint":
        process = {"pid": os.getpid(), "start_time": process_start_time(os.getpid())}
        (path / "gateway.json").write_text(json.dumps(process))
        return True
    return False


def age(path: Path, days: float) -> None:
    at = time.time() - days * DAY_S
    for entry in (*path.rglob("*"), path):
        os.utime(entry, (at, at))


def collected(*options: str) -> dict[str, dict[str, Any]]:
    """Return what the command prints, by path."""
    with redirect_stdout(StringIO()) as out:
        assert main(["gc", "--json", *options]) == 0
    rows = [json.loads(line) for line in out.getvalue().splitlines()]
    assert all("time" in row for row in rows)
    return {row["path"]: row for row in rows}


@settings(max_examples=12, deadline=None)
@given(drawn=ENTRIES, days=st.sampled_from((1.0, 30.0)), checkpoints=st.booleans())
def test_only_what_is_unused_goes(
    homes: tuple[Path, Path],
    drawn: list[tuple[str, str, float]],
    days: float,
    checkpoints: bool,
) -> None:
    for home in homes:
        shutil.rmtree(home, ignore_errors=True)
    with ExitStack() as stack:
        unused, all_of_it = set(), []
        for number, (kind, use, old) in enumerate(drawn):
            path, is_used = make(homes, number, kind, use, stack)
            age(path, old)
            all_of_it.append(path)
            may_go = old >= days if kind != "leftover" else old > 0
            is_kind = kind != "broker" and (kind != "checkpoint" or checkpoints)
            if may_go and is_kind and not is_used:
                unused.add(str(path))
        options = ["--older-than", str(days), *(["--checkpoints"] if checkpoints else [])]
        would = collected(*options, "--dry-run")
        assert set(would) == unused
        assert not any(row["removed"] for row in would.values())
        assert all(path.exists() for path in all_of_it)
        done = collected(*options)
        assert set(done) == unused
        assert all(row["removed"] and row["bytes"] >= 1000 for row in done.values())
        assert {str(path) for path in all_of_it if not path.exists()} == unused
        assert collected(*options) == {}


@settings(max_examples=12, deadline=None)
@given(
    drawn=st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(("nobody", "run", "read", "gone"))), max_size=8)
)
def test_what_is_used_after_it_was_found_stays(homes: tuple[Path, Path], drawn: list[tuple[str, str]]) -> None:
    for home in homes:
        shutil.rmtree(home, ignore_errors=True)
    uses = {}
    for number, (kind, use) in enumerate(drawn):
        path, _ = make(homes, number, kind, "nobody", ExitStack())
        age(path, 40)
        uses[path] = use
    found = list(find_unused(30, checkpoints=True))
    assert {entry.path for entry in found} == {path for path in uses if not path.name.startswith("broker")}
    for entry in found:
        file = next((each for each in entry.path.rglob("*") if each.is_file()), entry.path)
        if uses[entry.path] == "run" and entry.path.is_dir():
            (entry.path / "driver.lock").write_text("1\n")  # as a run does that has ended meanwhile
            (entry.path / "application.json").write_text("{}")
        elif uses[entry.path] == "gone":
            shutil.rmtree(entry.path) if entry.path.is_dir() else entry.path.unlink()
        elif uses[entry.path] != "nobody":
            os.utime(file, (time.time(), file.lstat().st_mtime))
    for entry in found:
        with held(entry) as is_free:
            assert is_free == (uses[entry.path] == "nobody"), entry


def test_a_checkpoint_whose_processes_are_gone_is_old(homes: tuple[Path, Path]) -> None:
    for home in homes:
        shutil.rmtree(home, ignore_errors=True)
    path, _ = make(homes, 1, "checkpoint", "nobody", ExitStack())
    (path / "gateway.json").write_text('{"pid": 1, "start_time": 1}')
    age(path, 40)
    assert set(collected("--checkpoints", "--dry-run")) == set(collected("--checkpoints")) == {str(path)}


def test_the_lock_of_a_build(homes: tuple[Path, Path]) -> None:
    state, cache = homes
    for home in homes:
        shutil.rmtree(home, ignore_errors=True)
    binary = cache / "go" / "binary" / "1" / "app"
    binary.parent.mkdir(parents=True)
    binary.write_bytes(bytes(10))
    age(cache, 50)
    with (cache / "go" / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        assert collected() == {}, "a build goes on"
    assert set(collected()) == {str(binary.parent)}


def test_a_link_is_removed_and_not_followed(homes: tuple[Path, Path], tmp_path: Path) -> None:
    _, cache = homes
    (tmp_path / "mine").write_text("text")
    cache.mkdir(parents=True, exist_ok=True)
    (cache / "old").symlink_to(tmp_path)
    os.utime(cache / "old", (0, 0), follow_symlinks=False)
    assert str(cache / "old") in collected()
    assert (tmp_path / "mine").read_text() == "text"


def test_for_people(homes: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    state, _ = homes
    make(homes, 1, "leftover", "nobody", ExitStack())
    age(state / "leftover-1", 1)
    assert main(["gc", "--dry-run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["bytes", "kind", "why", "path"]
    assert lines[1].split()[1:3] == ["leftover", "its"]
    assert lines[-1].endswith("would be freed")


@pytest.mark.parametrize("age", ["x", "-1", "inf", "nan"])
def test_an_age_that_is_no_number(age: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gc", "--older-than", age]) == 2
    assert f"--older-than: '{age}' is no number of days; write e.g. 30\n" in capsys.readouterr().err


def test_what_cannot_be_removed_is_told(
    homes: tuple[Path, Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(homes[0], ignore_errors=True)
    path, _ = make(homes, 2, "leftover", "nobody", ExitStack())
    age(path, 1)

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")  # as root the kernel refuses nothing

    monkeypatch.setattr(shutil, "rmtree", refuse)
    assert main(["gc"]) == 1
    assert f"cannot be removed; {path}: Permission denied" in capsys.readouterr().err


def test_what_a_killed_gc_has_left_is_removed_by_the_next(homes: tuple[Path, Path]) -> None:
    for home in homes:
        shutil.rmtree(home, ignore_errors=True)
    path, _ = make(homes, 0, "checkpoint", "nobody", ExitStack())
    (path / "journal").mkdir()
    (path / "journal" / "more").write_bytes(bytes(1000))
    age(path, 40)
    names = set[str]()

    def killed(place: Path) -> None:
        (place / "application.json").unlink()
        names.add(place.name)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        assert main(["gc", "--checkpoints"]) == 130
    (left,) = (homes[0] / name for name in names)
    assert collected() == {}, "another gc may still be removing it"
    age(left, 1)
    assert set(collected()) == {str(left)}
    assert not left.exists()
