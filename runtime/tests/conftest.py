"""What the runtime's tests share: a worker without SDK, a process in the part of the executor, one Spark session."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from java_client import JavaChannel, JavaClient, ended, started_java

from support.dated_totals import PROGRAM
from wallaroo.message.frame import read_frame, split_frames
from wallaroo_runtime.peer.local import stop_left_behind
from wallaroo_runtime.service.driver import announce
from wallaroo_runtime.storage.outbox.log import LogReader
from wallaroo_runtime.system.process import ProcessId
from wallaroo_runtime.worker.directory import worker_directory
from wallaroo_runtime.worker.spec import WorkerSpec

PLAIN_WORKER = str(Path(__file__).with_name("plain_worker.py"))


def wait(holds: Callable[[], bool], what: str, seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.02)


@pytest.fixture
def wait_until() -> Callable[..., None]:
    """Give a function that waits for a condition, with a deadline."""
    return wait


def plain(directory: Path) -> WorkerSpec:
    return WorkerSpec("counts", "main", ("{python}", PLAIN_WORKER), str(directory), run=str(directory))


@pytest.fixture
def plain_spec(tmp_path: Path) -> WorkerSpec:
    """Return a worker that no other test has."""
    return plain(tmp_path)


@contextmanager
def running_executor(spec: WorkerSpec) -> Iterator[ProcessId]:
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    owner = ProcessId.of(process.pid)
    parent = worker_directory(spec, owner).parent
    yield owner
    process.kill()
    process.communicate()
    wait(lambda: not names_in(parent), "the directory to be empty or gone", 60.0)


@pytest.fixture
def executor(plain_spec: WorkerSpec) -> Iterator[ProcessId]:
    """Give a process in the part of the executor; what it owns must be gone soon after it."""
    with running_executor(plain_spec) as owner:
        yield owner


@pytest.fixture(scope="module")
def shared_channel(java_client: JavaClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaChannel]:
    """Give the way to a plain worker that the tests of a file share."""
    spec = replace(plain(tmp_path_factory.mktemp("worker")), restart_limit=100)
    with running_executor(spec) as owner:
        yield JavaChannel(java_client, spec, owner)


@pytest.fixture(scope="session")
def java_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaClient]:
    """Give a process that calls workers as tasks do."""
    process = started_java("stage.CallsMain", tmp_path_factory.mktemp("classes"))
    yield JavaClient(process)
    ended(process)


def names_in(directory: Path) -> list[str]:
    """Return what is in a directory that another process may remove."""
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


@pytest.fixture
def checkpoint(tmp_path: Path) -> Iterator[Path]:
    """Give a checkpoint directory whose driver this process is; gateway and egress end with the test."""
    for name in ("journal", "outbox", "logs"):
        (tmp_path / name).mkdir()
    announce(tmp_path)
    yield tmp_path
    stop_left_behind(tmp_path)


@pytest.fixture
def published() -> Callable[[Path, int], list[str]]:
    """Give a function that returns what a checkpoint's outbox holds for a port, in order, without line ends."""

    def read(checkpoint: Path, port: int) -> list[str]:
        files = [file for record in LogReader(checkpoint / "outbox").records() for file in record.files]
        data = b"".join((checkpoint / "outbox" / file.name).read_bytes() for file in files if file.port == port)
        return [value.decode().strip() for _, at, _ in split_frames(data) for value in read_frame(data, at).values()]

    return read


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Give the one Spark session of this test run."""
    from wallaroo_runtime.spark.machine.settings import start_settings
    from wallaroo_runtime.spark.session import create_session

    master, logs, options = "local[2]", tmp_path_factory.mktemp("spark"), "spark.driver.extraJavaOptions"
    # It lives for minutes: with the heap of a short session, the garbage collector took a third of its processor time.
    # With the code cache of a short session, Java swept it all the time.
    memory = "-Xms1200m -Xmn600m -XX:MetaspaceSize=256m -XX:ReservedCodeCacheSize=200m"
    own = {
        options: f"{start_settings(master, logs, {})[options]} {memory}",
        "spark.sql.ui.explainMode": "simple",  # Spark explains each query for a page that is off
    }
    session = create_session("tests", master=master, shuffle_partitions=2, directory=logs, settings=own)
    yield session
    session.stop()


@pytest.fixture
def changed(spark: Any) -> Iterator[Callable[[str, str], None]]:
    """Give a function that changes a setting of the session for one test."""
    before: dict[str, str | None] = {}

    def change(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.fixture
def session(spark: Any, changed: Callable[[str, str], None]) -> Any:
    """Return the session with settings that are not ours."""
    changed("spark.sql.shuffle.partitions", "3")
    changed("spark.sql.adaptive.enabled", "true")
    return spark


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the file of the program of `support.dated_totals`."""
    file = tmp_path_factory.mktemp("program") / "totals.py"
    file.write_text(PROGRAM)
    return str(file)


@pytest.fixture(scope="session")
def steps(program: str) -> Any:
    """Return its steps between DataFrames."""
    from wallaroo_runtime.dataframe import load

    return load(program)
