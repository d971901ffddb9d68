"""The gRPC server of a service: its address, the check of the token, the answers to errors."""

import functools
import hmac
import inspect
import os
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeVar

import grpc

from wallaroo_runtime.durable.file import disk_failure
from wallaroo_runtime.errors import RUN, USAGE, RunError
from wallaroo_runtime.service.attachment import AttachmentStore
from wallaroo_runtime.service.client import MESSAGE_BYTES
from wallaroo_runtime.service.credential import Listen
from wallaroo_runtime.service.failure import FAILURES_KEY, pack_failures
from wallaroo_runtime.service.host import Host

THREADS = 256
LOOK_S = 0.5
GRACE_S = 2.0
OPTIONS = (
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.so_reuseport", 0),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
)
Method = TypeVar("Method", bound=Callable[..., Any])


class TokenCheck(grpc.ServerInterceptor):  # type: ignore[misc]
    """Refuses every call without the token, before any request is read."""

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

    def intercept_service(
        self, continuation: Callable[[Any], Any], handler_call_details: grpc.HandlerCallDetails
    ) -> Any:
        """Check the token in the metadata of a call."""
        tokens = [value for key, value in handler_call_details.invocation_metadata if key == "authorization"]
        text = tokens[0] if len(tokens) == 1 else ""
        value = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
        if hmac.compare_digest(value, self._expected):
            return continuation(handler_call_details)
        return grpc.stream_stream_rpc_method_handler(_refuse)


def _refuse(requests: Iterator[bytes], context: grpc.ServicerContext) -> NoReturn:
    context.abort(grpc.StatusCode.UNAUTHENTICATED, "the token is missing or wrong")
    raise AssertionError  # abort raises


def answering(method: Method) -> Method:
    """Decorate a method of a gRPC service, so that its `RunError` is sent to the caller, and R626 if the disk is full.

    If the method yields, the returned method yields, too.
    """

    @functools.wraps(method)
    def unary(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(self, request, context)
        except RunError as error:
            _answer(error, context)
        except OSError as error:
            _answer(_of_disk(error, self._host.store), context)

    @functools.wraps(method)
    def stream(self: Any, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        try:
            yield from method(self, request, context)
        except RunError as error:
            _answer(error, context)
        except OSError as error:
            _answer(_of_disk(error, self._host.store), context)

    return stream if inspect.isgeneratorfunction(method) else unary  # type: ignore[return-value]


def _of_disk(error: OSError, store: AttachmentStore) -> RunError:
    if failure := disk_failure(error, f"the {store.kind} at {store.address}"):
        return failure
    raise error


def _answer(error: RunError, context: grpc.ServicerContext) -> NoReturn:
    context.set_trailing_metadata(((FAILURES_KEY, pack_failures(error.diagnostics)),))
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, error.diagnostics[0].message[:300])
    raise AssertionError  # abort raises


def _refusal(address: str) -> str:
    """Return the reason why a server cannot listen at an address, since gRPC only logs it; empty if it can listen."""
    host, _, port = address.rpartition(":")
    try:
        if host == "unix":
            with socket.socket(socket.AF_UNIX) as probe:
                probe.bind(port)
            os.unlink(port)
        else:
            family = socket.AF_INET6 if "]" in host else socket.AF_INET
            socket.create_server((host.strip("[]"), int(port)), family=family).close()
    except OSError as error:
        number = error.errno or 0
        return os.strerror(number) if number > 0 else error.strerror or str(error)
    return ""


def serve_until(is_over: Callable[[float], bool], host: Host, server: grpc.Server) -> int:
    """Serve until `is_over` returns True, or the host cannot go on. Return the exit code.

    Args:
        is_over: Waits for the given number of seconds, and returns whether to end.
        host: The gateway or egress. At the end it is closed while the server still answers calls.
    """
    while not is_over(LOOK_S) and not host.ended.is_set():
        pass
    host.close()
    host.release()
    server.stop(GRACE_S).wait()
    return RUN if host.ended.is_set() else 0


def serve(kind: str, listen: Listen, add: Callable[[grpc.Server], None]) -> tuple[grpc.Server, str]:
    """Start the gRPC server of a gateway or an egress.

    Args:
        kind: `gateway` or `egress`.

    Returns:
        The server and its address.

    Raises:
        RunError: R714 if the server cannot listen at the address.
    """
    interceptors = [TokenCheck(listen.token)] if listen.token else []
    executor = ThreadPoolExecutor(THREADS, thread_name_prefix=kind)
    server = grpc.server(executor, options=OPTIONS, interceptors=interceptors)
    add(server)
    try:
        if listen.certificate:
            credentials = grpc.ssl_server_credentials([(listen.key, listen.certificate)])
            port = server.add_secure_port(listen.address, credentials)
        else:
            port = server.add_insecure_port(listen.address)
    except (RuntimeError, ValueError) as error:
        reason = _refusal(listen.address) or str(error)[:200]
        host, _, path = listen.address.rpartition(":")
        address = os.path.realpath(path) if host == "unix" else listen.address
        raise RunError.of(
            "R714", USAGE, what=f"the {kind}", address=address, reason=reason, option="--listen"
        ) from error
    server.start()
    return server, f"{listen.address.rpartition(':')[0]}:{port}"
