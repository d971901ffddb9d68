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


class RecordColumns(NamedTuple):
    """Records as columns, which cost less CPU time than records one by one.

    If no record has e.g. a key, the column may be empty, `()`. Then `records` gives each record the default.
    """

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] = ()
    partitions: Sequence[int | None] = ()
    headers: Sequence[Sequence[tuple[str, bytes | None]]] = ()
    times: Sequence[int] = ()

    @classmethod
    def of(cls, records: Iterable[SinkRecord]) -> "RecordColumns":
        """Return the columns of one or more records."""
        keys, values, *more = zip(*records, strict=True)
        return cls(values, keys, *more)

    def part(self, begin: int, end: int | None = None) -> "RecordColumns":
        """Return the columns of the records from index `begin` to before `end`."""
        return RecordColumns._make(column[begin:end] for column in self)

    def records(self) -> Iterator[SinkRecord]:
        """Yield the records."""
        more = (self.partitions or repeat(None), self.headers or repeat(()), self.times or repeat(0))
        # Twice as fast as calls of SinkRecord.
        return map(_AS_RECORD, zip(self.keys or repeat(None), self.values, *more, strict=False))


def columns_of(frame: Frame) -> RecordColumns:
    """Return the records of the messages of a frame."""
    values: list[bytes | None] = [*frame.values()]
    for number in frame.absent:
        values[number] = None
    keys = [frame.keys[each] or None for each in frame.key_indexes]
    return RecordColumns(values, keys, [*map(partition_of, frame.headers)])


def partition_of(headers: bytes) -> int | None:
    """Return the partition that an encoder chose, from the headers of its message; None if it chose none."""
    at = 0
    while at < len(headers):
        name_end = at + 2 + int.from_bytes(headers[at : at + 2], "little")
        end = name_end + 4 + int.from_bytes(headers[name_end : name_end + 4], "little")
        if headers[at + 2 : name_end] == PARTITION:
            return int.from_bytes(headers[name_end + 4 : end], "little", signed=True)
        at = end
    return None


def whole_record(data: bytes) -> SinkRecord:
    """Return a record from a message whose bytes are a whole record: key, value, partition, headers and time."""
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
