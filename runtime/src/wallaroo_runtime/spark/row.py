"""Rows between the operators: frames on their way to a bucket, and descriptors of staged files."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

DATA, DONE = 0, 1  # kinds: to be processed by the next level; to be staged by it
FRAME_SCHEMA = "bucket INT, sequence LONG, ordinal INT, kind INT, payload BINARY"
DESCRIPTOR_SCHEMA = "query STRING, partition INT, port INT, path STRING, bytes LONG, crc32 LONG, messages LONG"
_FRAME_ARROW = pa.schema(
    [
        ("bucket", pa.int32()),
        ("sequence", pa.int64()),
        ("ordinal", pa.int32()),
        ("kind", pa.int32()),
        ("payload", pa.binary()),
    ]
)
_DESCRIPTOR_ARROW = pa.schema(
    [
        ("query", pa.string()),
        ("partition", pa.int32()),
        ("port", pa.int32()),
        ("path", pa.string()),
        ("bytes", pa.int64()),
        ("crc32", pa.int64()),
        ("messages", pa.int64()),
    ]
)
_HEAD = struct.Struct("<6xHI4xQ")


@dataclass(frozen=True, slots=True)
class FrameHead:
    """What routing needs of a frame's header; a frame was checked by who made it and will be by who reads it."""

    port: int
    count: int
    sequence: int

    @classmethod
    def of(cls, frame: bytes) -> "FrameHead":
        """Read the head of a frame."""
        return cls(*_HEAD.unpack_from(frame))


@dataclass(slots=True)
class FrameRow:
    """A row between two levels; its fields are the columns of `FRAME_SCHEMA`."""

    bucket: int
    sequence: int
    ordinal: int
    kind: int
    payload: bytes

    def as_tuple(self) -> tuple[int, int, int, int, bytes]:
        """Return the columns."""
        return self.bucket, self.sequence, self.ordinal, self.kind, self.payload


def frame_batch(rows: Sequence[FrameRow]) -> pa.RecordBatch:
    """Return rows as Arrow."""
    columns = zip(*(row.as_tuple() for row in rows), strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _FRAME_ARROW, strict=True)],
        schema=_FRAME_ARROW,
    )


@dataclass(frozen=True, slots=True)
class StagedRow:
    """A row that `foreachBatch` collects; its fields are the columns of `DESCRIPTOR_SCHEMA`."""

    query: str
    partition: int
    port: int
    path: str
    bytes: int
    crc32: int
    messages: int

    def as_tuple(self) -> tuple[str, int, int, str, int, int, int]:
        """Return the columns."""
        return self.query, self.partition, self.port, self.path, self.bytes, self.crc32, self.messages


def staged_batch(rows: Sequence[StagedRow]) -> pa.RecordBatch:
    """Return descriptors as Arrow."""
    columns = zip(*(row.as_tuple() for row in rows), strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _DESCRIPTOR_ARROW, strict=True)],
        schema=_DESCRIPTOR_ARROW,
    )
