"""Writes the test vectors of this folder from the text of SPECIFICATION.md alone; --check only compares.

Imports nothing of the project: what it computes is a second opinion on frames, keys, framing, codecs and the canonical form.
"""

import base64
import hashlib
import json
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

from make_documents import INVALID, SAME_INTERFACE, VALID

HERE = Path(__file__).resolve().parent
BUCKET_COUNTS = (1, 2, 7, 8, 16, 1000, 65536)
NAMED_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def canonical_string(text: str) -> str:
    return '"' + "".join(NAMED_ESCAPES.get(c) or (f"\\u{ord(c):04x}" if c < " " else c) for c in text) + '"'


def canonical(value: Any, indent: str = "") -> str:
    inner = indent + "  "
    if isinstance(value, str):
        return canonical_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        lines = [f"{inner}{canonical_string(name)}: {canonical(item, inner)}" for name, item in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}" if lines else "{}"
    lines = [inner + canonical(item, inner) for item in value]
    return "[\n" + ",\n".join(lines) + f"\n{indent}]" if lines else "[]"


def canonical_vectors() -> dict[str, Any]:
    strings = {
        "empty": "", "plain": "My solitude is cheered", "quote": 'say "hi"', "backslash": "C:\\new", "slash": "a/b",
        "html": "<a href='x'>&amp;</a>", "line separator": "a\u2028b", "paragraph separator": "a\u2029b",
        "delete": "a\u007fb", "next line": "a\u0085b", "tab, newline, return": "\t\n\r", "backspace, form feed": "\b\f",
        "null byte": "\u0000", "escape": "\u001b[0m", "unit separator": "\u001f", "umlaut": "Grüße", "emoji": "🤞🏽",
        "family": "👨\u200d👩\u200d👧", "byte order mark": "\ufeffx", "noncharacter": "\uffff", "plane 16": "\U0010ffff",
        "last before surrogates": "\ud7ff", "first private": "\ue000", "all controls": "".join(map(chr, range(32))),
    }  # fmt: skip
    documents: dict[str, Any] = {
        "empty object": {}, "empty array": {"a": []}, "nested empties": {"a": [{}, [], {"b": []}]},
        "integers": {"zero": 0, "negative": -1, "past 2**53": 9007199254740993, "uint64": 18446744073709551615},
        "array of strings": ["a", "b"], "array of arrays": [[1, 2], [3]], "object in array": [{"b": 1, "a": 2}],
        "escapes in keys": {"\u2028\"<": "\u0001"},
    }  # fmt: skip
    return {
        "strings": [{"name": n, "value": v, "canonical": canonical_string(v)} for n, v in strings.items()],
        "documents": [{"name": n, "value": v, "canonical": canonical(v) + "\n"} for n, v in documents.items()],
    }


def key_document(key: bytes) -> Any:
    try:
        text = key.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(key).decode()}
    if any(c < " " or "\x7f" <= c <= "\x9f" for c in text):
        return {"base64": base64.b64encode(key).decode()}
    return text


def key_vector(declared: dict[str, Any], key: bytes, document: Any) -> dict[str, Any]:
    crc = zlib.crc32(key)
    mixed = crc * 0x9E3779B1 % (1 << 32)
    buckets = {str(count): mixed * count >> 32 for count in BUCKET_COUNTS}
    return {"declared": declared, "hex": key.hex(), "document": document, "crc32": crc, "hash": mixed, "buckets": buckets}


