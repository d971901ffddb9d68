"""What makes a start of Spark cheaper: classes that are kept from run to run, and modules that are compiled once."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo_runtime.run.signals import end_java
from wallaroo_runtime.spark.machine.settings import _java_options
from wallaroo_runtime.spark.machine.virtual_machine import VirtualMachine
from wallaroo_runtime.system.class_archive import (
    ABANDONED_S,
    DAY_S,
    KEPT,
    KEPT_OF_A_DAY,
    LOCK,
    MAGIC,
    WRITING_S,
    ArchiveWriter,
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


@pytest.mark.parametrize("change", [lambda jar: os.utime(jar, (1, 1)), lambda jar: jar.write_bytes(b"longer")])
def test_a_jar_that_was_replaced_has_another_archive(
    change: Callable[[Path], object], classes: Path, tmp_path: Path
) -> None:
    """Java refuses one of a jar with another time or size, and says nothing."""
    jar, log4j = tmp_path / "our.jar", tmp_path / "log4j2.properties"
    jar.write_bytes(b"jar")
    names = []
    for _ in range(2):
        options = _java_options(log4j, tmp_path, str(jar), makes_archive=True)
        names.append(options.partition(str(classes / "spark-"))[2][:32])
        change(jar)
    assert len(set(names)) == 2
    assert str(classes) not in _java_options(log4j, tmp_path, str(jar), makes_archive=False)


def test_a_cache_that_cannot_be_written_costs_time_only(
    classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wallaroo").write_text("a file where the directory should be")
    assert archive_option("spark", "4.2") == ""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert archive_option("spark", "4.2") == ""


SPARK = """#!/bin/sh
printf '\\0\\0\\0\\1\\0\\0\\0\\0' > "$_PYSPARK_DRIVER_CONN_INFO_PATH.new"
mv "$_PYSPARK_DRIVER_CONN_INFO_PATH.new" "$_PYSPARK_DRIVER_CONN_INFO_PATH"
exec sleep 300
"""


@pytest.fixture
def machines(classes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[VirtualMachine]]:
    """Give what two runs at the same time start first: a program in place of Java, which has the file to make."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    (tmp_path / "bin").mkdir()
    (script := tmp_path / "bin" / "spark-submit").write_text(SPARK)
    script.chmod(0o700)
    options = (f'"{archive_option("spark", "4.2")}"' for _ in range(2))
    started = [VirtualMachine({"options": option}, tmp_path / "out") for option in options]
    for each in started:
        each.wait()
    yield started
    for each in started:
        each.kill()


@pytest.mark.slow
def test_one_run_at_a_time_makes_it_and_says_so(classes: Path, machines: list[VirtualMachine]) -> None:
    first, second = machines
    reporter = Mock()
    for each in machines:
        each.has_worked = True
        end_java(each, reporter)
    text = f"the run has ended; Java writes {classes} for faster starts, for a minute or two"
    assert [call.args for call in reporter.output.call_args_list] == [("java", text)]
    assert not reporter.note.called  # programs have the numbers last
    assert (first.process.poll(), second.process.poll()) == (None, -signal.SIGKILL)


@pytest.mark.slow
def test_a_run_without_messages_makes_none(machines: list[VirtualMachine]) -> None:
    """Java has not loaded what a query needs, and no later run would make the file again."""
    for each in machines:
        assert each.end() is None
        assert each.process.poll() == -signal.SIGKILL


@pytest.mark.slow
def test_java_has_the_right_to_write_until_it_ends(classes: Path, machines: list[VirtualMachine]) -> None:
    first, second = machines
    first.has_worked = second.has_worked = True
    assert first.end() == classes
    os.close(first._classes.descriptors[0])  # its run ends
    assert second.end() is None
    first.kill()
    third = ArchiveWriter(archive_option("spark", "4.2"))
    assert third.take()


class Runs:
    """Runs of one user, of which each makes the archive or not, and the file that is there in the end."""

    def __init__(self) -> None:
        self.running: list[tuple[ArchiveWriter, Path]] = []
        self.writing: list[tuple[ArchiveWriter, Path]] = []
        self.is_there = False

    def begin(self, number: int) -> None:
        option = archive_option("spark", "4.2")
        if is_being_made(option):
            self.running.append((ArchiveWriter(option), Path(f"{option.partition('=')[2]}{number}")))

    def end(self) -> None:
        if not self.running:
            return
        writer, part = self.running.pop(0)
        may = not self.writing and not self.is_there
        assert writer.take() == may
        if may:
            self.writing.append((writer, part))
        else:
            os.close(writer.descriptors[0])

    def java_ends(self, content: bytes) -> None:
        if not self.writing:
            return
        writer, part = self.writing.pop()
        part.write_bytes(content)
        os.utime(part, (time.time() - WRITING_S - 1,) * 2)
        os.close(writer.descriptors[0])
        self.is_there |= content == MAGIC


@given(st.lists(st.sampled_from(["begin", "end", "write", "fall"]), max_size=12))
def test_at_most_one_writes_and_none_once_it_is_there(steps: list[str]) -> None:
    with TemporaryDirectory() as cache, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", cache)
        runs = Runs()
        does = {"end": runs.end, "write": lambda: runs.java_ends(MAGIC), "fall": lambda: runs.java_ends(b"\0\0")}
        for number, step in enumerate(steps):
            does.get(step, lambda number=number: runs.begin(number))()  # type: ignore[misc]
        for writer, _ in runs.running + runs.writing:
            os.close(writer.descriptors[0])
        archive_option("spark", "4.2")
        left = [path.name for path in (Path(cache) / "wallaroo" / "classes").iterdir() if path.name != LOCK]
        assert [name.endswith(".jsa") for name in left] == [True] * runs.is_there
