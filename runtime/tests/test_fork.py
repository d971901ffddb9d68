"""Programs start while a channel of gRPC is open, also those that a function prepares in the child, as Spark's JVM."""

import subprocess
import sys

import pytest

PROGRAM = """
import signal, subprocess
from concurrent import futures
from wallaroo_runtime.cli.main import main

main(["--help"])
import grpc

def prepare():
    signal.signal(signal.SIGINT, signal.SIG_IGN)

class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, _: request)

server = grpc.server(futures.ThreadPoolExecutor(2), handlers=(Echo(),))
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    call = channel.unary_unary("/echo/echo")
    ends = []
    for _ in range(150):
        assert call(b"x", timeout=30) == b"x"
        ends.append(subprocess.run(["true"], preexec_fn=prepare, stderr=subprocess.DEVNULL).returncode)
server.stop(None).wait()
print("ends", *sorted(set(ends)))
"""


@pytest.mark.slow
def test_an_open_channel_keeps_no_program_from_starting() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "ends 0"), done.stderr
