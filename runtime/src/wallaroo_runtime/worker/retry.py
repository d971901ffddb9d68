"""Calls of a worker that change nothing in it, and are simply made again when it dies."""

from collections.abc import Callable
from typing import Any

import grpc

from wallaroo_runtime.errors import WORKER, RunError

RESTART_SECONDS = 60.0
ATTEMPTS = 5  # a dying process may break the calls that come while its end is noticed


def repeated(method: Callable[..., Any], request: Any, *, path: str, about: str, timeout: float) -> Any:
    """Return a worker's answer; waits for the worker while it is being restarted.

    Args:
        method: Of a gRPC stub.
        request: What to ask.
        path: Of the part of the topology that it is about.
        about: What no answer was given about, for people.
        timeout: How long to wait for an answer, in seconds.

    Raises:
        RunError: W410, there is no answer.
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
