"""The executor's JVM is killed: soon no worker, no supervisor and no directory is left."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from wallaroo_runtime.system.process import process_start_time
from wallaroo_runtime.worker import control
from wallaroo_runtime.worker.discovery import is_java

pytestmark = [pytest.mark.jvm, pytest.mark.long]
END_S = 20.0  # 5 s on a machine that does nothing else
PROGRAM = """
import json, os, sys
from pathlib import Path
from pyspark import SparkFiles
from wallaroo_runtime.spark.session import create_session
from wallaroo_runtime.system.process import process_start_time
from wallaroo_runtime.worker.executor import start
from wallaroo_runtime.system.process import ProcessId
from wallaroo_runtime.worker.spec import WorkerSpec

session = create_session("death", master="local[2]", shuffle_partitions=2, directory=Path(sys.argv[1]))
run, pid = session.sparkContext.applicationId, session._jvm.java.lang.ProcessHandle.current().pid()
spec = WorkerSpec("counts", "main", ("{python}", sys.argv[2]), "/", run=run)
print(json.dumps(start(spec, [], ProcessId.of(pid)).target), flush=True)
sys.stdin.readline()
os._exit(0)
"""


def descendants(pid: int) -> list[int]:
    """Return all processes below one."""
    found = [int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()]
    return found + [further for child in found for further in descendants(child)]


def left(family: dict[int, int]) -> list[int]:
    """Return those of the processes that still run."""
    return [pid for pid, started in family.items() if process_start_time(pid) == started]


def test_nothing_is_left_of_a_killed_executor(tmp_path: Path, wait_until: Callable[..., None]) -> None:
    worker = Path(__file__).with_name("plain_worker.py")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(worker)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as driver:
        assert driver.stdout
        line = driver.stdout.readline()
        directory = Path(json.loads(line).removeprefix("unix:")).parent
        config = json.loads((directory / "supervisor.json").read_text())
        (executor,) = [pid for pid in descendants(driver.pid) if is_java(pid)]
        assert config["owner"] == [executor, process_start_time(executor)]
        worker_pid = control.ask(directory, {"op": "wait"}, 10.0)["pid"]
        supervisor = int(Path(f"/proc/{worker_pid}/stat").read_text().rpartition(")")[2].split()[1])
        seen = (worker_pid, supervisor, *descendants(executor))
        # A helper of Spark's may have ended by itself meanwhile: it no longer has a start time.
        family = {pid: started for pid in seen if (started := process_start_time(pid))}
        assert len(family) >= 2, "worker and supervisor"
        os.kill(executor, signal.SIGKILL)
        wait_until(lambda: not directory.parent.exists() and not left(family), "supervisor and worker to end", END_S)
        output, errors = driver.communicate(b"\n", timeout=90)
    assert (output, errors) == (b"", b""), "nothing of Spark's reaches the console"
