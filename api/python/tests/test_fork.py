"""Processes that user code forks and that return: they may neither answer nor hang the worker."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import grpc
import pytest

from wallaroo.emit.program import load
from wallaroo.message.frame import encode_frame, read_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.rpc import WORKER_SERVICE, client
from wallaroo.worker.stage.flight import FORKED
from wallaroo.worker.value.value import TEXT

PROGRAM = """
import os
import sys

import wallaroo

@wallaroo.line_decoder
def decode(line):
    return line.decode()

@wallaroo.computation("fork")
def fork(text):
    if text == "returns":
        child = os.fork()
        if child:
            os.waitpid(child, 0)
    if text == "closes":
        sys.stdout.close()
    return text

@wallaroo.line_encoder
def encode(text):
    return text

def application_setup(args):
    source = wallaroo.source("in", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode))
    sink = wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)
    return wallaroo.build_application("Forks", source.to(fork).to_sink(sink))
"""
TEST = """
from wallaroo.testing import run

with run("app.py") as app:
    app.send([b"a", b"returns", b"b"])
    print(app.output(), len(app.dead_letters), flush=True)
"""
# The signal comes at a moment when the main thread holds the lock of the event that the signal sets.
LOCKED = PROGRAM.replace(
    "    source = ",
    """
    serve = sys._getframe()
    while serve.f_code.co_name != "serve":
        serve = serve.f_back
    with serve.f_locals["stopped"]._cond:
        os.kill(os.getpid(), 15)
    source = """,
)
SECONDS = 90

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(PROGRAM)
    return tmp_path


def test_in_a_test_only_the_first_process_goes_on(folder: Path) -> None:
    command = [sys.executable, "-c", TEST]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.stdout == "[b'a\\n', b'returns\\n', b'b\\n'] 0\n" and done.returncode == 0
    assert done.stderr.splitlines() == [FORKED]


def test_a_worker_answers_once_and_does_not_hang(folder: Path) -> None:
    stage = pb.Stage(id="s0", bucket_count=1, frame_bytes=1 << 20)
    source, step, sink = (node.path for node in load(str(folder / "app.py"), []).application.nodes())
    stage.nodes.add(path=source, kind=pb.NODE_KIND_SOURCE, port=0)
    stage.nodes.add(path=step, kind=pb.NODE_KIND_COMPUTATION, inputs=[source])
    stage.nodes.add(path=sink, kind=pb.NODE_KIND_SINK, inputs=[step], port=1)
    socket = folder / "worker.sock"
    settings = {"WALLAROO_MODE": "worker", "WALLAROO_WORKER_DIR": str(folder), "WALLAROO_ARGS": json.dumps([])}
    command = [sys.executable, "-m", "wallaroo.worker", "app.py"]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, cwd=folder, env=os.environ | settings, stderr=log) as worker,
    ):
        try:
            end = time.monotonic() + SECONDS
            while not socket.exists():
                assert worker.poll() is None and time.monotonic() < end, (folder / "log").read_text()
                time.sleep(0.01)
            with grpc.insecure_channel(f"unix:{socket}") as channel:
                frames = (
                    encode_frame([text], port=0, sequence=at, encoding=TEXT)
                    for at, text in enumerate((b"returns", b"closes", b"a"))
                )
                requests = [pb.Request(opening=pb.Opening(application="a", query="q", stage=stage))]
                requests += [pb.Request(data=pb.Data(index=at, frames=each)) for at, each in enumerate(frames)]
                replies = list(client(WORKER_SERVICE, channel).Process(iter(requests), timeout=SECONDS))
            outputs = [read_frame(reply.output.frame).values() for reply in replies if reply.HasField("output")]
            assert outputs == [[b"returns\n"], [b"closes\n"], [b"a\n"]]
            _terminate_by_another_thread(worker.pid)
            assert worker.wait(SECONDS) == 0, "it has stopped in order, although user code has closed its stdout"
        finally:
            worker.kill()
    assert FORKED in (folder / "log").read_text()


def test_a_signal_at_an_unlucky_moment_ends_a_worker(folder: Path) -> None:
    (folder / "app.py").write_text(LOCKED)
    settings = {"WALLAROO_MODE": "worker", "WALLAROO_WORKER_DIR": str(folder), "WALLAROO_ARGS": json.dumps([])}
    command = [sys.executable, "-m", "wallaroo.worker", "app.py"]
    done = subprocess.run(command, cwd=folder, env=os.environ | settings, timeout=SECONDS, check=False)
    assert done.returncode == 0


def _terminate_by_another_thread(process: int) -> None:
    """Send SIGTERM to a thread that is not the main one, as the kernel does at times when a machine is busy."""
    thread = max(int(each.name) for each in Path(f"/proc/{process}/task").iterdir())
    assert thread != process
    assert ctypes.CDLL(None).tgkill(process, thread, signal.SIGTERM) == 0
