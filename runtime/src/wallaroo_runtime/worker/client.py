"""Calls workers, one call at a time per stream, and finds a worker again after it has ended."""

import contextlib
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.worker.capability import check_capabilities
from wallaroo_runtime.worker.discovery import ending_of, kill_worker, recover_worker
from wallaroo_runtime.worker.ending import OUTSIDE, PREFIX, is_own, parse
from wallaroo_runtime.worker.endpoint import Endpoints, connect_worker, remote_error
from wallaroo_runtime.worker.spec import WorkerSpec

BROKEN_LIMIT, RETRY_LIMIT = 30, 3
FLIGHT_BYTES = 256
NOBODY = "", -1
_numbers = count()


class Broken(Exception):
    """The worker ended. The caller must repeat those calls of the stream that have no answer.

    Attributes:
        skips: The message that ended or stalled the worker, if known. The repeated call must leave it out.
    """

    def __init__(self, skip: pb.Skip | None = None) -> None:
        super().__init__()
        self.skips = [skip] if skip else []


class CallStream(ABC):
    """A stream of requests to a worker and its replies, within one gRPC call."""

    def __init__(self, client: "CallClient", replies: Iterator[Any]) -> None:
        self._client, self._replies = client, replies

    @abstractmethod
    def send(self, request: Any) -> None:
        """Send a request to the worker."""

    def receive(self) -> Any:
        """Return the worker's next reply.

        Raises:
            Broken: The worker ended without a reply, and serves again.
            RunError: The error that the worker reports.
        """
        reply = next(self._replies, None)
        if reply is None:
            msg = "it ended a stream that was not finished"
            raise self._client.broke_rules(msg)
        if reply.HasField("failure"):
            self.close()
            self._client.failed(reply.failure)
            raise Broken
        return reply

    def finish(self) -> None:
        """End the call after the last reply.

        Raises:
            RunError: W410 if the worker sends another reply.
        """
        late = next(self._replies, None)
        if late is not None:
            msg = f"{late.WhichOneof('kind') or 'an empty reply'} came after the last call was done"
            raise self._client.broke_rules(msg)
        self.close()

    @abstractmethod
    def close(self) -> None:
        """End the call at once, even if replies are missing."""


class CallClient(ABC):
    """Opens streams to a worker, in this process (`memory/local.py`) or in another (`WorkerClient`)."""

    def __init__(self, spec: WorkerSpec) -> None:
        self.spec = spec
        self._retries = 0

    @property
    def width(self) -> int:
        """Number of endpoints that share the buckets."""
        return 1

    @abstractmethod
    def open(self, number: int, method: str, opening: pb.Opening) -> CallStream:
        """Open a stream at the endpoint of a partition or bucket, and send the opening.

        Args:
            number: Number of the partition or bucket.
            method: `Process` or `ProcessState`.
            opening: Opening of the stream, e.g. with its stage.
        """

    def progressed(self) -> None:
        """Note that a call was answered, so that earlier failures no longer count."""
        self._retries = 0

    def failed(self, failure: pb.Failure) -> None:
        """Count a failure that the worker reported. Raise the reported error, unless a repeated call may succeed."""
        self._retries += 1
        if not failure.retriable or self._retries > RETRY_LIMIT:
            raise remote_error(self.spec.name, failure)

    def broke_rules(self, reason: str) -> RunError:
        """Return the error for a worker that breaks the protocol."""
        return RunError.of("W410", WORKER, worker=self.spec.name, reason=reason)

    @abstractmethod
    def close(self) -> None:
        """End the connections."""


class WorkerClient(CallClient):
    """Opens streams to the worker process that a spec describes, and connects again after the worker has restarted."""

    def __init__(self, spec: WorkerSpec) -> None:
        super().__init__(spec)
        self._endpoints: Endpoints | None = None
        self._broken = 0
        self.suspect = NOBODY  # stage and ordinal of the message in flight when the worker last ended

    def endpoints(self) -> Endpoints:
        """Return the worker's endpoints. Connect first if needed.

        Raises:
            RunError: The worker cannot be started or used.
        """
        # Otherwise gRPC would connect to the next process at the same socket without a handshake.
        if self._endpoints is None or not self._endpoints.connection.is_alive():
            self.close()
            self._endpoints = connect_worker(self.spec)
        return self._endpoints

    @property
    def width(self) -> int:
        """Number of endpoints that share the buckets."""
        return len(self.endpoints().stubs)

    def open(self, number: int, method: str, opening: pb.Opening) -> CallStream:
        """Open a stream at the endpoint of a partition or bucket, and send the opening."""
        endpoints = self.endpoints()
        check_capabilities(self.spec, opening.stage, endpoints.init.capabilities)
        stream = WorkerStream(self, endpoints, getattr(endpoints.stub(number), method), opening)
        noted = pb.Opening(in_flight=str(stream.flight))
        noted.MergeFrom(opening)
        stream.send(pb.Request(opening=noted))
        return stream

    def progressed(self) -> None:
        """Note that a call was answered, so that earlier failures no longer count."""
        super().progressed()
        self._broken, self.suspect = 0, NOBODY

    def recover(self, endpoints: Endpoints, cause: grpc.RpcError) -> None:
        """Wait for the new process that replaces an ended process of the worker.

        Raises:
            RunError: W406 if the worker has ended too often; W410 if its streams break for another reason.
        """
        self._broken += 1
        self.close()
        recover_worker(endpoints.connection)
        if self._broken > BROKEN_LIMIT:
            details = cause.details() if isinstance(cause, grpc.Call) else cause
            reason = f"its streams broke {self._broken} times in a row; last: {details}"
            raise self.broke_rules(reason) from cause

    def close(self) -> None:
        """End the connections."""
        if self._endpoints is not None:
            self._endpoints.close()
            self._endpoints = None


