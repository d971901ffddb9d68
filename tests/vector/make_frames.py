"""The frames among the vectors, written byte by byte from section 2 of the specification."""

import struct
import zlib
from typing import Any


def integers(numbers: list[int], width: int) -> bytes:
    return bytes([width]) + b"".join(n.to_bytes(width, "little") for n in numbers)


def narrow(numbers: list[int]) -> bytes:
    return integers(numbers, next(w for w in (1, 2, 4, 8) if all(n < 1 << 8 * w for n in numbers)))


def seal(
    flags: int, encoding: int, port: int, count: int, sequence: int, timestamp: int, body: bytes, **fault: Any
) -> bytes:
    start = struct.pack(
        "<4sBBHIIQqI", fault.get("magic", b"WFR1"), flags, encoding, port, count, fault.get("size", len(body)),
        sequence, timestamp, fault.get("reserved", 0),
    )  # fmt: skip
    return start + struct.pack("<I", zlib.crc32(start + body) ^ fault.get("flip", 0)) + body


def message_headers(pairs: list[list[str]]) -> bytes:
    parts = [(n.encode(), bytes.fromhex(v)) for n, v in pairs]
    return b"".join(struct.pack("<H", len(n)) + n + struct.pack("<I", len(v)) + v for n, v in parts)


