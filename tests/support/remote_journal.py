"""A journal that a gateway serves, as tests read it; for runs Java's `JournalService` does."""

from collections.abc import Iterator
from typing import Any

import grpc

from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.chunk import ChunkJoiner
from wallaroo_runtime.service.client import ServiceClient
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.storage.journal.head import Position


class RemoteJournal:
    """The methods of `JournalReader`, each as one call of a gateway.

    Args:
        service: The gateway; the driver has attached.
        journal_id: The journal that it must be; None: whichever it is.
    """

    def __init__(self, service: Service, journal_id: int | None = None) -> None:
        self._client = ServiceClient(service)
        known = "" if journal_id is None else f"{journal_id:016x}"
        self._place: dict[str, Any] = {"epoch": service.epoch, "journal": known}

    def end(self) -> Position:
        """Return how far the journal may be read now."""
        return _position(self._client.call("Limit", pb.LimitRequest(**self._place, max_bytes=2**63 - 1)))

    def limit(self, start: Position, max_bytes: int) -> Position:
        """Return the last frame boundary at most `max_bytes` after `start`, but at least one frame further."""
        request = pb.LimitRequest(**self._place, start=start.offset, max_bytes=max_bytes, messages=start.messages)
        return _position(self._client.call("Limit", request))

    def split(self, start: int, end: int, parts: int) -> list[int]:
        """Cut [start, end) at frame boundaries into at most `parts` ranges, and return their ends."""
        request = pb.SplitRequest(**self._place, start=start, end=end, parts=parts)
        return list(self._client.call("Split", request).ends)

    def read(self, start: int, end: int) -> Iterator[bytes]:
        """Yield the frames of [start, end) in pieces that the gateway chooses."""
        request, joiner = pb.ReadRequest(**self._place, start=start, end=end), ChunkJoiner()
        try:
            for chunk in self._client.stub.Read(request, timeout=60, metadata=self._client.metadata):
                if (data := joiner.take(chunk)) is not None:
                    yield data
        except grpc.RpcError as error:
            raise self._client.failure(error) from error

    def commit(self, offset: int) -> None:
        """Report to the gateway that nothing below `offset` is still needed."""
        self._client.call("Commit", pb.CommitRequest(**self._place, offset=offset))


def _position(reply: pb.Position) -> Position:
    return Position(reply.offset, reply.messages, int(reply.journal, 16))
