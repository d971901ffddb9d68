"""The outbox of an egress, as the driver uses it."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import grpc

from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.chunk import ChunkJoiner
from wallaroo_runtime.service.client import CALL_S, PATIENCE_S, Away, ServiceClient
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.storage.outbox.staging import StagedFile

LOOK_S = 3.0


class RemoteOutbox:
    """The outbox of a remote egress. Its methods call the egress.

    Args:
        service: The egress, to which the driver has attached.
        patience_s: Seconds for which the egress may be away.
        waits: Whether `publish` waits while the egress is away; if not, it soon raises `Away`.

    Raises (from every method): `RunError` of the egress, R641, R642, R644 or R648.
    """

    def __init__(self, service: Service, patience_s: float = PATIENCE_S, *, waits: bool = True) -> None:
        self._client, self._waits = ServiceClient(service, patience_s), waits
        self._epoch = service.epoch

    @property
    def name(self) -> str:
        """The outbox's name in findings: the address of its egress."""
        return f"the egress at {self._client.service.address}"

    def publish(self, query: str, batch: int, files: Sequence[StagedFile], offsets: str = "") -> bool:
        """Publish the output of a micro-batch, unless it was published before. An unanswered call may be repeated."""
        staged = map(staged_message, files)
        request = pb.PublishRequest(epoch=self._epoch, query=query, batch=batch, files=staged, offsets=offsets)
        client = self._client
        reply = client.call("Publish", request) if self._waits else client.look("Publish", request, LOOK_S)
        return bool(reply.is_new)

    def letters(self) -> int:
        """Return the number of dead letters published since the outbox began."""
        return int(self._client.call("Status", pb.StatusRequest(epoch=self._epoch)).dead_letters)

    def published(self) -> int:
        """Return the number of messages published for sinks since the outbox began. Raise `Away` without a retry."""
        status = self._client.look("Status", pb.StatusRequest(epoch=self._epoch), LOOK_S)
        if not status.HasField("published"):
            raise self._client.broke_rules(reason="it does not say how many messages it has for sinks")
        return int(status.published)

    def fresh_letters(self, known: int) -> pb.StatusReply | None:
        """Return a status with the dead letters after letter number `known`; None if the egress does not answer now."""
        try:
            request = pb.StatusRequest(epoch=self._epoch, known_letter=known)
            reply: pb.StatusReply = self._client.look("Status", request, LOOK_S)
        except Away:
            return None
        return reply

    def size(self) -> int:
        """Return the total size of the files that are not delivered yet."""
        return int(self._client.call("Status", pb.StatusRequest(epoch=self._epoch)).backlog_bytes)

    def read_staged(self, file: StagedFile) -> Iterator[bytes]:
        """Yield the frames of a staged file, in pieces that have whole frames only."""
        request = pb.ReadStagedRequest(epoch=self._epoch, file=staged_message(file))
        try:
            yield from joined(
                self._client.stub.ReadStaged(request, timeout=CALL_S, metadata=self._client.metadata), self._client
            )
        except grpc.RpcError as error:
            raise self._client.failure(error) from error


def staged_message(file: StagedFile) -> pb.StagedFile:
    """Return the descriptor of a staged file as a message of the protocol, without its folder."""
    return pb.StagedFile(
        port=file.port,
        name=Path(file.path).name,
        bytes=file.bytes,
        crc32=file.crc32,
        messages=file.messages,
        partition=file.partition,
    )


def joined(chunks: Iterable[pb.Chunk], client: ServiceClient) -> Iterator[bytes]:
    """Yield the frames in chunks (gRPC messages of limited size). A frame may continue in the next chunk.

    Raises:
        RunError: R648 if joined data is longer than any frame, or its end is missing.
    """
    joiner = ChunkJoiner()
    for chunk in chunks:
        try:
            data = joiner.take(chunk)
        except ValueError as error:
            raise client.broke_rules(str(error)) from error
        if data is not None:
            yield data
    if not joiner.is_whole:
        raise client.broke_rules(reason="the stream ended within a frame")
