"""Whole Kafka records, with key and headers, as bytes for frames: the message `Record` of record.proto."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from wallaroo.component.application import Sink, Source
from wallaroo.diagnostic.diagnostic import shown
from wallaroo.message.kafka_record import RECORD, KafkaRecord
from wallaroo.worker._proto import record_pb2 as pb
from wallaroo.worker.value.letter_box import WrongResultError

EXPECTED = "a KafkaRecord or None"
_FIELDS = {
    "key": "bytes or None",
    "value": "bytes or None",
    "headers": "a list of pairs (str, bytes or None)",
    "partition": "an int of 32 bits or None",
    "timestamp_ms": "an int of 64 bits",
    "topic": "str",
    "offset": "an int of 64 bits",
}


def read_record(data: bytes) -> KafkaRecord:
    """Return the record that `write_record`, or the runtime, has written as these bytes."""
    record = pb.Record.FromString(data)
    has = record.HasField
    headers = record.headers
    return KafkaRecord(
        record.topic,
        record.key if has("key") else None,
        record.value if has("value") else None,
        tuple((each.key, each.value if each.HasField("value") else None) for each in headers) if headers else (),
        record.timestamp_ms,
        record.partition if has("partition") else None,
        record.offset,
    )


def write_record(record: KafkaRecord) -> bytes:
    """Return the bytes of a record.

    Raises:
        TypeError: An attribute has a wrong type, a number is too large, or a text has lone surrogates. The error names
            the first such attribute.
    """
    try:
        return _written(record)
    except (TypeError, ValueError) as err:
        raise TypeError(_fault(record) or err) from err


def _written(record: KafkaRecord) -> bytes:
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


def _fault(record: KafkaRecord) -> str:
    """Return a text about the first attribute that cannot be written, or an empty text."""
    for name, expected in _FIELDS.items():
        value = getattr(record, name)
        try:
            _written(KafkaRecord(**{name: value}))
        except (TypeError, ValueError):
            return f"{name} of the record is {shown(value)}, of type {type(value).__name__}; expected {expected}"
    return ""


def reading(source: Source) -> Source:
    """Return the source with a decoder that takes bytes of frames: a decoder of `KafkaRecord` objects is wrapped."""
    decode: Callable[[Any], Any] | None = source.decode
    if source.fields.get("content") != RECORD or decode is None:
        return source
    return replace(source, decode=lambda data: decode(read_record(data)))


def encoding(sink: Sink) -> Callable[[Any], Any]:
    """Return the encoder of a sink. An encoder that returns `KafkaRecord` objects is wrapped to return their bytes."""
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
