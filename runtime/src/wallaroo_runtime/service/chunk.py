"""Cuts frames into gRPC messages of limited size (chunks), and joins them again."""

from collections.abc import Iterator

from wallaroo.message.frame import HEADER_BYTES, MAX_BODY_BYTES
from wallaroo_runtime.service._proto import service_pb2 as pb

CHUNK_BYTES = 1024 * 1024
FRAME_BYTES = HEADER_BYTES + MAX_BODY_BYTES


def chunks(data: bytes) -> Iterator[pb.Chunk]:
    """Cut whole frames into chunks. Data that is larger than one chunk continues in the next chunk.

    Example:
        >>> [(len(chunk.data), chunk.is_continued) for chunk in chunks(bytes(CHUNK_BYTES + 5))]
        [(1048576, True), (5, False)]
    """
    if len(data) <= CHUNK_BYTES:
        yield pb.Chunk(data=data)
        return
    for at in range(0, len(data), CHUNK_BYTES):
        yield pb.Chunk(data=data[at : at + CHUNK_BYTES], is_continued=at + CHUNK_BYTES < len(data))


class ChunkJoiner:
    """Joins the gRPC messages of `chunks` again, to whole frames.

    Example:
        >>> joiner = ChunkJoiner()
        >>> joiner.take(pb.Chunk(data=b"ab", is_continued=True)), joiner.take(pb.Chunk(data=b"c"))
        (None, b'abc')
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    @property
    def is_whole(self) -> bool:
        """True if no frame waits for its continuation."""
        return not self._parts

    def take(self, chunk: pb.Chunk) -> bytes | None:
        """Take the next chunk. Return whole frames, or None if the frame continues in the next chunk.

        Raises:
            ValueError: The data are longer than any frame, or a continued chunk is empty.
        """
        if chunk.is_continued and not chunk.data:
            reason = "a chunk that is continued has nothing in it"
            raise ValueError(reason)
        self._parts.append(chunk.data)
        self._size += len(chunk.data)
        if self._size > FRAME_BYTES:
            reason = f"a frame has more than {FRAME_BYTES} bytes"
            raise ValueError(reason)
        if chunk.is_continued:
            return None
        data = b"".join(self._parts)
        self._parts, self._size = [], 0
        return data
