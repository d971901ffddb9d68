"""The vectors of records of Kafka and of states of groups: their bytes, written without a library of protobuf."""

from typing import Any

Header = tuple[str, bytes | None]


def varint(number: int) -> bytes:
    number &= (1 << 64) - 1  # negative numbers have all ten bytes
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def text(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def optional(field: int, value: bytes | None) -> bytes:
    return b"" if value is None else text(field, value)


def record_bytes(
    topic: str, key: bytes | None, value: bytes | None, headers: list[Header], time: int, partition: int | None, offset: int
) -> bytes:  # fmt: skip
    made = (text(1, topic.encode()) if topic else b"") + optional(2, key) + optional(3, value)
    for name, content in headers:
        made += text(4, (text(1, name.encode()) if name else b"") + optional(2, content))
    made += number(5, time) if time else b""
    made += b"" if partition is None else number(6, partition)
    return made + (number(7, offset) if offset else b"")


def shown(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def record_case(
    name: str, topic: str = "", key: bytes | None = None, value: bytes | None = None, headers: list[Header] | None = None,
    time: int = 0, partition: int | None = None, offset: int = 0,
) -> dict[str, Any]:  # fmt: skip
    pairs = headers or []
    return {
        "name": name,
        "record": {
            "topic": topic, "key": shown(key), "value": shown(value), "headers": [[each, shown(data)] for each, data in pairs],
            "timestamp_ms": time, "partition": partition, "offset": offset,
        },
        "hex": record_bytes(topic, key, value, pairs, time, partition, offset).hex(),
    }  # fmt: skip


def state_case(name: str, value: bytes | None, joined: dict[str, bytes]) -> dict[str, Any]:
    made = optional(1, value)
    for topic in sorted(joined):
        made += text(2, text(1, topic.encode()) + text(2, joined[topic]))
    listed = {topic: data.hex() for topic, data in joined.items()}
    return {"name": name, "value": shown(value), "joined": listed, "hex": made.hex()}


def record_vectors() -> dict[str, Any]:
    pairs: list[Header] = [("trace", b"1"), ("trace", None), ("", b""), ("größe", b"\x00\xff")]
    return {
        "records": [
            record_case("nothing"),
            record_case("as read", "clicks", b"ann", b"3", [], 1_700_000_000_000, 2, 41),
            record_case("no key", "clicks", None, b"3", [], 1, 0, 0),
            record_case("empty key", "clicks", b"", b"3", [], 1, 0, 0),
            record_case("tombstone", "clicks", b"ann", None, [], 1, 0, 7),
            record_case("empty value", "clicks", b"ann", b"", [], 1, 0, 7),
            record_case("headers", "clicks", b"ann", b"3", pairs, 1, 0, 7),
            record_case("before 1970", "clicks", b"ann", b"3", [], -86_400_001, 0, 7),
            record_case("no time", "clicks", b"ann", b"3", [], -1, 0, 7),
            record_case("largest", "t" * 249, b"k" * 128, b"v" * 300, [], (1 << 63) - 1, (1 << 31) - 1, (1 << 63) - 1),
            record_case("for a sink", key=b"ann", value=b"4"),
        ],
        "states": [
            state_case("nothing", None, {}),
            state_case("empty value", b"", {}),
            state_case("value", b"\x00\xff", {}),
            state_case("joined", b"5", {"users": b"ann", "größe": b"", "a": b"1"}),
        ],
        "invalid": [
            {"name": "cut", "hex": text(1, b"clicks")[:-1].hex()},
            {"name": "no field", "hex": "00"},
            {"name": "topic is not UTF-8", "hex": text(1, b"\xff").hex()},
        ],
    }


def wrong_records() -> list[dict[str, Any]]:
    """Return cases that a runner must fail on: absent is not empty."""
    keyed = record_case("empty key as none", "t", b"")
    keyed["record"]["key"] = None
    tombstone = record_case("tombstone as empty", "t", b"k")
    tombstone["record"]["value"] = ""
    return [keyed, tombstone]
