"""Staging at an egress: the output of one task attempt, sent there once, as it is made."""

import queue
import time
import zlib
from collections.abc import Iterator

import grpc

from wallaroo.message.frame import read_header
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.chunk import CHUNK_BYTES, chunks
from wallaroo_runtime.service.client import PATIENCE_S, ServiceClient
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.storage.outbox.staging import StagedFile

BUFFER_BYTES = 512 * 1024
QUEUE_CHUNKS = 8
LOOK_S = 0.2
FINISH_S = 120.0
STREAM_S = 3600.0


class RemoteStaging:
    """The methods of `StagingWriter`, answered by an egress; a stream is opened with the first frame.

    A stream that breaks fails the attempt: Spark makes another one, which waits until the egress is back.

    Other parameters are those of `StagingWriter`.

    Args:
        service: The egress; the driver has attached.
        patience_s: How long an egress may be away.

    Raises (from every method): `RunError` of the egress, R641, R642, R644 or R648.
    """

    def __init__(
        self,
        service: Service,
        query: str,
        batch: int,
        partition: int,
        task_attempt: int,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._client = ServiceClient(service, patience_s)
        self._patience_s = patience_s
        self._attempt = pb.Attempt(
            epoch=service.epoch,
            query=query,
            batch=batch,
            partition=partition,
            attempt=task_attempt,
        )
        self._prefix = f"{query}-{batch}-{partition}-{task_attempt}"
        self._files: dict[int, StagedFile] = {}
        self._waiting: dict[int, list[bytes]] = {}
        self._waiting_bytes: dict[int, int] = {}
        self._requests: queue.Queue[pb.StageRequest | None] = queue.Queue(QUEUE_CHUNKS)
        self._call: grpc.Future | None = None

    def write(self, port: int, frame: bytes) -> None:
        """Append one whole frame to the file of a port."""
        known = self._files.get(port)
        if known is None:
            known = StagedFile(port, f"{self._prefix}-{port}.frames", 0, 0, 0, self._attempt.partition)
        self._files[port] = StagedFile(
            port,
            known.path,
            known.bytes + len(frame),
            zlib.crc32(frame, known.crc32),
            known.messages + read_header(frame).count,
            known.partition,
        )
        if self._waiting_bytes.get(port, 0) + len(frame) > CHUNK_BYTES:
            self._send(port)
        self._waiting.setdefault(port, []).append(frame)
        self._waiting_bytes[port] = self._waiting_bytes.get(port, 0) + len(frame)
        if self._waiting_bytes[port] >= BUFFER_BYTES:
            self._send(port)

    def so_far(self) -> list[StagedFile]:
        """Return what was written until now."""
        return [file for _, file in sorted(self._files.items())]

    def finish(self) -> list[StagedFile]:
        """Wait until the egress has everything on its disk; return what to publish."""
        if not self._files:
            return []
        for port in list(self._waiting):
            self._send(port)
        self._put(None)
        assert self._call is not None
        try:
            reply = self._call.result(timeout=FINISH_S)
        except grpc.FutureTimeoutError as error:
            self._call.cancel()
            raise self._unreachable(reason=f"no answer within {FINISH_S:g} s") from error
        except grpc.RpcError as error:
            raise self._client.failure(error) from error
        files, mine = [staged_file(file) for file in reply.files], self.so_far()
        if files != mine:
            raise self._client.broke_rules(reason=f"it has staged {files[:2]}; sent were {mine[:2]}")
        return files

    def abort(self) -> None:
        """Break the stream; the egress removes what it has of it."""
        if self._call is not None:
            self._call.cancel()

    def _send(self, port: int) -> None:
        data = b"".join(self._waiting.pop(port, []))
        self._waiting_bytes.pop(port, None)
        for chunk in chunks(data) if data else ():
            self._put(pb.StageRequest(port=port, chunk=chunk))

    def _put(self, request: pb.StageRequest | None) -> None:
        if self._call is None:
            self._open()
        assert self._call is not None
        deadline = time.monotonic() + self._patience_s
        while True:
            if self._call.done() and request is not None:
                self._raise_end()
            try:
                self._requests.put(request, timeout=LOOK_S)
            except queue.Full:
                if self._call.done():
                    self._raise_end()
                if time.monotonic() > deadline:
                    self._call.cancel()
                    raise self._unreachable(reason=f"it took nothing for {self._patience_s:g} s") from None
                continue
            return

    def _raise_end(self) -> None:
        assert self._call is not None
        error = self._call.exception()
        if isinstance(error, grpc.RpcError):
            raise self._client.failure(error) from error
        raise self._client.broke_rules(reason="it ended the stream before everything was sent")

    def _open(self) -> None:
        # One call that may be repeated comes first: a stream that finds nobody would cost an attempt.
        self._client.call("Status", pb.StatusRequest(epoch=self._attempt.epoch))
        self._call = self._client.stub.Stage.future(
            self._stream(), timeout=STREAM_S, metadata=self._client.metadata, wait_for_ready=True
        )

    def _stream(self) -> Iterator[pb.StageRequest]:
        yield pb.StageRequest(attempt=self._attempt)
        while True:
            try:
                request = self._requests.get(timeout=LOOK_S)
            except queue.Empty:
                if self._call is not None and self._call.done():
                    return
                continue
            if request is None:
                yield pb.StageRequest(is_last=True)
                return
            yield request

    def _unreachable(self, reason: str) -> RunError:
        service = self._client.service
        return RunError.of("R642", service=service.kind, address=service.address, reason=reason)


def staged_file(message: pb.StagedFile) -> StagedFile:
    """Return a descriptor as the driver has it; its path is a name at the egress."""
    return StagedFile(message.port, message.name, message.bytes, message.crc32, message.messages, message.partition)
