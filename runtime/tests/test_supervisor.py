"""The supervisor with real processes: start, restart, failure, and that nothing is left."""

import asyncio
import os
import platform
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.run import flow as idle_ending
from wallaroo_runtime.run.flow import Flow
from wallaroo_runtime.storage.progress import Progress
from wallaroo_runtime.system.process import ProcessId, process_start_time
from wallaroo_runtime.worker import discovery, supervisor
from wallaroo_runtime.worker.directory import worker_directory
from wallaroo_runtime.worker.log import RotatingLog
from wallaroo_runtime.worker.spec import WorkerSpec

PLAIN_WORKER = Path(__file__).with_name("plain_worker.py")
pytestmark = pytest.mark.slow
Wait = Callable[..., None]


def test_worker_is_shared_and_restarted(plain_spec: WorkerSpec, executor: ProcessId) -> None:
    first = discovery.ensure_worker(plain_spec, executor)
    assert discovery.ensure_worker(plain_spec, executor) == first
    assert first.directory.stat().st_mode & 0o777 == 0o700
    os.kill(first.pid, signal.SIGKILL)
    second = discovery.recover_worker(first, executor)
    assert (second.generation, second.target) == (2, first.target)
    assert second.pid != first.pid


def test_an_unanswered_call_is_recorded_before_the_next_process_serves(
    plain_spec: WorkerSpec, executor: ProcessId, tmp_path: Path
) -> None:
    """Spark may end meanwhile, and the supervisor with it."""
    keeper = supervisor.Supervisor(tmp_path, replace(plain_spec, log_directory=str(tmp_path)), executor)

    async def recover() -> None:
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        ended.set_result(-9)
        keeper.generation, keeper.process = 3, Mock(ended=ended)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(keeper._answer({"op": "recover", "generation": 3}), 0.5)
            raise AssertionError

    asyncio.run(recover())
    keeper.log.close()
    assert keeper.log.path.read_text() == "[supervisor: process 3 of the worker left a call unanswered]\n"


@pytest.mark.parametrize("tells", [False, True])
def test_a_death_between_calls_is_told_once(
    tells: bool, plain_spec: WorkerSpec, executor: ProcessId, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_ending, "LOOK_S", 0.0)
    first, notes = discovery.ensure_worker(plain_spec, executor), list[str]()
    query, flow = watching(first.target, notes)
    flow.check()
    os.kill(first.pid, signal.SIGKILL)
    second = discovery.recover_worker(first, executor)
    flow.check()
    if tells:  # a task that had asked it
        query.progress.return_value = Progress(endings={f"1@localhost, process {first.pid}": "told"})
    for _ in range(3):
        flow.check()
    text = f'worker "main", process {first.pid}: it was ended by SIGKILL; process {second.pid} follows'
    assert notes == ["told" if tells else text]


def test_nothing_is_left_when_the_executor_is_killed(
    plain_spec: WorkerSpec, executor: ProcessId, wait_until: Wait
) -> None:
    connection = discovery.ensure_worker(plain_spec, executor)
    os.kill(executor.pid, signal.SIGKILL)
    wait_until(lambda: process_start_time(connection.pid) is None, "the worker to end")
    wait_until(lambda: not connection.directory.exists(), "the directory to be removed")


