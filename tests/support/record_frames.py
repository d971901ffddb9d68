"""Frames of rows that Spark reads, as `RecordFrames.java` makes them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from wallaroo.message.frame import encode_frame
from wallaroo_runtime.kafka.frame import FRAME_MESSAGES, MESSAGE_BYTES, columns_of, encode_headers, whole_value
from wallaroo_runtime.topology.model import KafkaSource, SparkSource, has_records

FRAME_BYTES = 512 * 1024


class Record(NamedTuple):
    """A row of a source; sequence None: it is numbered by micro-batch."""

    sequence: int | None
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Sequence[tuple[str, bytes | None]] = ()
    partition: int = 0
    offset: int = 0


class _Message(NamedTuple):
    sequence: int
    key: bytes | None
    headers: bytes
    value: bytes | None
    timestamp_ms: int

    def size(self) -> int:
        return MESSAGE_BYTES + len(self.key or b"") + len(self.headers) + len(self.value or b"")


def frames_of(
    source: KafkaSource | SparkSource, port: int, records: Iterable[Record], batch: int, most: int = FRAME_MESSAGES
) -> Iterator[bytes]:
    """Pack the rows of one partition into frames, in order.

    Args:
        source: Says what becomes of a row.
        port: Of the frames.
        records: The rows.
        batch: Number of the micro-batch.
        most: Messages of a frame.
    """
    rows: list[_Message] = []
    for number, record in enumerate(records, batch << 32):
        row = _message(source, record, number)
        if rows and (sum(map(_Message.size, [*rows, row])) > FRAME_BYTES or len(rows) == most):
            yield _frame(source, port, rows)
            rows = []
        rows.append(row)
    if rows:
        yield _frame(source, port, rows)


def _message(source: KafkaSource | SparkSource, record: Record, number: int) -> _Message:
    value, headers = record.value, encode_headers(record.headers)
    if has_records(source):
        value, headers = whole_value(
            source.place, record.partition, record.offset, key=record.key, value=value,
            timestamp_ms=record.timestamp_ms, headers=record.headers,
        ), b""  # fmt: skip
    sequence = number if record.sequence is None else record.sequence
    return _Message(sequence, record.key, headers, value, record.timestamp_ms)


def _frame(source: KafkaSource | SparkSource, port: int, rows: Sequence[_Message]) -> bytes:
    sequences, keys, headers, values, times = zip(*rows, strict=True)
    earliest, columns = columns_of(values, keys if source.gives_keys else (), times, headers)
    first = sequences[0]
    offsets = [sequence - first for sequence in sequences]
    is_dense = offsets == list(range(len(rows)))
    return encode_frame(
        port=port, sequence=first, timestamp_ms=earliest, sequences=() if is_dense else offsets, **columns
    )