def frame_vector(
    name: str, values: list[bytes | None], widths: dict[str, int] | None = None, **fields: Any
) -> dict[str, Any]:
    """Write one frame; `widths` forces wider columns than needed."""
    wide = widths or {}

    def column(what: str, numbers: list[int]) -> bytes:
        return integers(numbers, wide[what]) if what in wide else narrow(numbers)

    port, encoding = fields.get("port", 0), fields.get("encoding", 0)
    sequence, timestamp = fields.get("sequence", 0), fields.get("timestamp_ms", 0)
    flags, body = 0, b""
    if "keys" in fields:
        flags |= 1
        keys = [bytes.fromhex(key) for key in fields["keys"]]
        body += struct.pack("<I", len(keys)) + column("key lengths", [len(k) for k in keys]) + b"".join(keys)
        body += column("key indexes", fields["key_indexes"])
    if "sequences" in fields:
        flags |= 2
        body += column("sequences", [s - sequence for s in fields["sequences"]])
    if "timestamps" in fields:
        flags |= 4
        body += column("timestamps", [t - timestamp for t in fields["timestamps"]])
    if "headers" in fields:
        flags |= 8
        headers = [message_headers(pairs) for pairs in fields["headers"]]
        body += column("header lengths", [len(h) for h in headers]) + b"".join(headers)
    absent = [i for i, value in enumerate(values) if value is None]
    if absent:
        flags |= 16
        bits = sum(1 << i for i in absent)
        body += bits.to_bytes((len(values) + 7) // 8, "little")
    present = [value or b"" for value in values]
    if encoding != 1:
        body += column("lengths", [len(v) for v in present])
    body += b"".join(present)
    count = len(values)
    vector: dict[str, Any] = {"name": name, "hex": seal(flags, encoding, port, count, sequence, timestamp, body).hex()}
    vector |= {"port": port, "encoding": encoding, "count": count, "flags": flags, "sequence": sequence}
    vector |= {"timestamp_ms": timestamp, "narrow": not wide}
    vector |= {k: fields[k] for k in ("keys", "key_indexes", "sequences", "timestamps", "headers") if k in fields}
    vector["values"] = [None if v is None else v.hex() for v in values]
    return vector


HOPE = b"My solitude is cheered by that elegant hope."


def valid_frames() -> list[dict[str, Any]]:
    a, b = b"a".hex(), b"bee".hex()
    full = {
        "port": 2, "encoding": 16, "sequence": 1000, "timestamp_ms": 1700000000000, "keys": [a, b, ""], "key_indexes": [0, 2, 1, 0],
        "sequences": [1000, 1000, 1001, 1300], "timestamps": [1700000000000, 1700000000001, 1700000070000, 1700000000000],
        "headers": [[["trace", "00ff"]], [], [["a", ""], ["ü", "01"]], []],
    }  # fmt: skip
    wide = dict.fromkeys(("key lengths", "key indexes", "sequences", "timestamps", "header lengths", "lengths"), 8)
    return [
        frame_vector("empty", []),
        frame_vector("one message", [b"hello"], port=3, sequence=10),
        frame_vector("empty value", [b"", b"x", b""], port=1),
        frame_vector("framed: the first framing vector", [b"\x00\x00\x00\x2c" + HOPE], encoding=1, timestamp_ms=1),
        frame_vector("framed: two messages, u8", [b"\x01a", b"\x00"], encoding=1, sequence=7),
        frame_vector("keys", [b"1", b"2", b"3"], keys=[a, b], key_indexes=[0, 1, 0], encoding=16),
        frame_vector("the empty key", [b"s"], keys=[""], key_indexes=[0]),
        frame_vector("framed: no message", [], encoding=1),
        frame_vector("private: no message", [], encoding=17, port=3),
        frame_vector("keys without messages", [], keys=[a], key_indexes=[]),
        frame_vector("sequences with gaps and repeats", [b"1", b"2", b"3"], sequence=5, sequences=[5, 5, 300]),
        frame_vector("sequence differences of 4 bytes", [b"1", b"2"], sequence=1, sequences=[1, 70001]),
        frame_vector("sequence differences of 8 bytes", [b"1", b"2"], sequences=[0, 1 << 40]),
        frame_vector("largest sequence", [b"1"], sequence=(1 << 64) - 1, sequences=[(1 << 64) - 1]),
        frame_vector("timestamp before 1970", [b"1"], timestamp_ms=-1),
        frame_vector("timestamps", [b"1", b"2"], timestamp_ms=-5, timestamps=[-5, 1000]),
        frame_vector("headers", [b"1", b"2"], headers=[[["h", "00"]], []]),
        frame_vector("absent", [None, b"", None], keys=[a, b], key_indexes=[0, 1, 1], encoding=17),
        frame_vector("absent in the ninth message", [b"1"] * 8 + [None]),
        frame_vector("value of 256 bytes: width 2", [b"v" * 256]),
        frame_vector("300 distinct keys: indexes of width 2", [b""] * 300, keys=[struct.pack(">H", i).hex() for i in range(300)], key_indexes=list(range(300))),
        frame_vector("everything", [b"v1", None, b"", b"v4"], **full),
        frame_vector("everything, in columns of width 8", [b"v1", None, b"", b"v4"], widths=wide, **full),
        frame_vector("columns of width 4", [b"v1", b"v2"], widths={"lengths": 4, "sequences": 4}, sequences=[0, 1]),
        frame_vector("dead letters", [b"\x0a\x04C501"], port=65535, sequence=9, sequences=[9]),
    ]  # fmt: skip


def invalid_frames() -> list[dict[str, Any]]:
    def case(name: str, reason: str, frame: bytes) -> dict[str, Any]:
        return {"name": name, "reason": reason, "hex": frame.hex()}

    def body(flags: int, count: int, data: bytes, encoding: int = 0) -> bytes:
        return seal(flags, encoding, 0, count, 0, 0, data)

    good = seal(0, 0, 0, 1, 0, 0, b"\x01\x02hi")
    return [
        case("no bytes of a header", "cut", b"WFR1"),
        case("39 bytes", "cut", good[:39]),
        case("body cut by one byte", "cut", good[:-1]),
        case("other magic", "magic", seal(0, 0, 0, 1, 0, 0, b"\x01\x02hi", magic=b"WFR2")),
        case("unknown flag", "flags", body(32, 1, b"\x01\x02hi")),
        case("reserved is not 0", "flags", seal(0, 0, 0, 1, 0, 0, b"\x01\x02hi", reserved=1)),
        case("body longer than a frame may be", "size", seal(0, 0, 0, 1, 0, 0, b"\x01\x02hi", size=67108825)),
        case("wrong checksum", "checksum", seal(0, 0, 0, 1, 0, 0, b"\x01\x02hi", flip=1)),
        case("a bit of the value flipped", "checksum", good[:-1] + bytes([good[-1] ^ 1])),
        case("a bit of the sequence flipped", "checksum", good[:16] + b"\x01" + good[17:]),
        case("column of width 3", "column", body(0, 1, b"\x03\x02\x00\x00hi")),
        case("column of width 0", "column", body(0, 1, b"\x00hi")),
        case("more lengths than the body holds", "column", body(0, 1000000, b"\x01\x02hi")),
        case("4 thousand million messages", "column", body(0, 0xFFFFFFFF, b"\x08")),
        case("values shorter than their lengths", "values", body(0, 1, b"\x01\x03hi")),
        case("bytes behind the values", "values", body(0, 1, b"\x01\x01hi")),
        case("values for no message", "values", body(0, 0, b"\x01hi")),
        case("framed: bytes for no message", "values", body(0, 0, b"\x01", 1)),
        case("length of 2**64-1", "values", body(0, 1, b"\x08" + b"\xff" * 8)),
        case("no column at all", "column", body(0, 1, b"")),
        case("key index out of range", "keys", body(1, 1, struct.pack("<I", 1) + b"\x01\x01k\x01\x01" + b"\x01\x00")),
        case("more keys than the body holds", "keys", body(1, 1, struct.pack("<I", 0xFFFFFFFF) + b"\x01\x01k")),
        case("key lengths past the body", "keys", body(1, 1, struct.pack("<I", 1) + b"\x01\xffk\x01\x00\x01\x00")),
        case("bitmap cut", "absent", body(16, 64, b"\xff\xff")),
        case("headers past the body", "headers", body(8, 1, b"\x01\xff\x01\x00")),
    ]


def piece_vectors() -> dict[str, Any]:
    """State logs of one key whose state is in pieces, with what it is."""
    state = b"My solitude is cheered by that elegant hope."

    def entry(data: bytes, number: int = 0, count: int = 0, name: str = "piece", **other: Any) -> str:
        fields: dict[str, Any] = {"port": 1, "encoding": 17, "keys": [b"k".hex()], "key_indexes": [0], **other}
        if count:
            fields["headers"] = [[[name, struct.pack("<II", number, count).hex()]]]
        return str(frame_vector("", [data], **fields)["hex"])

    def cut(*ends: int) -> list[str]:
        starts = [0, *ends]
        return [entry(state[a:b], at, len(starts)) for at, (a, b) in enumerate(zip(starts, [*ends, None], strict=True))]

    a, b, c = cut(10, 20)
    valid = {
        "in one": [entry(state)],
        "in two": cut(20),
        "in four, of any length": cut(1, 1, 40),
        "after another state": [entry(b"old"), a, b, c],
    }
    invalid = {
        "the last is missing": [a, b], "the first is missing": [b, c], "one twice": [a, a, b, c], "out of turn": [a, c, b],
        "another entry between": [a, entry(state), b, c], "another count": [a, *cut(10)[1:]], "another key": [a, entry(state[10:20], 1, 3, keys=["6b6b"]), c],
        "another port": [a, entry(state[10:20], 1, 3, port=2), c], "another encoding": [a, entry(state[10:20], 1, 3, encoding=16), c],
        "one of one": [entry(state, 0, 1)], "number and count are equal": [a, b, entry(state, 3, 3)], "another header": [entry(state, 0, 2, name="peace"), c],
    }  # fmt: skip
    return {
        "valid": [{"name": name, "entries": entries, "state": state.hex()} for name, entries in valid.items()],
        "invalid": [{"name": name, "entries": entries} for name, entries in invalid.items()],
    }
