"""A journal that a gateway serves."""

from collections.abc import Iterable, Iterator
from typing import Any

import grpc

from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.chunk import Joiner
from wallaroo_runtime.service.client import PATIENCE_S, Client, Patience
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.storage.journal.head import Position
from wallaroo_runtime.storage.journal.reader import Range
from wallaroo_runtime.storage.journal.segment import verify_frames

STREAM_S = 600.0


class RemoteJournal:
    """The methods of `JournalReader`, answered by a gateway.

    Args:
        service: The gateway; the driver has attached.
        journal_id: The journal that it must be; None: whichever it is.

    Raises (from every method): `RunError` of the journal, R641, R642, R644 or R648.
    """

    def __init__(self, service: Service, journal_id: int | None = None) -> None:
        self._client = Client(service)
        known = "" if journal_id is None else f"{journal_id:016x}"
        self._place: dict[str, Any] = {"epoch": service.epoch, "journal": known}

    def end(self) -> Position:
        """Return how far the journal may be read now."""
        return self._position(self._client.call("End", pb.EndRequest(**self._place)))

    def limit(self, start: Position, max_bytes: int) -> Position:
        """Return the last frame boundary at most `max_bytes` after `start`, but at least one frame further."""
        request = pb.LimitRequest(**self._place, start=start.offset, max_bytes=max_bytes, messages=start.messages)
        return self._position(self._client.call("Limit", request))

    def _position(self, reply: pb.Position) -> Position:
        try:
            return Position(reply.offset, reply.messages, int(reply.journal, 16))
        except ValueError as error:
            raise self._client.broke_rules(reason=f"{reply.journal[:40]!r} is no journal's id") from error

    def split(self, start: int, end: int, parts: int) -> list[Range]:
        """Cut [start, end) at frame boundaries into at most `parts` ranges."""
        request = pb.SplitRequest(**self._place, start=start, end=end, parts=parts)
        ends = list(self._client.call("Split", request).ends)
        if sorted({start, *ends}) != [start, *ends] or [start, *ends][-1] != max(start, end):
            reason = f"ranges of {start} to {end} end at {ends[:4]}"
            raise self._client.broke_rules(reason)
        return [Range(first, last) for first, last in zip([start, *ends], ends, strict=False)]

    def read(self, start: int, end: int, chunk_bytes: int = 1024 * 1024) -> Iterator[bytes]:
        """Yield the frames of [start, end), verified; pieces of at most 1 MiB unless one frame alone has more.

        A stream that breaks goes on after the last whole piece. The gateway chooses the pieces.
        """
        at = start
        patience = Patience(self._client, PATIENCE_S)
        while at < end:
            try:
                for data in self._stream(at, end):
                    at += len(data)
                    patience.progressed()
                    yield data
            except grpc.RpcError as error:
                patience.wait(error)
            else:
                break
        if at != end and start < end:
            raise self._client.broke_rules(reason=f"the stream of {start} to {end} ended at {at}")

    def _stream(self, start: int, end: int) -> Iterator[bytes]:
        """Yield verified frames until the stream ends or breaks."""
        call = self._client.stub.Read(
            pb.ReadRequest(**self._place, start=start, end=end),
            timeout=STREAM_S,
            metadata=self._client.metadata,
        )
        at, sequence = start, None
        try:
            for data in joined(call, self._client):
                progress = verify_frames(data, sequence)
                if progress.fault or progress.end != len(data) or at + len(data) > end:
                    raise self._client.broke_rules(reason=f"no whole frames at {at}; {progress.fault}")
                at, sequence = at + len(data), progress.sequence
                yield data
        finally:
            call.cancel()

    def commit(self, offset: int) -> None:
        """Report to the gateway that nothing below `offset` is still needed."""
        self._client.call("Commit", pb.CommitRequest(**self._place, offset=offset))


def joined(chunks: Iterable[pb.Chunk], client: Client) -> Iterator[bytes]:
    """Yield the data of chunks, each with those that continue it.

    Raises:
        RunError: R648, it is longer than any frame, or its end is missing.
    """
    joiner = Joiner()
    for chunk in chunks:
        try:
            data = joiner.take(chunk)
        except ValueError as error:
            raise client.broke_rules(str(error)) from error
        if data is not None:
            yield data
    if not joiner.is_whole:
        raise client.broke_rules(reason="the stream ended within a frame")
