"""Calls a worker with requests that change nothing in the worker. So a call may be repeated if the worker dies."""

from collections.abc import Callable
from typing import Any

import grpc

from wallaroo.message.handshake import CAPABILITIES, PROTOCOLS
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker._proto.worker_pb2_grpc import WorkerStub
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.worker.capability import lacking
from wallaroo_runtime.worker.endpoint import OPTIONS, remote_error

RESTART_SECONDS = 60.0
ATTEMPTS = 5  # tries of a call; some may fail before the supervisor notices that the worker has ended


class IdempotentCalls:
    """Sends requests to a worker, after a handshake at the first request.

    Args:
        target: First endpoint of the worker, `unix:PATH`, which stays the same after a restart.
        path: Path of the source in the topology.
        timeout: Seconds to wait for an answer.
        capability: Capability that the worker must have.
        what: User of the capability, in words, for errors.
    """

    def __init__(self, target: str, path: str, timeout: float, capability: str, what: str) -> None:
        self.path, self.timeout = path, timeout
        self._channel = grpc.insecure_channel(target, options=OPTIONS)
        self._stub, self._capability, self._what = WorkerStub(self._channel), capability, what
        self._has_met = False

    def ask(self, method: str, request: Any, about: str) -> Any:
        """Return the answer to a request. Wait for the worker while it is being restarted.

        Args:
            about: Subject of the question, in words, for errors.

        Raises:
            RunError: W410 if there is no answer; W416 if the worker lacks the capability.
        """
        if not self._has_met:
            self._meet()
        return repeated(getattr(self._stub, method), request, path=self.path, about=about, timeout=self.timeout)

    def _meet(self) -> None:
        request = pb.InitRequest(protocol_min=PROTOCOLS[0], protocol_max=PROTOCOLS[1], capabilities=CAPABILITIES)
        reply = repeated(self._stub.Init, request, path=self.path, about="the handshake", timeout=self.timeout)
        if reply.HasField("failure"):
            raise remote_error(self.path, reply.failure)
        if self._capability not in reply.capabilities:
            lack = lacking(f'"{self._capability}"', self._what)
            raise RunError.of("W416", WORKER, worker=self.path, lack=lack)
        self._has_met = True

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()


def repeated(method: Callable[..., Any], request: Any, *, path: str, about: str, timeout: float) -> Any:
    """Return a worker's answer. While the worker restarts, the call waits.

    Args:
        path: Path of the topology's part that the question is about.
        about: Subject of the question, in words, for errors.
        timeout: Seconds to wait for an answer.

    Raises:
        RunError: W410 if there is no answer.
    """
    attempt = 1
    while True:
        try:
            return method(request, timeout=timeout, wait_for_ready=True)
        except grpc.RpcError as error:
            if attempt == ATTEMPTS or error.code() is not grpc.StatusCode.UNAVAILABLE:
                reason = f"no answer about {about}; {error.code().name}: {error.details()}"
                raise RunError.of("W410", WORKER, worker=path, reason=reason) from error
            attempt += 1
