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
    bound = 6 * SIZE  # three programs, each with what the compiler builds in place and what is run
    one, two, three = (build(name, name, bound) for name in ("one", "two", "three"))
    assert build("one", "one", bound) == one
    four = build("four", "four", bound)
    assert [each.exists() for each in (one, two, three, four)] == [True, False, True, True]
    assert sum(file.stat().st_size for file in root.rglob("app")) == bound
    assert build("two", "two", bound) == two
    assert two.exists()


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
        process.wait(timeout=60)
    build("other", "other", 0)
    assert not running.exists()


def test_a_compiler_that_fails_leaves_the_cache_usable() -> None:
    def fail(path: Path) -> None:
        raise OSError(path)

    with pytest.raises(OSError, match="app"):
        cached("here", "app", fail)
    assert build("here", "one").exists()
