"""Prepares the messages of a test: adds fields as Kafka or Spark would. Also orders the messages of sinks."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.message.frame import read_frame
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.message.memory_message import Message, Record
from wallaroo.message.timer import FIRST_MS, ms_of
from wallaroo.worker.value.kafka_record import write_record
from wallaroo_runtime.memory.argument import refused
from wallaroo_runtime.memory.engine import BatchResult
from wallaroo_runtime.storage.outbox.sink_record import columns_of
from wallaroo_runtime.topology.model import Source, SparkSource

ROW = "*"  # the message of a source is the whole row, not an SQL expression


def in_order(batch: BatchResult, port: int) -> Iterator[Record]:
    """Yield a sink's messages in the order of their source messages."""
    rows: list[tuple[int, Record]] = []
    for data in batch.frames.get(port, ()):
        frame = read_frame(data)
        for number, record in enumerate(columns_of(frame).records()):
            rows.append((frame.sequence_of(number), Record(record.value, record.key, record.partition)))
    return (output for _, output in sorted(rows, key=lambda row: row[0]))


def runs(messages: Iterable[Message]) -> Iterator[tuple[bool, list[Message]]]:
    """Yield groups of consecutive messages, each with True if the values are bytes, False if they are objects."""
    group: list[Message] = []
    was_payload = False
    for message in messages:
        is_payload = isinstance(message.value, bytes | bytearray | memoryview)
        if group and is_payload is not was_payload:
            yield was_payload, group
            group = []
        group.append(Message(bytes(message.value), message.key, message.time_ms) if is_payload else message)
        was_payload = is_payload
    if group:
        yield was_payload, group


def with_row_time(source: Source, message: Message) -> Message:
    """Return a message with the event time that Spark would find in its row.

    The message stays as it is if it has a time, or if its source is not one of Spark with whole rows.

    Raises:
        RunError: R721 for a value that is no time in Spark, or if only Spark can find the time.
    """
    if (
        not isinstance(source, SparkSource)
        or source.value != ROW
        or not source.timestamp
        or message.time_ms is not None
    ):
        return message
    name, row = source.timestamp.strip("`").lower(), message.value
    with suppress(ValueError):  # the decoder will report the fault of the row
        row = json.loads(bytes(row)) if isinstance(row, bytes | bytearray | memoryview) else row
        for column in row if isinstance(row, dict) else dir(row):
            if column.lower() == name:
                value = row[column] if isinstance(row, dict) else getattr(row, column)
                return replace(message, time_ms=_ms(source, column, value))
        if not name.isidentifier():
            reason = f"the time of a row is the SQL `{source.timestamp}`, which only Spark evaluates"
            raise refused(source, shown(message.value), reason, "send it as Message(row, time_ms=...)")
    return message


def _ms(source: Source, column: str, time: Any) -> int:
    if time is None:
        return FIRST_MS - 1  # an invalid time, as for null in Spark's rows; windows and timers report it
    if isinstance(time, int) and not isinstance(time, bool) and -(1 << 63) <= time < 1 << 63:
        return time
    with suppress(TypeError, ValueError):
        text = time.isoformat() if isinstance(time, date) else time
        return ms_of(datetime.fromisoformat(str.replace(text, "Z", "+00:00")))
    reason = f"it is column {column}; expected a TIMESTAMP, a DATE or an integer of milliseconds"
    raise refused(source, shown(time), reason, "give such a value")


class Numbering:
    """Numbers records as a broker does: adds topic, partition, offset and time if they are missing."""

    def __init__(self) -> None:
        self._next: Counter[str] = Counter()

    def record(self, source: Source, message: Message, now_ms: int) -> Message:
        """If a message has bytes or a `KafkaRecord`, return it with a complete, encoded record; else unchanged.

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
