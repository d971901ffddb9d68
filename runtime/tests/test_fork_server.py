"""The server of which Spark's Python processes are forks, and the client that stands for one of them."""

import contextlib
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wallaroo_runtime.spark.machine.settings import FORKS, interpreter
from wallaroo_runtime.spark.task import fork_client
from wallaroo_runtime.spark.task.fork_server import receive

pytestmark = pytest.mark.slow
SERVER = """
import socket, sys
from wallaroo_runtime.spark.task.fork_server import ForkServer
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("ready", flush=True)
ForkServer(listener).serve()
"""  # without what takes a second to import
PROGRAM = """
import os, sys, time
print(os.getppid(), os.getcwd(), os.environ.get("ASKED"), sys.argv[1:], flush=True)
text = sys.stdin.read()
print(text, file=sys.stderr)
if sys.argv[1] == "wait":
    time.sleep(600)
if sys.argv[1] == "raise":
    raise RuntimeError("of the program")
if sys.argv[1] == "kill":
    os.kill(os.getpid(), 9)
sys.exit(eval(sys.argv[1]))
"""
OWNED = """
from wallaroo_runtime.worker import owner_process as owner
owner.is_java = lambda pid: open(f"/proc/{pid}/cmdline").read().endswith("\\0as Java\\0")
print(owner.find_owner().pid)
"""
WAIT_S = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple["subprocess.Popen[bytes]", Path]]:
    """Start a server; yields it and the directory of its socket, in which programs may lie."""
    folder = tmp_path_factory.mktemp("forks")
    (folder / "asked.py").write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", SERVER, folder / FORKS]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert process.stdout and process.stdout.readline() == b"ready\n"
    yield process, folder
    process.communicate(timeout=WAIT_S)  # it ends when its input does
    assert process.returncode == 0


