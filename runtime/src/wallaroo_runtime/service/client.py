"""Calls a service with its token, over one channel. Calls are repeated while the service is away."""

import threading
import time
from collections.abc import Mapping
from typing import Any

import grpc

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.worker.host.rpc import client
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.service.failure import FAILURES_KEY, read_failures
from wallaroo_runtime.system.backoff import Backoff

MESSAGE_BYTES = 2 * 1024 * 1024
PATIENCE_S = 60.0
CALL_S = 30.0
OPTIONS = (
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
)
SERVICES = {
    "gateway": pb.DESCRIPTOR.services_by_name["JournalService"],
    "egress": pb.DESCRIPTOR.services_by_name["OutboxService"],
}
OTHER = {"gateway": "egress", "egress": "gateway"}
PASSING = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.INTERNAL,
    }
)

_channels: dict[tuple[str, str], grpc.Channel] = {}  # channels stay open until the process ends
_lock = threading.Lock()


def channel_to(service: Service) -> grpc.Channel:
    """Return the gRPC channel of this process to a gateway or egress. All calls share it."""
    key = (service.address, service.authority)
    with _lock:
        if key not in _channels:
            if service.authority:
                credentials = grpc.ssl_channel_credentials(service.authority.encode())
                _channels[key] = grpc.secure_channel(service.address, credentials, options=OPTIONS)
            else:
                _channels[key] = grpc.insecure_channel(service.address, options=OPTIONS)
        return _channels[key]


def close_channel(service: Service) -> None:
    """Close the gRPC channel of this process to a gateway or egress."""
    with _lock:
        if (channel := _channels.pop((service.address, service.authority), None)) is not None:
            channel.close()


class Away(RunError):
    """The service cannot be reached now (R642)."""


class ServiceClient:
    """Calls the methods of one gateway or egress.

    Args:
        service: The service, with the driver's epoch.
        patience_s: Seconds for which `call` tries again while the service cannot be reached.

    Attributes:
        stub: The methods of the service, as gRPC has them.
        metadata: Metadata that each call must carry.
    """

    def __init__(self, service: Service, patience_s: float = PATIENCE_S) -> None:
        self.service, self._patience_s = service, patience_s
        self.stub: Any = client(SERVICES[service.kind], channel_to(service))
        self.metadata = (("authorization", f"Bearer {service.token}"),)

    def call(self, method: str, request: Any) -> Any:
        """Call a method, and repeat the call while the service is away. The method must allow repeated calls.

        Raises:
            RunError: The error that the service answers; R641 if it refuses the token; R642 if it was away for too
                long; R648 if it breaks the protocol.
        """
        patience = Patience(self, self._patience_s)
        while True:
            try:
                return getattr(self.stub, method)(request, timeout=CALL_S, metadata=self.metadata)
            except grpc.RpcError as error:
                patience.wait(error)

    def look(self, method: str, request: Any, seconds: float) -> Any:
        """Call a method once, without a repetition if the service is away.

        Args:
            seconds: Deadline of the call.

        Raises:
            Away: The service cannot be reached now.
            RunError: The error that the service answers; R641 if it refuses the token; R648 if it breaks the protocol.
        """
        try:
            return getattr(self.stub, method)(request, timeout=seconds, metadata=self.metadata)
        except grpc.RpcError as error:
            failure = self.failure(error)
            is_away = error.code() in PASSING and not findings_of(error)
            raise (Away(failure.diagnostics) if is_away else failure) from error

    def failure(self, error: grpc.RpcError) -> RunError:
        """Return the error for a failed call, from the answer of gRPC."""
        kind, address = self.service.kind, self.service.address
        code, details = error.code(), (error.details() or "")[:300]
        findings = findings_of(error)
        if findings:
            return RunError(findings)
        if code is grpc.StatusCode.UNAUTHENTICATED:
            return RunError.of("R641", service=kind, address=address)
        if code is grpc.StatusCode.UNIMPLEMENTED and self._is_the_other():
            other = OTHER[kind]
            reason = f"--{kind} {address} names {'an' if other == 'egress' else 'a'} {other}"
            fix = f"give the address of the {kind} with --{kind}, that of the {other} with --{other}"
            return RunError.of("R608", USAGE, reason=reason, fix=fix)
        if code in PASSING:
            return RunError.of("R642", service=kind, address=address, reason=details or code.name)
        return self.broke_rules(f"{code.name} {details}")

    def _is_the_other(self) -> bool:
        """Return whether an egress answers in place of a gateway, or a gateway in place of an egress."""
        stub = client(SERVICES[OTHER[self.service.kind]], channel_to(self.service))
        try:
            stub.Status(pb.StatusRequest(), timeout=CALL_S, metadata=self.metadata)
        except grpc.RpcError as error:
            return bool(findings_of(error))
        return True

    def broke_rules(self, reason: str) -> RunError:
        """Return the error for an answer that breaks the protocol."""
        return RunError.of("R648", service=self.service.kind, address=self.service.address, reason=reason)


class Patience:
    """Decides for how long a failed call to a service is repeated, and waits between the tries.

    Args:
        seconds: Time for which a call is repeated, after the last call of `progressed`.
    """

    def __init__(self, client: ServiceClient, seconds: float) -> None:
        self._client, self._seconds = client, seconds
        self.progressed()

    def progressed(self) -> None:
        """Start the time limit again, because the service has answered."""
        self._deadline = time.monotonic() + self._seconds
        self._backoff = Backoff(0.05, 1.0)

    def wait(self, error: grpc.RpcError) -> None:
        """Wait before the next try.

        Raises:
            RunError: The error of the call, if another try would not help or the time is over.
        """
        is_passing = error.code() in PASSING and not findings_of(error)
        if not is_passing or time.monotonic() >= self._deadline:
            raise self._client.failure(error) from error
        time.sleep(self._backoff.next())


def findings_of(error: grpc.RpcError) -> list[Diagnostic]:
    """Return the diagnostics in a service's answer; empty if the answer has none."""
    trailing: Mapping[str, Any] = dict(error.trailing_metadata() or ())
    return read_failures(trailing.get(FAILURES_KEY, b""))
