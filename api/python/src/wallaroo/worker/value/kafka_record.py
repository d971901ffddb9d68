"""Records of Kafka between their bytes and the program: `Record` of record.proto."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from wallaroo.component.application import Sink, Source
from wallaroo.message.kafka_record import RECORD, KafkaRecord
from wallaroo.worker._proto import record_pb2 as pb
from wallaroo.worker.value.dead_letter import WrongResultError

EXPECTED = "a KafkaRecord or None"


def read_record(data: bytes) -> KafkaRecord:
    """Return the record of its bytes."""
    found = pb.Record.FromString(data)
    has = found.HasField
    headers = found.headers
    return KafkaRecord(
        found.topic,
        found.key if has("key") else None,
        found.value if has("value") else None,
        tuple((each.key, each.value if each.HasField("value") else None) for each in headers) if headers else (),
        found.timestamp_ms,
        found.partition if has("partition") else None,
        found.offset,
    )


def write_record(record: KafkaRecord) -> bytes:
    """Return the bytes of a record.

    Raises:
        TypeError: An attribute is of another type.
        ValueError: A number is too large, or a text is none.
    """
    written = pb.Record(
        topic=record.topic,
        key=record.key,
        value=record.value,
        timestamp_ms=record.timestamp_ms,
        partition=record.partition,
        offset=record.offset,
    )
    for name, value in record.headers:
        written.headers.add(key=name, value=value)
    data: bytes = written.SerializeToString()
    return data


def reading(source: Source) -> Source:
    """Return a source whose decoder takes payloads: where it wants records, it gets the record of each."""
    decode: Callable[[Any], Any] | None = source.decode
    if source.fields.get("content") != RECORD or decode is None:
        return source
    return replace(source, decode=lambda data: decode(read_record(data)))


def encoding(sink: Sink) -> Callable[[Any], Any]:
    """Return what makes the result of a sink's encoder, as bytes where that is a record."""
    if sink.fields.get("content") != RECORD:
        return sink.encode

    def encode(message: Any) -> bytes | None:
        record = sink.encode(message)
        if record is None:
            return None
        if not isinstance(record, KafkaRecord):
            raise WrongResultError(record, EXPECTED)
        return write_record(record)

    return encode
