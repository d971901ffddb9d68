"""Converts records of Kafka to messages in frames, for a gateway. With micro-batches, Spark's tasks do this in Java."""

import struct
from collections.abc import Iterable, Sequence
from typing import Any

from wallaroo.worker._proto import record_pb2

FRAME_MESSAGES = 8192
MOST_NAME_BYTES = 65_535  # limit of the format
ORIGIN_KEY_BYTES = 200  # a dead letter names a record by so many bytes of its key, as in `Origins.java`
MESSAGE_BYTES = 32  # approximate size of a message in a frame without key and value
Pair = tuple[str, bytes | None]
_U16, _U32 = struct.Struct("<H"), struct.Struct("<I")


def whole_value(
    topic: str,
    partition: int,
    offset: int,
    *,
    key: bytes | None,
    value: bytes | None,
    timestamp_ms: int,
    headers: Iterable[Pair],
) -> bytes:
    """Serialize a whole record (key, value, headers, time, place), for a source whose messages are whole records."""
    record = record_pb2.Record(
        topic=topic, key=key, value=value, timestamp_ms=timestamp_ms, partition=partition, offset=offset
    )
    for name, content in headers:
        record.headers.add(key=name, value=content)
    data: bytes = record.SerializeToString()
    return data


def encode_headers(pairs: Iterable[Pair]) -> bytes:
    """Encode the headers of a message for a frame. A header whose name is too long for the format is left out."""
    parts: list[bytes] = []
    for name, value in pairs:
        encoded, content = name.encode(), value or b""
        if len(encoded) <= MOST_NAME_BYTES:
            parts += [_U16.pack(len(encoded)), encoded, _U32.pack(len(content)), content]
    return b"".join(parts)


def columns_of(
    values: Sequence[bytes | None], keys: Sequence[bytes | None], times: Sequence[int], headers: Sequence[bytes]
) -> tuple[int, dict[str, Any]]:
    """Return the earliest time of some messages, and the arguments of `encode_body` for a frame with them.

    Args:
        values: Value of each message; None for a tombstone.
        keys: Key of each message, None if it has no key; empty if messages have no keys.
        times: Times in milliseconds since 1970.
        headers: Encoded headers of each message.

    Example:
        >>> columns_of([b"1", None], [b"ann", b"bob"], [50, 52], [b"", b""])[1]["absent"]
        [1]
    """
    distinct: dict[bytes, int] = {}
    indexes = [distinct.setdefault(key or b"", len(distinct)) for key in keys]
    earliest = min(times)
    columns: dict[str, Any] = {
        "values": [value or b"" for value in values],
        "keys": list(distinct),
        "key_indexes": indexes,
        "timestamps": () if max(times) == earliest else [time - earliest for time in times],
        "headers": headers if any(headers) else (),
        "absent": [at for at, value in enumerate(values) if value is None],
    }
    return earliest, columns
