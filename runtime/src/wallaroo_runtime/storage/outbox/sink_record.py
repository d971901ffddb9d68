"""Reads frames for sinks whose encoders return records: key, value and partition."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from wallaroo.message.frame import Frame
from wallaroo.worker._proto import record_pb2

PARTITION = b"partition"


class SinkRecord(NamedTuple):
    """The record that a topic gets.

    Attributes:
        key: None if the record has no key.
        value: None if the record has no value (a tombstone).
        partition: None if the partitioner decides.
        headers: Pairs of name and value, which may be None.
        timestamp_ms: 0 or -1 if Kafka sets the time.
    """

    key: bytes | None
    value: bytes | None
    partition: int | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int = 0


def records_of(frame: Frame) -> Iterator[tuple[bytes | None, bytes | None, int | None]]:
    """Yield key, value and partition of each message of a frame; None for a part that a message does not have."""
    absent = set(frame.absent)
    for number, value in enumerate(frame.values()):
        key = frame.keys[frame.key_indexes[number]] if frame.keys else b""
        partition = partition_of(frame.headers[number]) if frame.headers else None
        yield key or None, None if number in absent else value, partition


def partition_of(headers: bytes) -> int | None:
    """Return the partition that an encoder chose; None if it chose none."""
    at = 0
    while at < len(headers):
        name_end = at + 2 + int.from_bytes(headers[at : at + 2], "little")
        end = name_end + 4 + int.from_bytes(headers[name_end : name_end + 4], "little")
        if headers[at + 2 : name_end] == PARTITION:
            return int.from_bytes(headers[name_end + 4 : end], "little", signed=True)
        at = end
    return None


def whole_record(data: bytes) -> SinkRecord:
    """Return the record that the bytes of a message contain."""
    record = record_pb2.Record.FromString(data)
    headers = record.headers
    return SinkRecord(
        # Most records have key and value, and `HasField` costs more than reading the field.
        record.key or (b"" if record.HasField("key") else None),
        record.value or (b"" if record.HasField("value") else None),
        record.partition if record.HasField("partition") else None,
        [(header.key, header.value if header.HasField("value") else None) for header in headers] if headers else (),
        record.timestamp_ms,
    )
