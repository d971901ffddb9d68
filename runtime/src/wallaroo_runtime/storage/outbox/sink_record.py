"""Makes records of Kafka sinks: from frames, or from the bytes of whole records, which also have headers and time."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
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


_AS_RECORD = partial(tuple.__new__, SinkRecord)


def records_of(frame: Frame) -> Iterator[SinkRecord]:
    """Yield the record of each message of a frame."""
    keys: Iterable[bytes | None] = [frame.keys[each] or None for each in frame.key_indexes] or repeat(None)
    values: list[bytes | None] = [*frame.values()]
    for number in frame.absent:
        values[number] = None
    partitions = map(partition_of, frame.headers) if frame.headers else repeat(None)
    # Twice as fast as calls of SinkRecord.
    return map(_AS_RECORD, zip(keys, values, partitions, repeat(()), repeat(0), strict=False))


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
