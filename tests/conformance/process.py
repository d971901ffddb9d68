"""A worker as its client sees it, and as a process: in a private directory, its output drained, its end awaited."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import grpc

from conformance.application import ARGS, interface_hash
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.rpc import WORKER_SERVICE, client

START_S = 40
CALL_S = 60
LARGEST = (64 + 1) * 1024 * 1024
SERVING = b"\x08\x01"  # of HealthCheckResponse: status 1
OPTIONS = [("grpc.max_receive_message_length", LARGEST), ("grpc.max_send_message_length", LARGEST)]


def wait_until(holds: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait until a condition holds; fails after `seconds` and says what it waited for."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            msg = f"waited {seconds:g} s for {what}"
            raise AssertionError(msg)
        time.sleep(0.02)


def environment(mode: str, args: Sequence[str], directory: Path) -> dict[str, str]:
    """Return the environment that the specification promises to a worker."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WALLAROO_")}
    given = {
        "WALLAROO_ARGS": json.dumps([*args]), "WALLAROO_WORKER_DIR": str(directory), "WALLAROO_WORKER_PROCESSES": "2",
        "WALLAROO_STATE_CACHE_BYTES": str(64 << 20), "WALLAROO_EMIT_FILE": str(directory / "emitted.json"),
    }  # fmt: skip
    return clean | given | ({"WALLAROO_MODE": mode} if mode else {})


def alive_in_session(session: int) -> list[int]:
    """Return the processes of a session that still run."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(entry.name))
    return found


class Drain(threading.Thread):
    """Reads a stream to its end; keeps the last bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(daemon=True)
        self.stream, self.size, self.tail = stream, 0, b""
        self.start()

    def run(self) -> None:
        while block := self.stream.read1(65536):  # type: ignore[attr-defined]
            self.size += len(block)
            self.tail = (self.tail + block)[-20000:]


C = TypeVar("C", bound="Client")


class Client:
    """The calls of a worker that serves.

    Attributes:
        target: Its first endpoint.
        endpoints: All of them, from the handshake on.
        language: As the worker says.
        capabilities: Those that it names.
    """

    target = ""
    language = ""

    def __init__(self) -> None:
        self.channels: dict[str, grpc.Channel] = {}
        self.endpoints: list[str] = []
        self.capabilities: set[str] = set()

    def serving(self, target: str = "") -> bool:
        """Ask the health service."""
        ask = self.channel(target or self.target).unary_unary("/grpc.health.v1.Health/Check")
        reply: bytes = ask(b"", timeout=CALL_S, wait_for_ready=True)
        return reply == SERVING

    def channel(self, target: str) -> grpc.Channel:
        """Return the one channel to an endpoint."""
        if target not in self.channels:
            self.channels[target] = grpc.insecure_channel(target, options=OPTIONS)
        return self.channels[target]

    def stub(self, target: str = "") -> Any:
        """Return a stub for an endpoint; by default for `worker.sock`."""
        return client(WORKER_SERVICE, self.channel(target or self.target))

    def init(self, target: str = "", **changes: object) -> pb.InitReply:
        """Call Init; `changes` replace what a right runtime would send."""
        right = {
            "protocol_min": 1,
            "protocol_max": 1,
            "interface_hash": interface_hash(),
        }
        return self.stub(target).Init(pb.InitRequest(**(right | changes)), timeout=CALL_S, wait_for_ready=True)

    def handshake(self, **changes: object) -> None:
        """Call Init on every endpoint and keep the endpoints."""
        reply = self.init(**changes)
        assert not reply.HasField("failure"), f"Init failed: {reply.failure}"
        self.language, self.capabilities = reply.language, set(reply.capabilities)
        self.endpoints = list(reply.endpoints)
        for endpoint in self.endpoints:
            self.init(endpoint, **changes)

    def endpoint(self, number: int) -> str:
        """Return the endpoint that serves a bucket or partition."""
        return self.endpoints[number % len(self.endpoints)]

    def how_it_ended(self) -> str:
        """Return what is known of its end, where it has ended."""
        return ""

    def close(self) -> None:
        """End the worker and whatever it started."""
        for channel in self.channels.values():
            channel.close()

    def __enter__(self: C) -> C:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Worker(Client):
    """One run of the worker command."""

    def __init__(
        self,
        command: str,
        mode: str = "worker",
        args: Sequence[str] | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="wc-", dir="/tmp"))
        self.socket = self.directory / "worker.sock"
        self.target = f"unix:{self.socket}"
        self.process = subprocess.Popen(
            shlex.split(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment(mode, ARGS if args is None else args, self.directory) | dict(variables or {}),
            start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.out, self.err = Drain(self.process.stdout), Drain(self.process.stderr)

    def said(self) -> str:
        """Return the end of what the worker printed, and its `failure.json`; all of it when it has ended."""
        if self.process.poll() is not None:
            for drain in (self.out, self.err):
                drain.join(timeout=10)
        said = (self.out.tail + self.err.tail).decode(errors="replace")[-2000:]
        failure = self.directory / "failure.json"
        return said + (f"; failure.json: {failure.read_text()}" if failure.exists() else "")

    def how_it_ended(self) -> str:
        """Return status, last words and `failure.json` of a worker that has ended."""
        status = self.process.poll()
        return "" if status is None else f"the worker ended with status {status}: {self.said()}"

    def ready(self) -> "Worker":
        """Wait until the worker serves."""
        wait_until(lambda: self.socket.exists() or self.process.poll() is not None, "worker.sock", START_S)
        assert self.process.poll() is None, self.how_it_ended()
        self.endpoints = [self.target]
        return self

    def end(self, seconds: float) -> int:
        """Wait for the end of the process; returns its exit status."""
        wait_until(lambda: self.process.poll() is not None, "the end of the worker", seconds)
        return int(self.process.returncode)

    def close(self) -> None:
        """End the worker and whatever it started, and remove its directory."""
        super().close()
        for pid in {*alive_in_session(self.process.pid)}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(timeout=10)
        for drain in (self.out, self.err):
            drain.join(timeout=10)
            drain.stream.close()
        shutil.rmtree(self.directory, ignore_errors=True)
