"""Serves the worker protocol on a Unix socket until the process gets a signal to stop."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo.worker.host import trace
from wallaroo.worker.host.rpc import WORKER_SERVICE, add_service
from wallaroo.worker.host.service import WorkerService

MAX_MESSAGE_BYTES = 65 * 1024 * 1024
MAX_STREAMS = 256
MAX_SOCKET_BYTES = 107  # the longest path of a Unix socket that the kernel accepts
STOP_SECONDS = 4.0


class WorkerServer:
    """A gRPC server on a Unix socket, which gets its final name only when the server serves.

    Args:
        service: The service.
        socket: Path of the socket.

    Raises:
        DiagnosticError: W401 if the socket cannot be made.
    """

    def __init__(self, service: WorkerService, socket: Path) -> None:
        self._socket, self._temporary = socket, socket.with_name(f".{socket.name}.{os.getpid()}")
        if len(os.fsencode(self._temporary)) > MAX_SOCKET_BYTES:
            msg = f"its path {self._temporary} is longer than {MAX_SOCKET_BYTES} bytes"
            raise _cannot_start(msg)
        self._server = grpc.server(
            ThreadPoolExecutor(MAX_STREAMS, thread_name_prefix="call"),
            options=[
                ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
                ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
            ],
        )
        add_service(WORKER_SERVICE, service, self._server)
        status = health.HealthServicer()
        status.set("", health_pb2.HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(status, self._server)
        self._temporary.unlink(missing_ok=True)
        try:
            self._server.add_insecure_port(f"unix:{self._temporary}")
        except RuntimeError as err:
            raise _cannot_start(str(err)) from err

    def start(self) -> None:
        """Begin to serve on a socket with a temporary name. `show` gives the socket its final name."""
        self._server.start()

    def show(self) -> None:
        """Give the socket its final name."""
        os.replace(self._temporary, self._socket)

    def stop(self) -> None:
        """Wait a few seconds at most for the calls in flight, and remove the socket."""
        self._server.stop(STOP_SECONDS).wait()
        trace.flush()
        self._socket.unlink(missing_ok=True)


def _cannot_start(reason: str) -> DiagnosticError:
    fix = "use a temporary directory with a short path that can be written"
    return DiagnosticError([Diagnostic.of("W401", worker="main", reason=f"no socket; {reason}", fix=fix)])
