"""The cache of worker binaries: what is kept, and what goes when there is too much."""

import shutil
import subprocess
from pathlib import Path

import pytest

from wallaroo_runtime.program.cache import cached

SIZE = 1000


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "wallaroo" / "go"


def build(place: str, content: str, bound_bytes: int = 100 * SIZE) -> Path:
    return cached(place, "app", lambda path: _write(path, content), bound_bytes)


def _write(path: Path, content: str) -> None:
    path.write_text(f"{content:{SIZE}}")


def test_a_binary_has_the_name_of_its_content() -> None:
    first = build("here", "one")
    assert build("there", "one") == build("here", "one") == first
    second = build("here", "two")
    assert second != first
    assert (first.read_text().strip(), second.read_text().strip(), first.name) == ("one", "two", "app")


def test_what_was_used_longest_ago_goes_first(root: Path) -> None:
    bound = 3 * SIZE
    one, two, three = (build(name, name, bound) for name in ("one", "two", "three"))
    assert build("one", "one", bound) == one
    four = build("four", "four", bound)
    assert [each.exists() for each in (one, two, three, four)] == [True, False, True, True]
    assert len({file.stat().st_ino for file in root.rglob("app")}) * SIZE == bound
    assert build("two", "two", bound) == two
    assert two.exists()


def test_a_binary_takes_its_room_once_and_is_never_written_into(root: Path) -> None:
    for _ in range(2):
        first = build("here", "one")
        assert [file.samefile(first) for file in root.rglob("app")] == [True, True]
    assert build("here", "two") != first
    assert first.read_text().strip() == "one"
    assert len(list(root.rglob("*.part"))) == 0


def test_the_last_one_stays_however_small_the_bound_is(root: Path) -> None:
    build("one", "one", 0)
    assert build("two", "two", 0).exists()
    assert len(list(root.rglob("app"))) == 2


@pytest.mark.slow
def test_the_program_of_a_running_process_stays() -> None:
    sleep = shutil.which("sleep")
    assert sleep is not None
    running = cached("sleep", "app", lambda path: shutil.copy(Path(sleep).resolve(), path))
    process = subprocess.Popen(["sleep", "60"], executable=running)
    try:
        build("other", "other", 0)
        assert running.exists()
    finally:
        process.kill()
        process.wait(timeout=300)
    build("other", "other", 0)
    assert not running.exists()


def test_a_compiler_that_fails_leaves_the_cache_usable() -> None:
    def fail(path: Path) -> None:
        raise OSError(path)

    with pytest.raises(OSError, match="app"):
        cached("here", "app", fail)
    assert build("here", "one").exists()