class WorkerStream(CallStream):
    """A stream to a worker process, which kills the worker if a message takes longer than the deadline.

    Attributes:
        flight: The file in which the worker notes the message in flight (SPECIFICATION.md, section 4); each change of
            the file is progress.
    """

    def __init__(
        self,
        client: WorkerClient,
        endpoints: Endpoints,
        method: Callable[..., Iterator[Any]],
        opening: pb.Opening,
    ) -> None:
        self._worker, self._endpoints, self._stage = client, endpoints, opening.stage.id
        self._requests: SimpleQueue[Any] = SimpleQueue()
        self._turns, self._has_hung = 0, False
        self._is_over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="call-deadline", daemon=True)
        name = f"{PREFIX}{os.getpid()}-memory{next(_numbers)}"
        self.flight = Path(endpoints.connection.directory, name)
        with contextlib.suppress(OSError):  # the worker is gone, which the stream will report
            self.flight.write_bytes(bytes(FLIGHT_BYTES))
        self._call: Any = method(iter(self._requests.get, None))
        super().__init__(client, self._call)
        self._watcher.start()

    def send(self, request: Any) -> None:
        """Give a request to the sending thread."""
        self._requests.put(request)

    def receive(self) -> Any:
        """Return the next reply.

        Raises:
            Broken: The worker ended without a reply, and serves again.
            RunError: The error that the worker reports; W411 if it does not answer in time.
        """
        self._turns += 1
        try:
            return super().receive()
        except grpc.RpcError as error:
            skip = self._stalled() if self._has_hung else self._ended()
            self.close()
            self._worker.recover(self._endpoints, error)
            raise Broken(skip) from error
        finally:
            self._turns += 1

    def _stalled(self) -> pb.Skip:
        """Kill the worker, and return the message that takes too long.

        Raises:
            RunError: W411 if no message is in flight.
        """
        seconds, message = f"{self._worker.spec.deadline_ms / 1000:g}", parse(self.flight.read_bytes()[:32]).message
        is_known = 0 < message < OUTSIDE
        kill_worker(self._endpoints.connection, f"it gave no answer within {seconds} s", is_excused=is_known)
        if not is_known:
            self.close()
            raise RunError.of("W411", WORKER, worker=self._worker.spec.name, seconds=seconds, stage=self._stage)
        return pb.Skip(ordinal=message - 1, code="C509", reason=f"no answer within {seconds} s")

    def _ended(self) -> pb.Skip | None:
        """Return the message that ended the worker, if a fault of the worker or a second end proves this."""
        ending = ending_of(self._endpoints.connection)
        _, ordinal = ending.at_work.get(self.flight.name, (0, -1)) if ending else (0, -1)
        before, self._worker.suspect = self._worker.suspect, (self._stage, ordinal)
        if ending is None or ending.killed_for or not 0 <= ordinal < OUTSIDE - 1:
            return None
        is_certain = is_own(ending.status) or before == self._worker.suspect
        reason = f"the worker ended while it ran this message; {ending.text}"
        return pb.Skip(ordinal=ordinal, code="C508", reason=reason) if is_certain else None

    def _watch(self) -> None:
        """Cancel the call if a thread waits for a reply, and no progress was made within the deadline."""
        noted = (0, b"")
        while not self._is_over.wait(self._worker.spec.deadline_ms / 1000):
            seen = (self._turns, self.flight.read_bytes() if self.flight.exists() else b"")
            if seen == noted and self._turns % 2:
                self._has_hung = True
                self._call.cancel()
                return
            noted = seen

    def finish(self) -> None:
        """Send the end of the requests, and wait for the end of the call."""
        self._requests.put(None)
        with contextlib.suppress(grpc.RpcError):  # every call has its answer, so an error at the end does not matter
            super().finish()
        self.close()

    def close(self) -> None:
        """End the stream at once, even if replies are missing."""
        self._is_over.set()
        self._requests.put(None)
        self._call.cancel()
        self.flight.unlink(missing_ok=True)
