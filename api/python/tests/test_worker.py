"""A worker as a process: start, handshake, calls, its processes, its end."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from wallaroo.emit.program import load
from wallaroo.message.frame import read_frame
from wallaroo.message.handshake import CAPABILITIES
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.gc import OBJECTS
from wallaroo.worker.host.rpc import WORKER_SERVICE, client

CASES = Path(__file__).resolve().parents[3] / "tests" / "cases"
WORD_COUNT = CASES / "word_count" / "app.py"
ARGS = ["--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002"]
SECONDS = 90
INIT = pb.InitRequest(protocol_min=1, protocol_max=1)

pytestmark = pytest.mark.slow


def wait_until(what: str, condition: Any) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < end, f"waited {SECONDS} s for {what}"
        time.sleep(0.01)


def start(directory: Path, app: Path = WORD_COUNT, processes: int = 1) -> "subprocess.Popen[bytes]":
    directory.mkdir(mode=0o700, exist_ok=True)
    variables = {
        "WALLAROO_MODE": "worker",
        "WALLAROO_ARGS": json.dumps(ARGS),
        "WALLAROO_WORKER_DIR": str(directory),
        "WALLAROO_WORKER_PROCESSES": str(processes),
        "WALLAROO_STATE_CACHE_BYTES": "100000000",
    }
    return subprocess.Popen(
        [sys.executable, "-m", "wallaroo.worker", str(app)], env=os.environ | variables, stderr=subprocess.DEVNULL
    )


@contextmanager
def served(directory: Path, app: Path = WORD_COUNT, processes: int = 1) -> Iterator[tuple[Any, Any]]:
    worker = start(directory, app, processes)
    try:
        wait_until("the socket", lambda: (directory / "worker.sock").exists() or worker.poll() is not None)
        with grpc.insecure_channel(f"unix:{directory / 'worker.sock'}") as channel:
            yield worker, channel
    finally:
        worker.kill()
        worker.wait()


def stages(kit: Any) -> tuple[pb.Stage, pb.Stage]:
    sys.modules.pop("app", None)
    application = load(str(WORD_COUNT), ARGS).application
    return kit.stage_of(application, "0/sources/0"), kit.stage_of(application, "0/steps/1")


def test_a_word_from_the_wire_to_the_sink(tmp_path: Path, kit: Any) -> None:
    first, second = stages(kit)
    with served(tmp_path / "w") as (_, channel):
        stub = client(WORKER_SERVICE, channel)
        reply = stub.Init(INIT, timeout=SECONDS)
        assert (reply.language, len(reply.endpoints)) == ("python", 1)
        health = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=SECONDS)
        assert health.status == health_pb2.HealthCheckResponse.SERVING
        opening = pb.Opening(application="a", query="q", stage=first)
        data = [pb.Data(index=at, frames=kit.wire([b"Hello, hello!", b""], sequence=at * 2)) for at in range(2)]
        requests = [pb.Request(opening=opening), *(pb.Request(data=each) for each in data)]
        replies = list(stub.Process(iter(requests), timeout=SECONDS))
        assert [reply.done.index for reply in replies if reply.HasField("done")] == [0, 1]
        outputs = [reply.output for reply in replies if reply.HasField("output")]
        assert [letter.error for letter in kit.letters(outputs)] == ["IndexError: string index out of range"] * 2
        frames = [output for output in outputs if output.bucket >= 0]
        assert len({output.bucket for output in frames}) == 1
        check_state(stub, kit, second, frames)


def check_state(stub: Any, kit: Any, stage: pb.Stage, frames: list[pb.Output]) -> None:
    opening = pb.Request(opening=pb.Opening(application="a", query="q", stage=stage))

    def call(frame: bytes, version: pb.Version, *more: pb.Request) -> list[pb.Reply]:
        bucket = pb.Bucket(index=0, bucket=frames[0].bucket, version=version, frames=frame)
        requests = [opening, pb.Request(bucket=bucket), *more]
        return list(stub.ProcessState(iter(requests), timeout=SECONDS))

    def values(replies: list[pb.Reply]) -> list[bytes]:
        return [value for _, value in kit.sunk([reply.output for reply in replies if reply.HasField("output")])]

    replies = call(frames[0].frame, pb.Version())
    assert values(replies) == [b"hello => 1\n", b"hello => 2\n"]
    log = [entry for reply in replies if reply.HasField("change") for entry in reply.change.entries]
    version = pb.Version(counter=1, nonce=replies[-1].done.nonce)
    assert values(call(frames[1].frame, version)) == [b"hello => 3\n", b"hello => 4\n"]
    # The copy is now of version 2: who asks for version 1 again must send the log.
    again = call(frames[1].frame, version, pb.Request(log=pb.StateLog(index=0, entries=log)))
    assert again[0].HasField("need_state")
    assert not again[0].need_state.rollback
    assert values(again) == [b"hello => 3\n", b"hello => 4\n"]


def test_it_refuses_what_it_cannot_serve(tmp_path: Path) -> None:
    with served(tmp_path / "w") as (_, channel):
        stub = client(WORKER_SERVICE, channel)
        newer = stub.Init(pb.InitRequest(protocol_min=2, protocol_max=3), timeout=SECONDS).failure
        assert (newer.code, newer.message) == ("W416", 'worker "main" speaks protocol 1; the runtime speaks 2 to 3')
        wide = pb.InitRequest(protocol_min=1, protocol_max=9, capabilities=["of the future"])
        reply = stub.Init(wide, timeout=SECONDS)
        assert not reply.HasField("failure")
        assert (reply.protocol_min, reply.protocol_max, list(reply.capabilities)) == (1, 1, list(CAPABILITIES))
        other = pb.InitRequest(protocol_min=1, protocol_max=1, interface_hash="sha256:00")
        assert stub.Init(other, timeout=SECONDS).failure.code == "W403"
        replies = list(stub.Process(iter([pb.Request(data=pb.Data())]), timeout=SECONDS))
        assert replies[-1].failure.message == "a stream does not begin with its opening"
        stage = pb.Stage(id="s", nodes=[pb.Node(path="9/sources/0", kind=pb.NODE_KIND_SOURCE)])
        requests = [pb.Request(opening=pb.Opening(stage=stage)), pb.Request(data=pb.Data(frames=b"x"))]
        assert list(stub.Process(iter(requests), timeout=SECONDS))[-1].failure.code == "W403"


CLOSING = """
import os, posix, socket
import wallaroo

