"""Orders the messages of sinks, and groups the messages that a test sends."""

from collections.abc import Iterable, Iterator

from wallaroo.message.frame import read_frame
from wallaroo.message.kit import Message, Record
from wallaroo_runtime.memory.engine import BatchResult
from wallaroo_runtime.storage.outbox.sink_record import records_of


def in_order(batch: BatchResult, port: int) -> Iterator[Record]:
    """Yield a sink's messages in the order of their source messages."""
    rows: list[tuple[int, Record]] = []
    for data in batch.frames.get(port, ()):
        frame = read_frame(data)
        for number, (key, value, partition) in enumerate(records_of(frame)):
            rows.append((frame.sequence_of(number), Record(value, key, partition)))
    return (output for _, output in sorted(rows, key=lambda row: row[0]))


def runs(messages: Iterable[Message]) -> Iterator[tuple[bool, list[Message]]]:
    """Yield consecutive messages in groups. The flag of a group is True for payloads, and False for objects."""
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
