"""A worker with one fault: stands between the driver and a right worker.

python wrong_worker.py FAULT COMMAND...
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker._proto.worker_pb2_grpc import WorkerServicer, WorkerStub, add_WorkerServicer_to_server

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from conformance.fault import FAULTS, Fault  # noqa: E402
from conformance.process import CALL_S, OPTIONS, START_S, wait_until  # noqa: E402

PR_SET_PDEATHSIG = 1
INIT = pb.InitRequest(protocol_min=1, protocol_max=1)


class Proxy(WorkerServicer):
    """Passes every call on to the right worker's endpoint, through the fault."""

    def __init__(self, name: str, target: str, names: dict[str, str]) -> None:
        self.name, self.names = name, names
        self.stub = WorkerStub(grpc.insecure_channel(target, options=OPTIONS))

    def fault(self) -> Fault:
        return FAULTS[self.name]()

    def Init(self, request: pb.InitRequest, context: grpc.ServicerContext) -> pb.InitReply:
        self.fault().init_request(request)
        reply = self.stub.Init(request, timeout=CALL_S, wait_for_ready=True)
        endpoints = [self.names[target] for target in reply.endpoints]
        del reply.endpoints[:]
        reply.endpoints.extend(endpoints)
        return reply

    def Process(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        return self.stream(self.stub.Process, requests, context)

    def ProcessState(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        return self.stream(self.stub.ProcessState, requests, context)

    def stream(self, method: Any, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        fault = self.fault()

        def changed() -> Iterator[Any]:
            for request in requests:
                fault.request(request)
                yield request

        call = method(changed(), timeout=CALL_S)
        context.add_callback(call.cancel)
        for reply in call:
            yield from fault.reply(reply)

    def SplitFrames(self, request: pb.SplitRequest, context: grpc.ServicerContext) -> pb.SplitReply:
        reply = self.stub.SplitFrames(request, timeout=CALL_S)
        self.fault().split(reply)
        return reply


def serve(proxy: Proxy, address: str) -> grpc.Server:
    """Start a server of the proxy."""
    server = grpc.server(ThreadPoolExecutor(32), options=OPTIONS)
    add_WorkerServicer_to_server(proxy, server)
    status = health.HealthServicer()
    status.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(status, server)
    server.add_insecure_port(address)
    server.start()
    return server


def die_with_parent() -> None:
    """Ask the kernel to end this process with the proxy."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def main(name: str, command: list[str]) -> int:
    """Start the right worker in a directory of its own and serve in its place."""
    directory = Path(os.environ.get("WALLAROO_WORKER_DIR", "."))
    if os.environ.get("WALLAROO_MODE") != "worker" or "--fail" in os.environ.get("WALLAROO_ARGS", ""):
        os.execvp(command[0], command)
    inner = directory / "right"
    shutil.rmtree(inner, ignore_errors=True)  # of a worker before
    inner.mkdir(mode=0o700)
    right = subprocess.Popen(
        command, env=os.environ | {"WALLAROO_WORKER_DIR": str(inner)},
        preexec_fn=None if name == "leaves-orphan" else die_with_parent,
    )  # fmt: skip
    socket = inner / "worker.sock"
    wait_until(lambda: socket.exists() or right.poll() is not None, "the right worker", START_S)
    target = f"unix:{socket}"
    with grpc.insecure_channel(target) as channel:
        reply = WorkerStub(channel).Init(INIT, timeout=CALL_S, wait_for_ready=True)
    names = {
        endpoint: f"unix:{directory}/{'worker' if number == 0 else f'proxy{number}'}.sock"
        for number, endpoint in enumerate(reply.endpoints)
    }
    servers = [serve(Proxy(name, endpoint, names), address) for endpoint, address in list(names.items())[::-1]]
    done = threading.Event()
    signal.signal(signal.SIGTERM, signal.SIG_IGN if name == "ignores-sigterm" else lambda *_: done.set())
    while not done.wait(0.2) and right.poll() is None:
        pass
    right.terminate()
    for server in servers:
        server.stop(2)
    begin = time.monotonic()
    right.wait(timeout=10)
    return 0 if time.monotonic() - begin < 10 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
