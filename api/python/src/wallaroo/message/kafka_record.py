"""Records of Kafka as messages, and how topics for them are created."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.diagnostic.place import Place

RECORD = "record"
# How many bytes a broker takes in one record with its defaults (message.max.bytes).
MAX_RECORD_BYTES = 1_048_588
_BATCH_BYTES, _MOST_BYTES_BESIDES = 61, 100
_MOST_PARTITIONS, _MOST_REPLICAS = 10_000, 1000


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """A record of Kafka: input of decoders and output of encoders where a config has `content="record"`.

    Attributes:
        topic: Where it was read; sinks ignore it.
        key: None: it has none, which is not an empty one.
        value: None: it has none (a tombstone).
        headers: Pairs of name and value in order; names may repeat, a value may be None.
        timestamp_ms: In milliseconds since 1970; also below 0; of a sink 0 and -1, which Kafka has for none: Kafka
            says.
        partition: Where it was read; of a sink None: the partitioner says.
        offset: Where it was read; sinks ignore it.

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


def has_time(timestamp_ms: int) -> bool:
    """Return whether a record's time is one: Kafka has -1 for none, and a record that is made 0.

    Example:
        >>> has_time(-5), has_time(-1), has_time(0)
        (True, False, False)
    """
    return timestamp_ms not in (0, -1)


def too_large(
    limit: int, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]] = ()
) -> int:
    """Return the number of bytes of a record when it is above the limit, else 0.

    They are as brokers count them: the record alone in its batch, and not compressed.

    Args:
        limit: How many it may have: `max.message.bytes` of its topic.
        key: Of the record, like the others.
        value: See there.
        headers: See there.

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
    """Return the number of bytes of data with their length; None is a length of -1."""
    return 1 if data is None else _varint_bytes(len(data)) + len(data)


def _varint_bytes(number: int) -> int:
    """Return the number of bytes of a non-negative number: seven bits in each, one bit for the sign."""
    return max(1, -(-(number.bit_length() + 1) // 7)) if number else 1


class WholeRecord:
    """Decoder and encoder of configs that name none: the message is the record."""

    def decode(self, record: KafkaRecord) -> KafkaRecord:
        """Return the record."""
        return record

    def encode(self, record: KafkaRecord) -> KafkaRecord:
        """Return the record."""
        return record


def edge(component: Any, content: Any) -> Any:
    """Return a decoder or encoder as the program gave it, or that of whole records."""
    return WholeRecord() if component is None and content is not None else component


def content_of(place: Place, content: Any) -> dict[str, Any]:
    """Return the document's entry of a content; records T207 for other values."""
    if content not in (None, RECORD):
        fix = 'pass content="record" for whole records, or leave it out for values'
        place.wrong("content", shown(content), '"record" or None', fix=fix)
    return {} if content is None else {"content": content}


def table_of(place: Place, table: Any) -> dict[str, Any]:
    """Return the document's entry of a table; records T207 unless it is a bool."""
    if not isinstance(table, bool):
        place.wrong("table", shown(table), "True or False", fix="pass table=True")
    return {"table": True} if table else {}


def create_of(place: Place, create: Any) -> dict[str, Any]:
    """Return the document's entry of how to create a topic; records T207 for impossible settings."""
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
    """Return the fault in the settings of a new topic; None: there is none."""
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