def key_vectors() -> dict[str, Any]:
    texts = ["", "a", "z", "!", "AAPL", "congress", "Grüße", "日本", "🤞🏽", "two words", '"<&>\\', "\n", "\x7f", "\x85", "x" * 300]
    raw = [b"", b"AAPL", b"\xff", b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\x00\x00\x00\x00\x00\x00\x00\x07", bytes(range(256))]
    numbers = [0, 1, 7, 255, 256, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
    cases = [key_vector({"text": t}, t.encode(), key_document(t.encode())) for t in texts]
    cases += [key_vector({"bytes": b.hex()}, b, key_document(b)) for b in raw]
    cases += [key_vector({"integer": n}, struct.pack(">Q", n), n) for n in numbers]
    return {"check": {"crc32 of 123456789": zlib.crc32(b"123456789")}, "cases": cases}


def integers(numbers: list[int], width: int) -> bytes:
    return bytes([width]) + b"".join(n.to_bytes(width, "little") for n in numbers)


def narrow(numbers: list[int]) -> bytes:
    return integers(numbers, next(w for w in (1, 2, 4, 8) if all(n < 1 << 8 * w for n in numbers)))


def seal(flags: int, encoding: int, port: int, count: int, sequence: int, timestamp: int, body: bytes, **fault: Any) -> bytes:
    start = struct.pack(
        "<4sBBHIIQqI", fault.get("magic", b"WFR1"), flags, encoding, port, count, fault.get("size", len(body)),
        sequence, timestamp, fault.get("reserved", 0),
    )  # fmt: skip
    return start + struct.pack("<I", zlib.crc32(start + body) ^ fault.get("flip", 0)) + body


def message_headers(pairs: list[list[str]]) -> bytes:
    parts = [(n.encode(), bytes.fromhex(v)) for n, v in pairs]
    return b"".join(struct.pack("<H", len(n)) + n + struct.pack("<I", len(v)) + v for n, v in parts)


def frame_vector(name: str, values: list[bytes | None], widths: dict[str, int] | None = None, **fields: Any) -> dict[str, Any]:
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
        case("length of 2**64-1", "values", body(0, 1, b"\x08" + b"\xff" * 8)),
        case("no column at all", "column", body(0, 1, b"")),
        case("key index out of range", "keys", body(1, 1, struct.pack("<I", 1) + b"\x01\x01k\x01\x01" + b"\x01\x00")),
        case("more keys than the body holds", "keys", body(1, 1, struct.pack("<I", 0xFFFFFFFF) + b"\x01\x01k")),
        case("key lengths past the body", "keys", body(1, 1, struct.pack("<I", 1) + b"\x01\xffk\x01\x00\x01\x00")),
        case("bitmap cut", "absent", body(16, 64, b"\xff\xff")),
        case("headers past the body", "headers", body(8, 1, b"\x01\xff\x01\x00")),
    ]


def framing_vectors() -> dict[str, Any]:
    def wire(kind: str, payload: bytes) -> bytes:
        width = int(kind[1:].rstrip("bel")) // 8
        return len(payload).to_bytes(width, "little" if kind.endswith("le") else "big") + payload

    def case(name: str, kind: str, pieces: list[bytes], messages: list[bytes], **more: Any) -> dict[str, Any]:
        limit = more.pop("max_message_bytes", 16777216)
        base = {"name": name, "framing": {"kind": kind}, "max_message_bytes": limit, "pieces": [p.hex() for p in pieces]}
        return base | {"messages": [m.hex() for m in messages], "end": "clean"} | more

    hope = b"\x00\x00\x00\x2c" + HOPE
    kinds = ("u8", "u16be", "u16le", "u32be", "u32le", "u64be", "u64le")
    cases = [
        case("the first framing vector", "u32be", [hope], [HOPE]),
        case("pieces of one byte", "u32be", [bytes([b]) for b in hope * 2], [HOPE, HOPE]),
        case("header in two pieces", "u32be", [hope[:3], hope[3:]], [HOPE]),
        case("payload in two pieces with the next header", "u32be", [hope[:20], hope[20:] + hope[:2], hope[2:]], [HOPE, HOPE]),
        case("three messages in one piece", "u32be", [hope * 3], [HOPE] * 3),
        case("empty payloads", "u32be", [bytes(8) + hope + bytes(4)], [b"", b"", HOPE, b""]),
        case("nothing", "u32be", [], []),
    ]  # fmt: skip
    cases += [case(f"kind {k}", k, [wire(k, b"a") + wire(k, b"") + wire(k, b"b" * 200)], [b"a", b"", b"b" * 200]) for k in kinds]
    cases += [case(f"kind {k}, 257 bytes", k, [wire(k, b"c" * 257)], [b"c" * 257]) for k in kinds[1:]]
    cases += [
        case("as long as the limit", "u16be", [b"\x00\x05hello"], [b"hello"], max_message_bytes=5),
        case("one more than the limit", "u16be", [b"\x00\x02hi\x00\x06hello!"], [b"hi"], max_message_bytes=5, end="too_large", announced_bytes=6),
        case("u32be announces 4 GiB", "u32be", [b"\xff\xff\xff\xff"], [], end="too_large", announced_bytes=4294967295),
        case("u64le announces 2**64-1", "u64le", [b"\xff" * 8], [], end="too_large", announced_bytes=18446744073709551615),
        case("cut in the header", "u32be", [hope + hope[:3]], [HOPE], end="cut", received_bytes=3),
        case("cut behind the header", "u32be", [hope[:4]], [], end="cut", received_bytes=4, expected_bytes=48),
        case("cut in the payload", "u32be", [hope[:24]], [], end="cut", received_bytes=24, expected_bytes=48),
        case("cut before the last byte", "u32be", [hope + hope[:47]], [HOPE], end="cut", received_bytes=47, expected_bytes=48),
    ]  # fmt: skip
    return {"cases": cases}


def codec_vectors() -> dict[str, Any]:
    def bits(text: str) -> str:
        return struct.pack(">d", float(text)).hex()

    floats = ["0.0", "-0.0", "1.0", "-1.5", "0.1", "98.6", "1e308", "5e-324", "Infinity", "-Infinity", "NaN"]
    longs = [0, 1, -1, 255, 256, (1 << 53) + 1, -(1 << 63), (1 << 63) - 1]
    texts = ["", "hope", "Grüße", "🤞🏽", "a\u0000b", "\u2028"]
    documents: list[tuple[Any, str]] = [
        (True, "true"), (None, "null"), (-7, "-7"), ("a\"<\u2028\n", '"a\\"<\u2028\\n"'), ([], "[]"), ({}, "{}"),
        ([1, [2], "x"], '[1,[2],"x"]'), ({"b": 1, "a": [True]}, '{"a":[true],"b":1}'), ({"é": 1, "z": 2, "Z": 3}, '{"Z":3,"z":2,"é":1}'),
    ]  # fmt: skip
    return {
        "cases": [
            *({"codec": "bytes", "value": h, "hex": h} for h in ("", "00", "ff00fe", HOPE.hex())),
            *({"codec": "string", "value": t, "hex": t.encode().hex()} for t in texts),
            *({"codec": "int64", "value": n, "hex": struct.pack(">q", n).hex()} for n in longs),
            *({"codec": "float64", "value": t, "hex": bits(t)} for t in floats),
            *({"codec": "json", "value": v, "hex": t.encode().hex()} for v, t in documents),
        ],
        "invalid": [
            {"codec": "string", "hex": "ff"}, {"codec": "string", "hex": "eda080"},
            {"codec": "int64", "hex": ""}, {"codec": "int64", "hex": "00000000000000"}, {"codec": "int64", "hex": "000000000000000000"},
            {"codec": "float64", "hex": "3ff0"}, {"codec": "json", "hex": ""}, {"codec": "json", "hex": b"{'a':1}".hex()},
            {"codec": "json", "hex": b"NaN".hex()}, {"codec": "json", "hex": b"1 2".hex()},
        ],
    }  # fmt: skip


def interface_hash(document: dict[str, Any]) -> str:
    def stripped(part: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in part.items() if name not in ("host", "port")}

    pipelines = [
        {"name": p["name"], "sources": [stripped(s) for s in p["sources"]], "steps": p["steps"], "sinks": [stripped(s) for s in p["sinks"]]}
        for p in document["pipelines"]
    ]  # fmt: skip
    rest = {"topology_version": document["topology_version"], "name": document["name"], "pipelines": pipelines}
    return "sha256:" + hashlib.sha256((canonical(rest) + "\n").encode()).hexdigest()


def with_hash(document: dict[str, Any]) -> dict[str, Any]:
    workers = [worker | {"interface_hash": interface_hash(document)} for worker in document["workers"]]
    return document | {"workers": workers}


def interface_vectors() -> dict[str, Any]:
    cases = [{"name": name, "document": f"topologies/valid/{name}.json", "interface_hash": interface_hash(d)} for name, d in VALID.items()]
    same = [{"name": name, "interface_hash": interface_hash(d), "value": d} for name, d in SAME_INTERFACE.items()]
    return {"files": cases, "documents": same}


def selftest() -> dict[str, Any]:
    frame = frame_vector("the value differs", [b"a"]) | {"values": [b"b".hex()]}
    key = key_vector({"text": "a"}, b"a", "a")
    return {
        "about": "Every case here is wrong. A runner runs each of them like its siblings and must report a failure.",
        "canonical": [{"name": "U+2028 escaped", "value": "\u2028", "canonical": '"\\u2028"'}],
        "keys": [key | {"hash": key["hash"] ^ 1, "buckets": {n: (b + 1) % int(n) if n != "1" else 1 for n, b in key["buckets"].items()}}],
        "frames": [frame],
        "invalid_frames": [{"name": "nothing is wrong with it", "reason": "magic", "hex": seal(0, 0, 0, 0, 0, 0, b"\x01").hex()}],
        "framing": [{"name": "the length counts the header too", "framing": {"kind": "u8"}, "max_message_bytes": 9, "pieces": ["026162"], "messages": ["61"], "end": "clean"}],
        "codecs": [{"codec": "int64", "value": 1, "hex": "0100000000000000"}],
        "interface_hash": [{"name": "zeros", "document": "topologies/valid/word_count.json", "interface_hash": "sha256:" + "0" * 64}],
    }  # fmt: skip


def files() -> dict[str, str]:
    """Return every vector file: name to content."""
    made = {
        "canonical.json": canonical_vectors(), "keys.json": key_vectors(), "framing.json": framing_vectors(),
        "frames.json": {"valid": valid_frames(), "invalid": invalid_frames()}, "codecs.json": codec_vectors(),
        "interface_hash.json": interface_vectors(), "selftest.json": selftest(),
    }  # fmt: skip
    texts = {name: json.dumps(value, indent=1) + "\n" for name, value in made.items()}
    texts |= {f"topologies/valid/{name}.json": canonical(with_hash(document)) + "\n" for name, document in VALID.items()}
    texts |= {f"topologies/invalid/{name}.json": json.dumps(value, indent=2, ensure_ascii=False) + "\n" for name, value in INVALID.items()}
    return texts


def main() -> int:
    stale = []
    for name, text in files().items():
        path = HERE / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    print("\n".join(f"written or stale: {name}" for name in stale))
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
