"""gRPC connections to the endpoints of a worker, after the handshake."""

import re
from dataclasses import dataclass, field
from typing import Any

import grpc

from wallaroo.diagnostic.diagnostic import Diagnostic, catalogue
from wallaroo.message.handshake import CAPABILITIES, PROTOCOLS, common_version, shown_versions
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.rpc import WORKER_SERVICE, client
from wallaroo_runtime.errors import WORKER, RunError, other_interface
from wallaroo_runtime.system.process import ProcessId
from wallaroo_runtime.worker.discovery import ServingWorker, ensure_worker, recover_worker
from wallaroo_runtime.worker.spec import WorkerSpec

MESSAGE_BYTES = (64 + 1) * 1024 * 1024
INIT_SECONDS = 30.0
_CODE = re.compile("[TPWCRI][0-9]{3}")
OPTIONS = (
    ("grpc.max_send_message_length", MESSAGE_BYTES),
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.optimization_target", "throughput"),
)


def remote_error(worker: str, failure: pb.Failure) -> RunError:
    """Return the error that a worker reported, with its traceback. Unknown codes stay as they are."""
    if not _CODE.fullmatch(failure.code):
        return RunError.of("W410", WORKER, worker=worker, reason=f"unknown code {failure.code!r}: {failure.message}")
    known = catalogue().get(failure.code, {"fix": "{}"})["fix"]
    # A remedy with placeholders cannot be filled in, since the worker has not sent the values.
    fix = failure.fix or (known if "{" not in known else f"look at the log of worker {worker!r}")
    place = failure.pointer, failure.file, failure.line
    return RunError([Diagnostic(failure.code, failure.message, fix, *place, failure.traceback)], WORKER)


@dataclass(slots=True)
class Endpoints:
    """The endpoints of one worker process, each with an open channel."""

    connection: ServingWorker
    init: pb.InitReply
    channels: list[grpc.Channel] = field(default_factory=list)
    stubs: list[Any] = field(default_factory=list)

    def stub(self, number: int) -> Any:
        """Return the stub of the endpoint that serves a partition or bucket."""
        return self.stubs[number % len(self.stubs)]

    def close(self) -> None:
        """Close the channels. Streams that are still open end."""
        for channel in self.channels:
            channel.close()


def connect_worker(spec: WorkerSpec, owner: ProcessId | None = None, *, retry: bool = False) -> Endpoints:
    """Start a worker, unless it runs, and shake hands with it.

    Args:
        owner: Process whose end is also the end of the worker; by default the Java virtual machine that started this
            process.
        retry: Whether a worker that has failed for good is started again, as in a new run.

    Raises:
        RunError: The worker cannot be started or used.
    """
    connection = ensure_worker(spec, owner, retry=retry)
    while True:  # ends with an error if the worker has ended too often
        try:
            return connect(connection)
        except grpc.RpcError:
            connection = recover_worker(connection, owner)


def connect(connection: ServingWorker) -> Endpoints:
    """Shake hands with every endpoint of a worker.

    Raises:
        RunError: W416 or W403 if the worker does not fit; the error with which the worker refuses.
        grpc.RpcError: The worker has ended.
    """
    first = grpc.insecure_channel(connection.target, options=OPTIONS)
    endpoints = Endpoints(connection, pb.InitReply(), [first], [client(WORKER_SERVICE, first)])
    try:
        endpoints.init = _init(connection.spec, endpoints.stubs[0])
        targets = list(endpoints.init.endpoints) or [connection.target]
        for target in targets:
            if not target.startswith("unix:"):
                reason = f"endpoint {target!r} is not a Unix domain socket"
                raise RunError.of("W410", WORKER, worker=connection.spec.name, reason=reason)
        # Often these include the first target again. A second connection to it costs little and keeps the order.
        endpoints.channels = [grpc.insecure_channel(target, options=OPTIONS) for target in targets]
        endpoints.stubs = [client(WORKER_SERVICE, channel) for channel in endpoints.channels]
        for stub in endpoints.stubs:
            _init(connection.spec, stub)
    except BaseException:
        endpoints.close()
        raise
    finally:
        first.close()
    return endpoints


def init_request(spec: WorkerSpec) -> pb.InitRequest:
    """Return the request of the handshake with a worker."""
    return pb.InitRequest(
        protocol_min=PROTOCOLS[0],
        protocol_max=PROTOCOLS[1],
        capabilities=CAPABILITIES,
        interface_hash=spec.interface_hash,
    )


def _init(spec: WorkerSpec, stub: Any) -> pb.InitReply:
    reply: pb.InitReply = stub.Init(init_request(spec), timeout=INIT_SECONDS, wait_for_ready=True)
    if reply.HasField("failure") and not (reply.protocol_max and reply.interface_hash):  # nothing else was sent
        raise remote_error(spec.name, reply.failure)
    theirs = (reply.protocol_min, reply.protocol_max)
    if not common_version(PROTOCOLS, theirs):
        actual, expected = shown_versions(theirs), shown_versions(PROTOCOLS)
        lack = f"speaks protocol {actual}; the runtime speaks {expected}"
        raise RunError.of("W416", WORKER, worker=spec.name, lack=lack)
    if spec.interface_hash and reply.interface_hash != spec.interface_hash:
        finding = other_interface(spec.name, reply.interface_hash, spec.interface_hash)
        raise RunError([finding], WORKER)
    if reply.HasField("failure"):
        raise remote_error(spec.name, reply.failure)
    return reply