def supervisor_of(pid: int) -> int:
    """Return the parent of a worker."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_death_of_the_supervisor_takes_the_worker_along(
    plain_spec: WorkerSpec, executor: ProcessId, wait_until: Wait
) -> None:
    connection = discovery.ensure_worker(plain_spec, executor)
    os.kill(supervisor_of(connection.pid), signal.SIGKILL)
    wait_until(lambda: process_start_time(connection.pid) is None, "the worker to end")
    assert discovery.recover_worker(connection, executor).generation == 2


def test_calls_about_a_process_of_a_killed_supervisor_leave_the_next_process_alone(
    plain_spec: WorkerSpec, executor: ProcessId, wait_until: Wait
) -> None:
    """One task has started the next supervisor already when another one reports its broken streams."""
    first = discovery.ensure_worker(plain_spec, executor)
    os.kill(first.pid, signal.SIGKILL)
    second = discovery.recover_worker(first, executor)
    os.kill(supervisor_of(second.pid), signal.SIGKILL)
    wait_until(lambda: process_start_time(second.pid) is None, "the worker to end")
    third = discovery.ensure_worker(plain_spec, executor)
    for late in (first, second):
        assert discovery.ending_of(late) is None
        discovery.kill_worker(late, "it gave no answer", is_excused=False)
        assert discovery.recover_worker(late, executor) == third
    assert process_start_time(third.pid) is not None
    os.kill(third.pid, signal.SIGKILL)
    assert discovery.recover_worker(third, executor).pid != third.pid


def test_the_death_of_a_supervisor_is_told(
    plain_spec: WorkerSpec, executor: ProcessId, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_ending, "LOOK_S", 0.0)
    first, notes = discovery.ensure_worker(plain_spec, executor), list[str]()
    _, flow = watching(first.target, notes)
    flow.check()
    os.kill(supervisor_of(first.pid), signal.SIGKILL)
    wait_until(lambda: process_start_time(first.pid) is None, "the worker to end")
    second = discovery.ensure_worker(plain_spec, executor)
    flow.check()
    flow.check()
    assert notes == [f'worker "main", process {first.pid}: it has ended; process {second.pid} follows']


def watching(target: str, notes: list[str]) -> tuple[Mock, Flow]:
    """Return a query, and what looks at its worker and notes what is reported."""
    query = Mock(targets={"main": target, "attached": "127.0.0.1:1"})
    query.exception.return_value, query.progress.return_value = None, Progress()
    peers = Mock(gateways=[])
    peers.egress.status.return_value = {}
    return query, Flow(peers, query, notes.append, "", Mock(), Mock())


def test_a_supervisor_that_cannot_be_started_leaves_no_open_file(
    plain_spec: WorkerSpec, executor: ProcessId, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subprocess.Popen", Mock(side_effect=OSError("no process")))
    before = open_files()
    with pytest.raises(OSError, match="no process"):
        supervisor.start(tmp_path, plain_spec, executor)
    assert open_files() <= before


def open_files() -> set[str]:
    """Return what this process has open. Files of other tests may be closed at any moment, as garbage."""
    found = set()
    for file in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # it listed the files
            found.add(os.readlink(file))
    return found


def test_many_tasks_start_one_supervisor(plain_spec: WorkerSpec, executor: ProcessId) -> None:
    with ThreadPoolExecutor(6) as pool:
        found = set(pool.map(lambda _: discovery.ensure_worker(plain_spec, executor), range(6)))
    assert len(found) == 1


def test_stop_ends_worker_and_supervisor(plain_spec: WorkerSpec, executor: ProcessId) -> None:
    connection = discovery.ensure_worker(plain_spec, executor)
    assert discovery.stop_worker(plain_spec, executor)
    assert process_start_time(connection.pid) is None
    assert not connection.directory.exists()
    assert not discovery.stop_worker(plain_spec, executor)
    assert not connection.directory.parent.exists()


def failure_of(spec: WorkerSpec, executor: ProcessId) -> str:
    """Return what starting a worker fails with."""
    with pytest.raises(RunError) as caught:
        discovery.ensure_worker(spec, executor)
    assert caught.value.exit_code == 4
    return str(caught.value)


def test_setup_failure_is_the_workers_own_diagnostic(plain_spec: WorkerSpec, executor: ProcessId) -> None:
    assert failure_of(replace(plain_spec, args=("fail-setup",)), executor) == (
        "T217 setup raised ValueError: no\n  at a.py:3\n  fix: correct it"
    )


def test_early_end_shows_the_tail_of_the_log(plain_spec: WorkerSpec, executor: ProcessId) -> None:
    text = failure_of(replace(plain_spec, args=("exit",)), executor)
    assert text.startswith('W401 worker "main" did not start; it exited with status 7 before it served\n')
    assert "| cannot find my things" in text


def test_failure_stays_until_a_new_run_retries(plain_spec: WorkerSpec, executor: ProcessId, tmp_path: Path) -> None:
    script = tmp_path / "late.py"
    plain_spec = replace(plain_spec, command=("{python}", str(script)))
    assert failure_of(plain_spec, executor) == failure_of(plain_spec, executor)
    script.symlink_to(PLAIN_WORKER)
    assert "W401" in failure_of(plain_spec, executor)
    assert discovery.ensure_worker(plain_spec, executor, retry=True).pid


def test_worker_that_never_listens(plain_spec: WorkerSpec, executor: ProcessId) -> None:
    text = failure_of(replace(plain_spec, args=("never-listen",), start_timeout_ms=300), executor)
    assert "it did not listen within 0.3 s before it served" in text


def test_the_end_of_spark_is_named_if_a_worker_does_not_start(plain_spec: WorkerSpec, executor: ProcessId) -> None:
    os.kill(executor.pid, signal.SIGKILL)
    text = failure_of(replace(plain_spec, args=("never-listen",)), executor)
    assert text.startswith(f'W401 worker "main" did not start; Spark\'s Java, process {executor.pid}, has ended\n')


def test_binaries_that_cannot_run(plain_spec: WorkerSpec, executor: ProcessId, tmp_path: Path) -> None:
    missing = failure_of(replace(plain_spec, command=(str(tmp_path / "none"),)), executor)
    assert missing.startswith(f"W404 {tmp_path / 'none'} cannot run a worker; No such file")
    plain = tmp_path / "plain"
    plain.write_text("text")
    assert "chmod +x" in failure_of(replace(plain_spec, command=(str(plain),)), executor)
    foreign = tmp_path / "foreign"
    machine = 0xB7 if platform.machine() != "aarch64" else 0x3E
    foreign.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00" + machine.to_bytes(2, "little") + bytes(64))
    foreign.chmod(0o755)
    assert failure_of(replace(plain_spec, command=(str(foreign),)), executor).startswith("W404 ")


def test_restart_budget(plain_spec: WorkerSpec, executor: ProcessId) -> None:
    plain_spec = replace(plain_spec, restart_limit=2)
    connection = discovery.ensure_worker(plain_spec, executor)
    for _ in range(2):
        os.kill(connection.pid, signal.SIGKILL)
        connection = discovery.recover_worker(connection, executor)
    os.kill(connection.pid, signal.SIGKILL)
    with pytest.raises(RunError) as caught:
        discovery.recover_worker(connection, executor)
    assert str(caught.value).startswith('W406 worker "main" ended 3 times within 60 s; last: it was ended by SIGKILL')


def test_printing_worker_neither_stalls_nor_fills_the_disk(
    plain_spec: WorkerSpec, executor: ProcessId, tmp_path: Path, wait_until: Wait
) -> None:
    logs = tmp_path / "logs"
    connection = discovery.ensure_worker(replace(plain_spec, args=("print",), log_directory=str(logs)), executor)
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
    assert (tmp_path / "log").read_bytes().endswith(b"\n[1048576 bytes of output dropped]\nend\n")
    assert log.tail().endswith("end")


def test_log_rotates(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "log", file_bytes=100)
    for number in range(4):
        log.write(b"%d" % number * 60)
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1"]
    assert (tmp_path / "log").read_bytes().startswith(b"[60 bytes of older output dropped]\n")


def test_directory_that_others_may_enter_is_refused(plain_spec: WorkerSpec, executor: ProcessId) -> None:
    directory = worker_directory(plain_spec, executor)
    directory.parent.mkdir(mode=0o700, parents=True)
    directory.parent.chmod(0o755)
    text = failure_of(plain_spec, executor)
    directory.parent.rmdir()
    assert text == (
        f'W401 worker "{directory.parent.name}" did not start; {directory.parent} is not a directory that only '
        f"this user may enter\n  fix: remove {directory.parent}"
    )