HELD = [*os.pipe(), socket.socket().detach()]


def application_setup(args):
    ab = wallaroo.ApplicationBuilder("closing")
    ab.new_pipeline("lines", wallaroo.TCPSourceConfig("127.0.0.1", "7010", decode))
    ab.to(close)
    ab.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode))
    return ab.build()


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode()


@wallaroo.computation("close")
def close(way):
    way = eval(way)
    open_ones = [int(name) for name in os.listdir("/proc/self/fd")]
    tried, refused = 0, 0
    for each in open_ones:
        if each > 2 and each not in HELD and os.path.exists(f"/proc/self/fd/{each}"):
            tried += 1
            try:
                way(each)
            except OSError as error:
                refused += error.errno == 1
    # What the program opens it may close.
    for each in [*os.pipe(), os.open(os.devnull, os.O_RDONLY), os.eventfd(0)]:
        way(each)
    while HELD:
        way(HELD.pop())
    return tried, refused


@wallaroo.encoder
def encode(refused):
    return repr(refused)
"""
WAYS = ("os.close", "posix.close", "lambda fd: os.closerange(fd, fd + 1)", "lambda fd: posix.closerange(fd, fd + 1)")


@pytest.mark.parametrize("processes", [1, 2])
def test_user_code_cannot_close_what_the_worker_has_open(tmp_path: Path, kit: Any, processes: int) -> None:
    app = tmp_path / "app.py"
    app.write_text(CLOSING)
    sys.modules.pop("app", None)
    stage = kit.stage_of(load(str(app), ()).application, "0/sources/0")
    with served(tmp_path / "w", app, processes) as (_, channel):
        stub = client(WORKER_SERVICE, channel)
        data = pb.Data(frames=kit.wire([way.encode() for way in WAYS]))
        requests = [pb.Request(opening=pb.Opening(stage=stage)), pb.Request(data=data)]
        replies = list(stub.Process(iter(requests), timeout=SECONDS))
        outputs = [reply.output for reply in replies if reply.HasField("output")]
        assert kit.letters(outputs) == []
        found = [eval(value) for _, value in kit.sunk(outputs)]
        assert all(tried == refused > 3 for tried, refused in found), found
        assert not stub.Init(INIT, timeout=SECONDS).HasField("failure")


def test_damaged_frames_are_a_failure(tmp_path: Path, kit: Any) -> None:
    first, _ = stages(kit)
    with served(tmp_path / "w") as (_, channel):
        requests = [pb.Request(opening=pb.Opening(stage=first)), pb.Request(data=pb.Data(frames=b"x"))]
        replies = list(client(WORKER_SERVICE, channel).Process(iter(requests), timeout=SECONDS))
        assert (replies[-1].failure.code, replies[-1].failure.retriable) == ("W410", False)


def test_split_frames(tmp_path: Path) -> None:
    with served(tmp_path / "w") as (_, channel):
        stub = client(WORKER_SERVICE, channel)
        data = b"\0\0\0\1a\0\0\0\0\0\0\0\5bc"
        reply = stub.SplitFrames(pb.SplitRequest(path="0/sources/0", data=data, max_message_bytes=9), timeout=SECONDS)
        assert (list(reply.lengths), reply.wanted_bytes) == ([5, 4], 9)
        assert stub.SplitFrames(pb.SplitRequest(path="0/sinks/0"), timeout=SECONDS).failure.code == "W403"


def test_sigterm_ends_it_and_its_processes(tmp_path: Path) -> None:
    with served(tmp_path / "w", processes=3) as (worker, channel):
        stub = client(WORKER_SERVICE, channel)
        endpoints = stub.Init(INIT, timeout=SECONDS).endpoints
        assert len(endpoints) == 3
        processes = set()
        for endpoint in endpoints:
            with grpc.insecure_channel(endpoint) as each:
                reply = client(WORKER_SERVICE, each).Init(INIT, timeout=SECONDS)
                assert list(reply.endpoints) == list(endpoints)
                processes.add(reply.process_id)
        assert len(processes) == 3
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(5) == 0
        assert not any(map(is_alive, processes))
        assert not [path for path in (tmp_path / "w").iterdir() if path.suffix == ".sock"]


def test_exit_handlers_of_the_program_run(tmp_path: Path) -> None:
    """Else what a client library holds back until the end is lost, and temporary directories stay."""
    app = tmp_path / "leaving.py"
    app.write_text(
        "import atexit, os, pathlib, tempfile\n"
        f"folder = tempfile.TemporaryDirectory(dir={str(tmp_path)!r}, prefix='held')\n"
        "def leave():\n"
        f"    pathlib.Path({str(tmp_path)!r}, f'left-{{os.getpid()}}').touch()\n"
        "    raise ValueError('reported, and no more')\n"
        "atexit.register(leave)\n" + WORD_COUNT.read_text()
    )
    with served(tmp_path / "w", app, processes=2) as (worker, channel):
        client(WORKER_SERVICE, channel).Init(INIT, timeout=SECONDS)
        assert len([*tmp_path.glob("held*")]) == 2
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(SECONDS) == 0
    assert len([*tmp_path.glob("left-*")]) == 2
    assert not [*tmp_path.glob("held*")]


@pytest.mark.parametrize("victim", ["parent", "child"])
def test_when_one_process_dies_all_end(tmp_path: Path, victim: str) -> None:
    with served(tmp_path / "w", processes=2) as (worker, channel):
        endpoints = client(WORKER_SERVICE, channel).Init(INIT, timeout=SECONDS).endpoints
        with grpc.insecure_channel(endpoints[1]) as each:
            child = client(WORKER_SERVICE, each).Init(INIT, timeout=SECONDS).process_id
        os.kill(worker.pid if victim == "parent" else child, signal.SIGKILL)
        status = worker.wait(SECONDS)
        assert status == (-signal.SIGKILL if victim == "parent" else 1)
        wait_until("the end of the child", lambda: not is_alive(child))


def test_a_setup_that_fails(tmp_path: Path) -> None:
    app = tmp_path / "broken.py"
    app.write_text("def application_setup(args):\n    raise ValueError('no')\n")
    worker = start(tmp_path / "w", app, processes=2)
    assert worker.wait(SECONDS) == 3
    (found,) = json.loads((tmp_path / "w" / "failure.json").read_text())["diagnostics"]
    assert (found["code"], found["message"]) == ("T217", "application_setup failed; ValueError: no")


def test_a_socket_path_that_is_too_long(tmp_path: Path) -> None:
    directory = tmp_path / ("x" * 100)
    assert start(directory).wait(SECONDS) == 3
    (found,) = json.loads((directory / "failure.json").read_text())["diagnostics"]
    assert found["code"] == "W401"
    assert "is longer than 107 bytes" in found["message"]


def test_classes_of_a_program_unpickle_in_another_process(tmp_path: Path, kit: Any) -> None:
    _, second = stages(kit)
    with served(tmp_path / "w") as (_, channel):
        first, _ = stages(kit)
        stub = client(WORKER_SERVICE, channel)
        opening = pb.Opening(application="a", query="q", stage=first)
        data = pb.Data(frames=kit.wire([b"abc"]))
        requests = [pb.Request(opening=opening), pb.Request(data=data)]
        (output, *_) = [reply.output for reply in stub.Process(iter(requests), timeout=SECONDS)]
        bucket = pb.Bucket(bucket=output.bucket, version=pb.Version(), frames=output.frame)
        state = [pb.Request(opening=pb.Opening(stage=second)), pb.Request(bucket=bucket)]
        changes = [
            reply.change for reply in stub.ProcessState(iter(state), timeout=SECONDS) if reply.HasField("change")
        ]
    values = read_frame(changes[0].entries[0]).values()
    with served(tmp_path / "v") as (_, channel):
        bucket.version.CopyFrom(pb.Version(counter=1, nonce=1))
        log = pb.Request(log=pb.StateLog(entries=changes[0].entries))
        state = [pb.Request(opening=pb.Opening(stage=second)), pb.Request(bucket=bucket), log]
        replies = list(client(WORKER_SERVICE, channel).ProcessState(iter(state), timeout=SECONDS))
    assert b"__main__" not in values[0]
    assert kit.sunk([reply.output for reply in replies if reply.HasField("output")]) == [(0, b"abc => 2\n")]


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_the_collector_comes_less_often(tmp_path: Path, kit: Any) -> None:
    app = tmp_path / "told.py"
    app.write_text(
        "import gc, wallaroo\n"
        "def application_setup(args):\n"
        "    ab = wallaroo.ApplicationBuilder('Told')\n"
        "    ab.new_pipeline('p', wallaroo.TCPSourceConfig('127.0.0.1', '7010', decode))\n"
        "    ab.to_sink(wallaroo.TCPSinkConfig('127.0.0.1', '7002', encode))\n"
        "    return ab.build()\n"
        "@wallaroo.decoder(header_length=4, length_fmt='>I')\n"
        "def decode(data):\n"
        "    return data\n"
        "@wallaroo.encoder\n"
        "def encode(message):\n"
        "    return f'{gc.get_threshold()[0]} {gc.get_freeze_count() > 0}'\n"
    )
    stage = kit.stage_of(load(str(app), []).application, "0/sources/0")
    with served(tmp_path / "w", app) as (_, channel):
        requests = [
            pb.Request(opening=pb.Opening(application="a", query="q", stage=stage)),
            pb.Request(data=pb.Data(frames=kit.wire([b"message"]))),
        ]
        replies = list(client(WORKER_SERVICE, channel).Process(iter(requests), timeout=SECONDS))
    outputs = [reply.output for reply in replies if reply.HasField("output")]
    assert [value for _, value in kit.sunk(outputs)] == [f"{OBJECTS} True".encode()]
