"""What is said when Spark does not start, and what is left when a run ends before it is used."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from pyspark import SparkContext

from support.run import wait_until
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.machine.virtual_machine import launch
from wallaroo_runtime.spark.session import begin_session, create_session
from wallaroo_runtime.system.process import process_start_time


@pytest.fixture(autouse=True)
def _without_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test start Java, although another one of this process may have done so."""
    monkeypatch.setattr(SparkContext, "_gateway", None)


def spark(home: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Make an installation of Spark whose program does what is given."""
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "spark-submit").write_text(f"#!/bin/sh\n{program}\n")
    (home / "bin" / "spark-submit").chmod(0o700)
    monkeypatch.setenv("SPARK_HOME", str(home))


@pytest.mark.slow
def test_only_lines_of_this_start_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark(tmp_path / "spark", monkeypatch, "echo of this start; echo and errors >&2; exit 7")
    (tmp_path / "spark.out").write_text("of an earlier run\n")
    with pytest.raises(RunError) as caught:
        create_session("a", master="local[1]", shuffle_partitions=1, directory=tmp_path)
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.traceback) == ("R611", "of this start\nand errors")
    assert "its process has ended with exit code 7" in str(finding)


@pytest.mark.slow
def test_the_system_gives_java_errors_in_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    spark(tmp_path / "spark", monkeypatch, 'echo "$LC_ALL, $LC_CTYPE, $LC_MESSAGES"; exit 7')
    with pytest.raises(RunError) as caught:
        create_session("a", master="local[1]", shuffle_partitions=1, directory=tmp_path)
    assert caught.value.diagnostics[0].traceback == ", de_DE.UTF-8, C"


@pytest.mark.slow
def test_without_the_program_of_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "away"))
    with pytest.raises(RunError, match="R611 .*away/bin/spark-submit"):
        create_session("a", master="local[1]", shuffle_partitions=1, directory=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("ended", [False, True])
def test_what_was_launched_is_cancelled(ended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark(tmp_path / "spark", monkeypatch, "exit 0" if ended else "exec cat")
    java = launch("local[1]", tmp_path, {})
    assert java is not None
    if ended:
        java.process.wait(60)
    java.end()
    java.end()  # as often as one likes
    assert java.process.returncode == (0 if ended else -9)


@pytest.mark.slow
def test_it_ends_with_the_process_that_launched_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spark(tmp_path / "spark", monkeypatch, "cat; echo end of input")
    java = launch("local[1]", tmp_path, {})
    assert java is not None
    assert os.getsid(java.process.pid) == java.process.pid
    java.process.communicate(timeout=300)
    assert java.process.returncode == 0
    assert (tmp_path / "spark.out").read_text() == "end of input\n"


LAUNCHING = """
import sys
from pathlib import Path
from wallaroo_runtime.spark.machine.virtual_machine import launch

java = launch("local[1]", Path(sys.argv[1]), {}, makes_archive="archive" in sys.argv)
print(java.process.pid, flush=True)
sys.stdin.read()
"""
TAKING = "from wallaroo_runtime.spark.machine.temporary import temporary_directory; temporary_directory()"


@pytest.mark.slow
def test_it_ends_at_once_with_a_process_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java that writes an archive of its classes would go on for a minute."""
    spark(tmp_path / "spark", monkeypatch, "exec sleep 600")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where there is no archive
    command = [sys.executable, "-c", LAUNCHING, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        assert driver.stdout
        java = int(driver.stdout.readline())
        assert process_start_time(java) is not None
        driver.kill()
    wait_until(lambda: process_start_time(java) is None, lambda: f"the end of {java}", 60)


@pytest.mark.slow
def test_a_start_leaves_the_directory_of_one_that_still_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Java whose driver was killed, and that cannot write where it listens, would never end."""
    gate = tmp_path / "gate"
    shown = 'test -d "$(dirname "$_PYSPARK_DRIVER_CONN_INFO_PATH")" && echo it is there'
    spark(tmp_path / "spark", monkeypatch, f'until [ -e "{gate}" ]; do sleep 0.05; done; {shown}; exec cat')
    with tempfile.TemporaryDirectory(prefix="t-") as folder:
        environment = {**os.environ, "TMPDIR": folder, "XDG_CACHE_HOME": folder}
        command = [sys.executable, "-c", LAUNCHING, str(tmp_path), "archive"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe) as driver:
            assert driver.stdout
            assert driver.stdout.readline()
            driver.kill()
        subprocess.run([sys.executable, "-c", TAKING], env=environment, check=True, timeout=300)
        gate.touch()
        output = tmp_path / "spark.out"
        wait_until(lambda: output.read_text() == "it is there\n", output.read_text, 60)
        left = list(Path(folder).glob("*/spark-*"))
        assert len(left) == 1

        def is_removed() -> bool:
            subprocess.run([sys.executable, "-c", TAKING], env=environment, check=True, timeout=300)
            return not left[0].exists()

        wait_until(is_removed, lambda: f"{left[0]} to go", 60)


@pytest.mark.slow
def test_port_and_secret_are_taken_as_java_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = "printf '\\000\\000\\234\\100\\000\\000\\000\\003key'"  # numbers as Java's writeInt
    program = f'{told} > "$_PYSPARK_DRIVER_CONN_INFO_PATH.new"\n' + (
        'mv "$_PYSPARK_DRIVER_CONN_INFO_PATH.new" "$_PYSPARK_DRIVER_CONN_INFO_PATH"\nexec cat'
    )
    spark(tmp_path / "spark", monkeypatch, program)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # where no other process writes the archive of classes
    java = launch("local[1]", tmp_path, {})
    assert java is not None
    try:
        assert java.wait() == (40000, "key")
        java.end()
        assert java.process.poll() is None, "PySpark has it"
    finally:
        java.process.communicate(timeout=300)


@pytest.mark.slow
def test_what_a_run_imports_before_java_starts_knows_nothing_of_pyspark() -> None:
    names = ("run.run", "spark.source.kafka_connector", "spark.machine.settings")
    modules = ", ".join(f"wallaroo_runtime.{name}" for name in names)
    code = f"import sys, {modules}; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "False\n"


@pytest.mark.slow
@pytest.mark.parametrize("module", ["worker.supervisor", "egress.service", "worker.executor"])
def test_a_process_that_is_given_a_checked_topology_does_not_import_what_checks_it(module: str) -> None:
    code = f"import sys, wallaroo_runtime.{module}; print('jsonschema' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "False\n"


def test_an_error_of_a_start_is_raised_where_the_session_is_awaited() -> None:
    def fail() -> object:
        raise RunError.of("R611", reason="of the test", fix="none")

    wait = begin_session(fail)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(RunError, match="of the test"):
            wait()
