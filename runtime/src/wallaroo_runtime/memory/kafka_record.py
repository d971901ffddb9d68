"""Turns messages that a test sends into the records that Kafka would deliver."""

from collections import Counter
from dataclasses import replace

from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.message.kit import Message
from wallaroo.worker.value.kafka_record import write_record
from wallaroo_runtime.topology.model import Source


class Numbering:
    """Numbers records as a broker does: gives them topic, partition, offset and time where they have none."""

    def __init__(self) -> None:
        self._next: Counter[str] = Counter()

    def record(self, source: Source, message: Message, now_ms: int) -> Message:
        """Return a message whose value is a whole record, from a record or its value. Other objects stay as they are.

        Raises:
            TypeError: An attribute has a wrong type, a number is too large, or a text has lone surrogates.
        """
        record = message.value
        if isinstance(record, bytes | bytearray | memoryview):
            record = KafkaRecord(key=message.key or None, value=bytes(record), timestamp_ms=message.time_ms or 0)
        if not isinstance(record, KafkaRecord):
            return message
        number = record.offset or self._next[source.path]
        self._next[source.path] = number + 1
        whole = replace(
            record,
            topic=record.topic or source.place,
            timestamp_ms=record.timestamp_ms or now_ms,
            partition=record.partition or 0,
            offset=number,
        )
        return Message(write_record(whole), whole.key or b"", whole.timestamp_ms)
