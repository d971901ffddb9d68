"""The supervisor with real processes: start, restart, failure, and that nothing stays behind."""

import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.worker import ensure
from wallaroo_runtime.worker.directory import worker_directory
from wallaroo_runtime.worker.log import RotatingLog
from wallaroo_runtime.worker.owner import Owner, start_time
from wallaroo_runtime.worker.spec import WorkerSpec

PLAIN_WORKER = str(Path(__file__).with_name("plain_worker.py"))


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    """Wait for a condition, with a deadline."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.02)


@pytest.fixture
def spec(tmp_path: Path) -> WorkerSpec:
    """Return a worker that no other test has."""
    return WorkerSpec("counts", "main", ("{python}", PLAIN_WORKER), str(tmp_path), run=str(tmp_path))


@pytest.fixture
def owner(spec: WorkerSpec) -> Iterator[Owner]:
    """Give a process in the part of the executor; what it owns must be gone soon after it."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = Owner(process.pid, start_time(process.pid))
    parent = worker_directory(spec, owner).parent
    yield owner
    process.kill()
    process.wait()
    wait_until(lambda: not parent.exists() or not any(parent.iterdir()), "the directory to be empty", 5.0)


def test_worker_is_shared_and_restarted(spec: WorkerSpec, owner: Owner) -> None:
    first = ensure.ensure_worker(spec, owner)
    assert ensure.ensure_worker(spec, owner) == first
    assert first.directory.stat().st_mode & 0o777 == 0o700
    os.kill(first.pid, signal.SIGKILL)
    second = ensure.recover_worker(first, owner)
    assert (second.generation, second.target) == (2, first.target)
    assert second.pid != first.pid


def test_nothing_is_left_when_the_executor_is_killed(spec: WorkerSpec, owner: Owner) -> None:
    connection = ensure.ensure_worker(spec, owner)
    os.kill(owner.pid, signal.SIGKILL)
    wait_until(lambda: start_time(connection.pid) == 0, "the worker to end", 5.0)
    wait_until(lambda: not connection.directory.exists(), "the directory to be removed", 5.0)


def supervisor_of(pid: int) -> int:
    """Return the parent of a worker."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_death_of_the_supervisor_takes_the_worker_along(spec: WorkerSpec, owner: Owner) -> None:
    connection = ensure.ensure_worker(spec, owner)
    os.kill(supervisor_of(connection.pid), signal.SIGKILL)
    wait_until(lambda: start_time(connection.pid) == 0, "the worker to end", 5.0)
    assert ensure.recover_worker(connection, owner).generation == 1


def test_many_tasks_start_one_supervisor(spec: WorkerSpec, owner: Owner) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(6) as pool:
        found = set(pool.map(lambda _: ensure.ensure_worker(spec, owner), range(6)))
    assert len(found) == 1


def test_stop_ends_worker_and_supervisor(spec: WorkerSpec, owner: Owner) -> None:
    connection = ensure.ensure_worker(spec, owner)
    assert ensure.stop_worker(spec, owner)
    assert start_time(connection.pid) == 0
    assert not connection.directory.exists()
    assert not ensure.stop_worker(spec, owner)


def failure_of(spec: WorkerSpec, owner: Owner) -> str:
    """Return what starting a worker fails with."""
    with pytest.raises(RunError) as caught:
        ensure.ensure_worker(spec, owner)
    assert caught.value.exit_code == 4
    return str(caught.value)


def test_setup_failure_is_the_workers_own_diagnostic(spec: WorkerSpec, owner: Owner) -> None:
    assert failure_of(replace(spec, args=("fail-setup",)), owner) == (
        "T217 setup raised ValueError: no\n  at a.py:3\n  fix: correct it"
    )


def test_early_end_shows_the_tail_of_the_log(spec: WorkerSpec, owner: Owner) -> None:
    text = failure_of(replace(spec, args=("exit",)), owner)
    assert text.startswith('W401 worker "main" did not start; it exited with status 7 before it served\n')
    assert "| cannot find my things" in text


def test_failure_stays_until_a_new_run_retries(spec: WorkerSpec, owner: Owner, tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    spec = replace(spec, command=("{python}", str(script)))
    assert failure_of(spec, owner) == failure_of(spec, owner)
    script.write_text(Path(PLAIN_WORKER).read_text())
    assert "W401" in failure_of(spec, owner)
    assert ensure.ensure_worker(spec, owner, retry=True).pid


def test_worker_that_never_listens(spec: WorkerSpec, owner: Owner) -> None:
    text = failure_of(replace(spec, args=("never-listen",), start_timeout_ms=300), owner)
    assert "it did not listen within 0.3 s before it served" in text


def test_binaries_that_cannot_run(spec: WorkerSpec, owner: Owner, tmp_path: Path) -> None:
    missing = failure_of(replace(spec, command=(str(tmp_path / "none"),)), owner)
    assert missing.startswith(f"W404 worker binary {tmp_path / 'none'} cannot be executed; No such file")
    plain = tmp_path / "plain"
    plain.write_text("text")
    assert "chmod +x" in failure_of(replace(spec, command=(str(plain),)), owner)
    foreign = tmp_path / "foreign"
    machine = 0xB7 if platform.machine() != "aarch64" else 0x3E
    foreign.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00" + machine.to_bytes(2, "little") + bytes(64))
    foreign.chmod(0o755)
    assert failure_of(replace(spec, command=(str(foreign),)), owner).startswith("W405 ")


def test_restart_budget(spec: WorkerSpec, owner: Owner) -> None:
    spec = replace(spec, restart_limit=2)
    connection = ensure.ensure_worker(spec, owner)
    for _ in range(2):
        os.kill(connection.pid, signal.SIGKILL)
        connection = ensure.recover_worker(connection, owner)
    os.kill(connection.pid, signal.SIGKILL)
    with pytest.raises(RunError) as caught:
        ensure.recover_worker(connection, owner)
    assert str(caught.value).startswith('W406 worker "main" ended 3 times within 60 s; last: it was ended by SIGKILL')


def test_printing_worker_neither_stalls_nor_fills_the_disk(spec: WorkerSpec, owner: Owner, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    connection = ensure.ensure_worker(replace(spec, args=("print",), log_directory=str(logs)), owner)
    (path,) = logs.iterdir()
    wait_until(lambda: path.stat().st_size >= 4_000_000, "output in the log")
    assert connection.pid
    assert sum(file.stat().st_size for file in logs.iterdir()) < 16 * 1024 * 1024


def test_log_counts_what_it_drops(tmp_path: Path) -> None:
    now = [0.0]
    log = RotatingLog(tmp_path / "log", clock=lambda: now[0])
    log.write(b"a" * 5 * 1024 * 1024)
    now[0] = 10.0
    log.write(b"end\n")
    log.close()
    assert log.dropped_bytes == 1024 * 1024
    assert (tmp_path / "log").read_bytes().endswith(b"\n[1048576 bytes of output dropped]\nend\n")
    assert log.tail().endswith("end")


def test_log_rotates(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "log", file_bytes=100)
    for number in range(4):
        log.write(b"%d" % number * 60)
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1"]
    assert log.dropped_bytes == 120
