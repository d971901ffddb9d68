"""What makes a start of Spark cheaper: classes that are kept from run to run, and modules that are compiled once."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wallaroo_runtime.spark.settings import interpreter
from wallaroo_runtime.system.class_archive import (
    ABANDONED_S,
    DAY_S,
    KEPT,
    KEPT_OF_A_DAY,
    MAGIC,
    WRITING_S,
    archive_option,
    is_being_made,
)


@pytest.fixture
def classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the directory of the archives, in a cache of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "wallaroo" / "classes"


def left(classes: Path, content: bytes, age_s: float = 0) -> Path:
    """Leave what a run leaves, and return its path."""
    option = archive_option("spark", "4.2")
    assert option.startswith("-XX:ArchiveClassesAtExit=")
    part = Path(option.partition("=")[2])
    assert part.parent == classes and classes.stat().st_mode & 0o777 == 0o700
    part.write_bytes(content)
    os.utime(part, (time.time() - age_s,) * 2)
    return part


def test_the_first_run_leaves_it_and_the_next_ones_use_it(classes: Path) -> None:
    part = left(classes, MAGIC + b"rest")
    options = {archive_option("spark", "4.2") for _ in range(3)}
    (archive,) = classes.iterdir()
    assert options == {f"-XX:SharedArchiveFile={archive}"}
    assert archive == part.with_suffix(".jsa") and archive.read_bytes() == MAGIC + b"rest"


@pytest.mark.parametrize("content", [b"", b"\0" * 100, MAGIC[:2]])
def test_what_is_not_whole_is_never_used_and_goes_when_nobody_writes_it(classes: Path, content: bytes) -> None:
    part = left(classes, content)
    assert is_being_made(archive_option("spark", "4.2")) and part.exists()
    left(classes, content, WRITING_S + 1)
    assert is_being_made(archive_option("spark", "4.2")) and not part.exists()


def test_archives_of_other_versions_go(classes: Path) -> None:
    left(classes, MAGIC)
    for number in range(4):
        other = classes / f"spark-{number}.jsa"
        other.write_bytes(MAGIC)
        os.utime(other, (number, number))
    archive_option("spark", "4.2")
    (abandoned := classes / "other-0.77").write_bytes(MAGIC)  # its program, in this version, is not started again
    os.utime(abandoned, (time.time() - ABANDONED_S - 1,) * 2)
    archive_option("broker", "4.1")
    assert len(list(classes.iterdir())) == KEPT


@pytest.mark.parametrize(("count", "age_s", "kept"), [(3, 0, 3), (9, 0, KEPT_OF_A_DAY), (3, DAY_S, KEPT)])
def test_installations_that_are_used_in_turns_do_not_remove_one_another_s(
    classes: Path, count: int, age_s: float, kept: int
) -> None:
    classes.mkdir(parents=True)
    for number in range(count):
        (other := classes / f"spark-{number}.jsa").write_bytes(MAGIC)
        os.utime(other, (time.time() - age_s - number,) * 2)
    archive_option("spark", "4.2")
    assert {path.name for path in classes.iterdir()} == {f"spark-{number}.jsa" for number in range(kept)}


def test_a_cache_that_cannot_be_written_costs_time_only(
    classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wallaroo").write_text("a file where the directory should be")
    assert archive_option("spark", "4.2") == ""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert archive_option("spark", "4.2") == ""


@pytest.mark.slow
@pytest.mark.parametrize("given", [None, "/one:/with a space"])
def test_spark_s_processes_import_what_the_driver_imports(
    given: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if given is not None:
        monkeypatch.setenv("PYTHONPATH", given)
    program = interpreter(tmp_path)
    code = "import os, sys; print(sys.executable, os.environ.get('PYTHONPATH'), sys.argv[1])"
    done = subprocess.run(
        [program, "-c", code, "an argument"],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": "/spark/python/lib/pyspark.zip"},
    )  # fmt: skip
    assert done.stdout == f"{sys.executable} {given} an argument\n"
