"""Kafka records as messages, and the settings of topics and connections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.error import Place

RECORD = "record"
PREFIX = "kafka."  # of the options of a source or sink that are settings of Kafka's client; others are for Spark
# The largest record that a broker with default settings accepts, in bytes (message.max.bytes).
MAX_RECORD_BYTES = 1_048_588
CONNECTING = ("security.", "sasl.", "ssl.", "enable.ssl.", "client.", "socket.", "broker.")
_BATCH_BYTES, _MOST_BYTES_BESIDES = 61, 100
_MOST_PARTITIONS, _MOST_REPLICAS = 10_000, 1000


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """A Kafka record: input of decoders and output of encoders if the config has `content="record"`.

    Attributes:
        topic: Topic that the record was read from; sinks ignore this field.
        key: Key of the record; None if it has no key, which differs from an empty key.
        value: Value of the record; None if it has no value (a tombstone).
        headers: Pairs of name and value, in order. Names may repeat, and a value may be None.
        timestamp_ms: Time in milliseconds since 1970, may be negative. 0 and -1 mean that the record has no time; a
            sink then lets Kafka set it.
        partition: Partition that the record was read from, or that a sink writes to; None lets the partitioner choose.
        offset: Offset that the record was read at; sinks ignore this field.

    Example:
        >>> KafkaRecord(key=b"AAPL", value=b"42").headers
        ()
    """

    topic: str = ""
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int = 0
    partition: int | None = None
    offset: int = 0


def connection_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return those options of a source or sink that concern the connection to brokers, without the prefix `kafka.`.

    Example:
        >>> connection_settings({"kafka.security.protocol": "SSL", "kafka.acks": "1", "minPartitions": "3"})
        {'security.protocol': 'SSL'}
    """
    names = {name: name.removeprefix(PREFIX) for name in options if name.startswith(PREFIX)}
    return {name: options[option] for option, name in names.items() if name.startswith(CONNECTING)}


def has_time(timestamp_ms: int) -> bool:
    """Return whether a record has a time: Kafka writes -1 for no time, and a new `KafkaRecord` has 0.

    Example:
        >>> has_time(-5), has_time(-1), has_time(0)
        (True, False, False)
    """
    return timestamp_ms not in (0, -1)


def too_large(
    limit: int, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]] = ()
) -> int:
    """Return the number of bytes of a record if it is above the limit, else 0.

    The size is computed as brokers do: for a batch of only this record, without compression.

    Args:
        limit: Largest size in bytes, `max.message.bytes` of the topic.
        key: Key of the record.
        value: Value of the record.
        headers: Headers of the record.

    Example:
        >>> too_large(1000, b"Ann", bytes(930)), too_large(1000, b"Ann", bytes(920))
        (1003, 0)
    """
    if not headers and len(key or b"") + len(value or b"") <= limit - _MOST_BYTES_BESIDES:
        return 0
    size = 3 + _piece_bytes(key) + _piece_bytes(value) + _varint_bytes(len(headers))
    size += sum(_piece_bytes(name.encode()) + _piece_bytes(data) for name, data in headers)
    size += _BATCH_BYTES + _varint_bytes(size)
    return size if size > limit else 0


def _piece_bytes(data: bytes | None) -> int:
    """Return the size of a key, value or header with the length before it. For None only a length (-1) is written."""
    return 1 if data is None else _varint_bytes(len(data)) + len(data)


def _varint_bytes(number: int) -> int:
    """Return the size of a non-negative number as a varint: seven bits per byte, and one bit for the sign."""
    return max(1, -(-(number.bit_length() + 1) // 7)) if number else 1


class WholeRecord:
    """The decoder or encoder of a Kafka config that has only content "record": it passes whole records on."""

    def decode(self, record: KafkaRecord) -> KafkaRecord:
        """Return the record unchanged, as the message."""
        return record

    def encode(self, record: KafkaRecord) -> KafkaRecord:
        """Return the message unchanged: it is a record."""
        return record


def component_of(component: Any, content: Any) -> Any:
    """Return the decoder or encoder that a program passed, or a `WholeRecord` if it passed only `content`."""
    return WholeRecord() if component is None and content is not None else component


def content_of(place: Place, content: Any) -> dict[str, Any]:
    """Return the entry `content` of the topology document; record T207 for an invalid value."""
    if content not in (None, RECORD):
        fix = 'pass content="record" for whole records, or leave it out for values'
        place.wrong("content", shown(content), '"record" or None', fix=fix)
    return {} if content is None else {"content": content}


def table_of(place: Place, table: Any) -> dict[str, Any]:
    """Return the entry `table` of the topology document; record T207 if the value is not a bool."""
    if not isinstance(table, bool):
        place.wrong("table", shown(table), "True or False", fix="pass table=True")
    return {"table": True} if table else {}


def create_of(place: Place, create: Any) -> dict[str, Any]:
    """Return the entry `create` of the topology document; record T207 for invalid settings of a new topic."""
    if create is None:
        return {}
    if (reason := _fault(create)) is not None:
        expected = '{"like": TOPIC} or {"partitions": NUMBER}, which may have "replicas" and "options"'
        fix = 'pass e.g. {"partitions": 3, "options": {"cleanup.policy": "compact"}}'
        place.wrong("create", reason, expected, fix=fix)
        return {}
    entry = {name: create[name] for name in ("like", "partitions") if name in create}
    if create.get("replicas", 1) != 1:
        entry["replicas"] = create["replicas"]
    if create.get("options"):
        entry["options"] = {name: _text(create["options"][name]) for name in sorted(create["options"])}
    return {"create": entry}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _fault(create: Any) -> str | None:
    """Return the fault in the settings of a new topic, or None."""
    if not isinstance(create, Mapping):
        return shown(create)
    unknown = [name for name in create if name not in ("like", "partitions", "replicas", "options")]
    if unknown or ("like" in create) == ("partitions" in create):
        return shown(dict(create))
    like, options = create.get("like", "t"), create.get("options", {})
    if not isinstance(like, str) or not like:
        return shown(like)
    for name, most in (("partitions", _MOST_PARTITIONS), ("replicas", _MOST_REPLICAS)):
        number = create.get(name, 1)
        if type(number) is not int or not 1 <= number <= most:
            return f"{name} {shown(number)}"
    if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
        return f"options {shown(options)}"
    return None
