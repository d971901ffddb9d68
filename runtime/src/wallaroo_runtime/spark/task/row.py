"""Rows between the operators: frames on their way to a bucket, and descriptors of staged files."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from wallaroo_runtime.storage.outbox.staging import StagedFile

# Kinds of rows: to be processed by the next level; to be staged by it; see `rehearse`.
DATA, DONE, REHEARSAL = 0, 1, 2
FRAME_SCHEMA = "bucket INT, sequence LONG, ordinal INT, kind INT, task LONG, payload BINARY"
DESCRIPTOR_SCHEMA = "query STRING, port INT, path STRING, bytes LONG, crc32 LONG, messages LONG, partition INT"
_FRAME_ARROW = pa.schema(
    [
        ("bucket", pa.int32()),
        ("sequence", pa.int64()),
        ("ordinal", pa.int32()),
        ("kind", pa.int32()),
        ("task", pa.int64()),
        ("payload", pa.binary()),
    ]
)
_DESCRIPTOR_ARROW = pa.schema(
    [
        ("query", pa.string()),
        ("port", pa.int32()),
        ("path", pa.string()),
        ("bytes", pa.int64()),
        ("crc32", pa.int64()),
        ("messages", pa.int64()),
        ("partition", pa.int32()),
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
    task: int  # Spark's number of the attempt that made it
    payload: bytes

    @property
    def port(self) -> int:
        """Port of the frame."""
        return FrameHead.of(self.payload).port

    def as_tuple(self) -> tuple[int, int, int, int, int, bytes]:
        """Return the columns."""
        return self.bucket, self.sequence, self.ordinal, self.kind, self.task, self.payload


def frame_batch(rows: Sequence[FrameRow]) -> pa.RecordBatch:
    """Return rows as Arrow."""
    columns = zip(*(row.as_tuple() for row in rows), strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, _FRAME_ARROW, strict=True)],
        schema=_FRAME_ARROW,
    )


def staged_columns(query: str, file: StagedFile) -> dict[str, object]:
    """Return a descriptor as the columns of `DESCRIPTOR_SCHEMA`."""
    return {"query": query, **{name: getattr(file, name) for name in StagedFile.__slots__}}


def staged_batch(query: str, files: Sequence[StagedFile]) -> pa.RecordBatch:
    """Return descriptors as Arrow."""
    return pa.RecordBatch.from_pylist([staged_columns(query, file) for file in files], schema=_DESCRIPTOR_ARROW)
