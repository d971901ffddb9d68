"""Vectors of `goka.json`: codecs and partitioners of Goka, and the state of a key of a group."""

from typing import Any

KEYS = [
    *(
        "",
        "0",
        "02",
        "some-key",
        "Alice",
        "Bob",
        "key1",
        "key2",
        "né",
        "日本",
        "21",
        "foobar",
        "a-little-bit-long-string",
    ),
    *(f"user-{number}" for number in range(10)),
]
COUNTS = (1, 2, 7, 8, 10, 32)
# What Kafka's own test of its Java client expects of MurmurHash2, signed.
KNOWN_MURMUR2 = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536, b"abc": 479470107}


def fnv1a(data: bytes) -> int:
    value = 2166136261
    for byte in data:
        value = ((value ^ byte) * 16777619) % 2**32
    return value


def signed(value: int) -> int:
    return value - 2**32 if value >= 2**31 else value


def murmur2(data: bytes) -> int:
    factor, value = 0x5BD1E995, 0x9747B28C ^ len(data)
    padded = data + b"\0" * (-len(data) % 4)
    for at in range(0, len(data) - len(data) % 4, 4):
        word = sum(padded[at + place] << 8 * place for place in range(4)) * factor % 2**32
        word = (word ^ word >> 24) * factor % 2**32
        value = value * factor % 2**32 ^ word
    if len(data) % 4:
        value ^= sum(byte << 8 * place for place, byte in enumerate(data[len(data) - len(data) % 4 :]))
        value = value * factor % 2**32
    value = (value ^ value >> 13) * factor % 2**32
    return value ^ value >> 15


def partitions(data: bytes) -> dict[str, Any]:
    return {
        "key": data.hex(),
        "fnv1a": {str(count): abs(signed(fnv1a(data))) % count for count in COUNTS},
        "murmur2": {str(count): (murmur2(data) & 0x7FFFFFFF) % count for count in COUNTS},
    }


def varint(number: int) -> bytes:
    low = number & 0x7F
    return bytes([low | 0x80]) + varint(number >> 7) if number > 0x7F else bytes([low])


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


def group_state(value: bytes | None, joined: dict[str, bytes]) -> dict[str, Any]:
    pairs = [field(1, topic.encode()) + field(2, joined[topic]) for topic in sorted(joined)]
    data = (b"" if value is None else field(1, value)) + b"".join(field(2, pair) for pair in pairs)
    shown = {topic: joined[topic].hex() for topic in sorted(joined)}
    return {"value": None if value is None else value.hex(), "joined": shown, "hex": data.hex()}


# A pickle as any that makes this state, and the form of messages of protobuf in Go: a tag, the name's length, the name.
PYTHON_HEAD = b"cwallaroo.goka.state\nGroupState.from_bytes\n"
GO_HEAD = bytes((72, 29)) + b"wallaroo.record.v1.GroupState"


def table_state(value: bytes) -> dict[str, Any]:
    data = field(1, value)
    pickled = b"\x80\x04" + PYTHON_HEAD + b"B" + len(data).to_bytes(4, "little") + data + b"\x85R."
    return {"value": value.hex(), "python": pickled.hex(), "go": (GO_HEAD + data).hex()}


def goka_vectors() -> dict[str, Any]:
    assert {data: signed(murmur2(data)) for data in KNOWN_MURMUR2} == KNOWN_MURMUR2
    codecs = [
        *({"codec": "int64", "value": value, "hex": str(value).encode().hex()}
          for value in (0, 1, -1, 1312, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))),
        *({"codec": "string", "value": value, "hex": value.encode().hex()} for value in ("", "a", "né", "日本", "🤞🏽", "\u0000")),
        *({"codec": "bytes", "value": value, "hex": value} for value in ("", "00", "ff", "616263")),
    ]  # fmt: skip
    return {
        "codecs": codecs,
        "read_only": [{"codec": "int64", "hex": text.encode().hex(), "value": value} for text, value in (("+5", 5), ("-0", 0), ("007", 7))],
        "invalid": [
            {"codec": "int64", "hex": text.encode().hex(), "error": f"Error parsing data from string {value}: strconv.ParseInt: parsing \"{text}\": {reason}"}
            for text, value, reason in (
                ("", 0, "invalid syntax"), ("x", 0, "invalid syntax"), (" 1", 0, "invalid syntax"), ("1_000", 0, "invalid syntax"),
                ("1.0", 0, "invalid syntax"), ("9223372036854775808", 2**63 - 1, "value out of range"),
                ("-9223372036854775809", -(2**63), "value out of range"), ("9" * 40, 2**63 - 1, "value out of range"),
            )
        ],
        "partitions": [partitions(key.encode()) for key in KEYS] + [partitions(data) for data in (b"\xff", b"\x00\x80\xff", b"x" * 100)],
        "group_states": [
            group_state(None, {}), group_state(b"", {}), group_state(b"7", {}), group_state(None, {"users-table": b"Ann"}),
            group_state(b"x" * 200, {"b-table": b"", "a-table": b"\xff"}),
        ],
        "table_states": [table_state(value) for value in (b"", b"7", b"\x00\xff", b"x" * 200)],
    }  # fmt: skip


def wrong_goka() -> dict[str, Any]:
    key = partitions(b"Alice")
    return {
        "codecs": [{"codec": "int64", "value": 1312, "hex": "0000000000000520"}],
        "partitions": [key | {"fnv1a": {count: place + 1 for count, place in key["fnv1a"].items()}}],
        "group_states": [group_state(b"7", {}) | {"hex": "0a0138"}],
        "table_states": [table_state(b"7") | {"value": "38"}],
    }