def client(folder: Path, *arguments: str, **options: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-I", "-S", fork_client.__file__, folder / FORKS, sys.executable, "-m", *arguments]
    pipes = {name: subprocess.PIPE for name in ("stdin", "stdout", "stderr")}
    environment = os.environ | {"ASKED": "for\nthis = value", "PYTHONPATH": str(folder)}
    return subprocess.Popen(command, env=environment, cwd=folder, text=True, **pipes, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize(
    ("end", "code", "said"),
    [
        ("0", 0, ""),
        ("None", 0, ""),
        ("7", 7, ""),
        ("'text'", 1, ""),
        ("raise", 1, "RuntimeError: of the program\n"),
        ("kill", 247, ""),
    ],
)
def test_a_fork_runs_as_a_process_of_its_own_would(
    server: tuple["subprocess.Popen[bytes]", Path], end: str, code: int, said: str
) -> None:
    process, folder = server
    stub = client(folder, "asked", end, "two words")
    out, errors = stub.communicate("its input", timeout=WAIT_S)
    expected = f"{process.pid} {folder} for\nthis = value {[end, 'two words']}\n"
    assert (out, stub.returncode) == (expected, code)
    assert errors.startswith("its input\n")
    assert errors.endswith(said)


def test_a_fork_has_the_owner_that_its_client_would_have(server: tuple["subprocess.Popen[bytes]", Path]) -> None:
    _, folder = server
    (folder / "owned.py").write_text(OWNED)
    command = shlex.join([sys.executable, "-I", "-S", fork_client.__file__, str(folder / FORKS), sys.executable])
    java = subprocess.Popen(
        ["sh", "-c", f"{command} -m owned; :", "as Java"], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(folder)},
    )  # fmt: skip
    assert java.communicate(timeout=WAIT_S)[0] == f"{java.pid}\n"


def ignore_end() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as Java ignores it


def test_the_end_of_a_client_ends_its_fork_and_nothing_else(
    server: tuple["subprocess.Popen[bytes]", Path], wait_until: Callable[..., None]
) -> None:
    process, folder = server
    stubs = [client(folder, "asked", "wait", preexec_fn=ignore_end) for _ in range(2)]
    for stub in stubs:
        assert stub.stdin and stub.stdout and stub.stdout.readline()
    forks = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    assert len(forks.read_text().split()) == 2
    for number, stub in enumerate(stubs, 1):
        stub.terminate()  # as Java does it
        stub.communicate(timeout=WAIT_S)
        wait_until(lambda left=2 - number: len(forks.read_text().split()) == left, "the fork to end")
    assert process.poll() is None


@pytest.mark.parametrize("state", ["none", "refuses", "ends"])
def test_without_a_server_the_client_becomes_what_was_asked_for(tmp_path: Path, state: str) -> None:
    (tmp_path / "asked.py").write_text(PROGRAM)
    with socket.socket(socket.AF_UNIX) as listener:
        if state != "none":
            listener.bind(str(tmp_path / FORKS))
        if state == "ends":
            listener.listen()
        stub = client(tmp_path, "asked", "7")
        if state == "ends":  # as a server that cannot import PySpark
            listener.accept()[0].close()
        out, errors = stub.communicate("its input", timeout=WAIT_S)
    assert out == f"{os.getpid()} {tmp_path} for\nthis = value ['7']\n"
    assert (errors, stub.returncode) == ("its input\n", 7)


def asked_arguments(listener: socket.socket, count: int) -> tuple[str, ...]:
    """Take the request of a client; returns the arguments that it is for."""
    connection, _ = listener.accept()
    with connection:
        content, descriptors = receive(connection)
    for descriptor in descriptors:
        os.close(descriptor)
    return tuple(os.fsdecode(part) for part in content.split(b"\0")[2 : 1 + count])


@pytest.mark.parametrize(
    ("arguments", "fault", "asks"),
    [
        (("-m", "pyspark.sql.streaming.python_streaming_source_runner"), "", True),
        (("-m", "pyspark.daemon", "pyspark.sql.worker.create_data_source"), "", True),
        (("-m", "pyspark.daemon", "pyspark.sql.worker.create_data_source"), "planner.before_commit:2", False),
        (("-m", "wallaroo_runtime.spark.task.daemon", "pyspark.worker"), "", True),
        (("-m", "wallaroo_runtime.spark.task.daemon", "pyspark.worker"), "worker.before_commit:2", False),
        (("-c", "pass"), "", False),
    ],
)
def test_processes_of_spark_are_forks_unless_a_test_lets_them_end(
    tmp_path: Path, arguments: tuple[str, ...], fault: str, asks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WALLAROO_FAULT", fault)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / FORKS))
        listener.listen()
        listener.settimeout(WAIT_S)
        # Without its variables a process that really starts ends at once.
        process = subprocess.Popen(
            [interpreter(tmp_path), *arguments], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            if asks:
                assert asked_arguments(listener, len(arguments)) == arguments[1:]
            else:
                process.wait(WAIT_S)
                assert not select.select([listener], [], [], 0)[0], "nobody has connected"
        finally:
            process.kill()
            process.wait(WAIT_S)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.booleans())
def test_what_is_no_request_is_refused_and_leaves_nothing_open(chunks: list[bytes], sends_descriptors: bool) -> None:
    ours, theirs = socket.socketpair()
    count = len(os.listdir("/proc/self/fd"))
    with ours, theirs, open(os.devnull, "rb") as file:
        content = b"".join(chunks)[:30]
        with contextlib.suppress(OSError):
            if content and sends_descriptors:
                socket.send_fds(ours, [content], [file.fileno()])
            else:
                ours.sendall(content)
        ours.shutdown(socket.SHUT_WR)
        with pytest.raises((OSError, ValueError)):
            receive(theirs)
        assert len(os.listdir("/proc/self/fd")) == count + 1, "only the file of this test"


def test_a_large_request_arrives_whole(server: tuple["subprocess.Popen[bytes]", Path]) -> None:
    _, folder = server
    arguments = ["x" * 50_000] * 20
    stub = client(folder, "asked", "3", *arguments)
    out, _ = stub.communicate("", timeout=WAIT_S)
    assert stub.returncode == 3
    assert out.endswith(f"{['3', *arguments]}\n")
