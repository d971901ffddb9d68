"""Writes `topology-schema/vectors` from the text of SPECIFICATION.md alone; --check only compares.

Imports nothing of the project: what it computes is a second opinion on frames, keys, framing, codecs and the canonical form.
"""

import base64
import hashlib
import json
import math
import random
import struct
import sys
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

from vector.make_documents import SAME_INTERFACE, VALID
from vector.make_frames import HOPE, frame_vector, invalid_frames, piece_vectors, seal, valid_frames
from vector.make_goka import goka_vectors, wrong_goka
from vector.make_records import record_vectors, wrong_records
from vector.make_timers import timer_vectors, wrong_timers
from vector.make_windows import window_vectors, wrong_windows
from vector.make_wrong_documents import INVALID

FOLDER = Path(__file__).resolve().parents[2] / "topology-schema" / "vectors"
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
    return {
        "declared": declared,
        "hex": key.hex(),
        "document": document,
        "crc32": crc,
        "hash": mixed,
        "buckets": buckets,
    }


def key_vectors() -> dict[str, Any]:
    texts = [
        "",
        "a",
        "z",
        "!",
        "AAPL",
        "congress",
        "Grüße",
        "日本",
        "🤞🏽",
        "two words",
        '"<&>\\',
        "\n",
        "\x7f",
        "\x85",
        "x" * 300,
    ]
    raw = [
        b"",
        b"AAPL",
        b"\xff",
        b"\x00",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\x00\x00\x00\x00\x00\x00\x00\x07",
        bytes(range(256)),
    ]
    numbers = [0, 1, 7, 255, 256, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
    cases = [key_vector({"text": t}, t.encode(), key_document(t.encode())) for t in texts]
    cases += [key_vector({"bytes": b.hex()}, b, key_document(b)) for b in raw]
    cases += [key_vector({"integer": n}, struct.pack(">Q", n), n) for n in numbers]
    return {"check": {"crc32 of 123456789": zlib.crc32(b"123456789")}, "cases": cases}


def framing_vectors() -> dict[str, Any]:
    def wire(kind: str, payload: bytes) -> bytes:
        width = int(kind[1:].rstrip("bel")) // 8
        return len(payload).to_bytes(width, "little" if kind.endswith("le") else "big") + payload

    def case(name: str, kind: str, pieces: list[bytes], messages: list[bytes], **more: Any) -> dict[str, Any]:
        limit = more.pop("max_message_bytes", 16777216)
        base = {
            "name": name,
            "framing": {"kind": kind},
            "max_message_bytes": limit,
            "pieces": [p.hex() for p in pieces],
        }
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
    cases += [
        case(f"kind {k}", k, [wire(k, b"a") + wire(k, b"") + wire(k, b"b" * 200)], [b"a", b"", b"b" * 200])
        for k in kinds
    ]
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
    lines = [
        case("lines", "newline", [b"one\ntwo\n"], [b"one", b"two"]),
        case("lines in pieces of one byte", "newline", [b"a", b"b", b"\n", b"c", b"\n"], [b"ab", b"c"]),
        case("CR LF, also in two pieces", "newline", [b"one\r\ntwo\r", b"\nthree\n"], [b"one", b"two", b"three"]),
        case("other CRs belong to the line", "newline", [b"a\rb\n\rc\r\r\n\r\n"], [b"a\rb", b"\rc\r", b""]),
        case("empty lines", "newline", [b"\n\n\r\nend\n"], [b"", b"", b"", b"end"]),
        case("the end of the stream ends the last line", "newline", [b"one\ntw", b"o"], [b"one", b"two"]),
        case("the end of the stream after CR", "newline", [b"one\r"], [b"one"]),
        case("no lines", "newline", [], []),
        case("a line as long as the limit", "newline", [b"hello\nwor", b"ld\n"], [b"hello", b"world"], max_message_bytes=5),
        case("a line of one more", "newline", [b"hi\nhello!\n"], [b"hi"], max_message_bytes=5, end="too_large"),
        case("a line of one more, without its end", "newline", [b"hi\nhel", b"lo!"], [b"hi"], max_message_bytes=5, end="too_large"),
        case("bytes that are no text", "newline", [b"\xff\x00\n"], [b"\xff\x00"]),
    ]  # fmt: skip
    return {"cases": cases + lines}


def ecmascript(number: float) -> str:
    """Return a number as ECMAScript's Number::toString has it, by its own rules over the shortest digits."""
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text, point = "".join(map(str, digits)), len(digits) + exponent
    if number == 0:
        return "0"
    if len(text) <= point <= 21:
        shown = text + "0" * (point - len(text))
    elif 0 < point <= 21:
        shown = f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        shown = "0." + "0" * -point + text
    else:
        shown = f"{text[0]}.{text[1:]}".rstrip(".") + f"e{point - 1:+d}"
    return "-" * sign + shown


def number_vectors() -> list[dict[str, Any]]:
    edges = [
        0.0, -0.0, 1.0, -1.0, 0.1, 98.6, 1e15, 1e16, 1e20, 1e21, 1.5e21, 1e22, 1e23, 1e-5, 1e-6, 1e-7, 1.5e-7, 0.0001, 5e-324, 1e308, 2.0**53,
        2.0**53 + 2, 2.0**63, 2.0**64, -(2.0**63), 1.7976931348623157e308, 2.2250738585072014e-308, 123456789012345680000.0, 4.35, 333333333.3333333,
    ]  # fmt: skip
    drawn = random.Random(11)  # bits give every size; products of small numbers what programs have
    edges += [x for x in (struct.unpack(">d", drawn.randbytes(8))[0] for _ in range(120)) if math.isfinite(x)]
    edges += [drawn.randrange(-(10**6), 10**6) * 10.0 ** drawn.randrange(-12, 24) for _ in range(120)]
    return [{"bits": struct.pack(">d", x).hex(), "text": ecmascript(x)} for x in edges]


LONE_SURROGATES = (
    r'"\ud800"', r'"a\udc00b"', r'"\uDBFFx"', r'"\ud83d\ud83d\ude00"', r'"\ude00\ud83d"', r'"\ud83d \ude00"', r'"\ud83d\n\ude00"',
    r'{"\udfff":1}', r'[{"a":["\\\ud800"]}]', r'"\ud83d\\ude00"',
)  # fmt: skip


def codec_vectors() -> dict[str, Any]:
    def bits(text: str) -> str:
        return struct.pack(">d", float(text)).hex()

    floats = ["0.0", "-0.0", "1.0", "-1.5", "0.1", "98.6", "1e308", "5e-324", "Infinity", "-Infinity", "NaN"]
    longs = [0, 1, -1, 255, 256, (1 << 53) + 1, -(1 << 63), (1 << 63) - 1]
    texts = ["", "hope", "Grüße", "🤞🏽", "a\u0000b", "\u2028"]
    documents: list[tuple[Any, str]] = [
        (True, "true"), (None, "null"), (-7, "-7"), ("a\"<\u2028\n", '"a\\"<\u2028\\n"'), ([], "[]"), ({}, "{}"),
        ([1, [2], "x"], '[1,[2],"x"]'), ({"b": 1, "a": [True]}, '{"a":[true],"b":1}'), ({"é": 1, "z": 2, "Z": 3}, '{"Z":3,"z":2,"é":1}'),
        ((1 << 53) + 1, "9007199254740993"), (-(1 << 63), "-9223372036854775808"), (1 << 80, "1208925819614629174706176"), (10**21, "1" + "0" * 21),
        ({"\uffff": 1, "😀": 2, "\ue000": 3, "10": 4, "9": 5}, '{"10":4,"9":5,"\ue000":3,"\uffff":1,"😀":2}'),
    ]  # fmt: skip
    struct_ = "0a0b0a0161120632040a022001" + "0a0e0a0162120911000000000000f03f"
    wrapped: list[tuple[str, Any, str]] = [  # the value in protobuf's JSON
        ("StringValue", "", ""), ("StringValue", "Grüße", "0a074772c3bcc39f65"), ("Int64Value", "-1", "08" + "ff" * 9 + "01"),
        ("Int64Value", "300", "08ac02"), ("Struct", {}, ""), ("Struct", {"b": 1, "a": [True]}, struct_),
    ]  # fmt: skip
    return {
        "cases": [
            *({"codec": "bytes", "value": h, "hex": h} for h in ("", "00", "ff00fe", HOPE.hex())),
            *({"codec": "string", "value": t, "hex": t.encode().hex()} for t in texts),
            *({"codec": "int64", "value": n, "hex": struct.pack(">q", n).hex()} for n in longs),
            *({"codec": "float64", "value": t, "hex": bits(t)} for t in floats),
            *({"codec": "json", "value": v, "hex": t.encode().hex()} for v, t in documents),
            *({"codec": f"protobuf:google.protobuf.{name}", "value": v, "hex": h} for name, v, h in wrapped),
        ],
        "json_numbers": number_vectors(),
        "kept": [{"codec": "protobuf:google.protobuf.StringValue", "hex": "0a0161" + "7a0162"}],
        "invalid": [
            {"codec": "string", "hex": "ff"}, {"codec": "string", "hex": "eda080"},
            {"codec": "int64", "hex": ""}, {"codec": "int64", "hex": "00000000000000"}, {"codec": "int64", "hex": "000000000000000000"},
            {"codec": "float64", "hex": "3ff0"}, {"codec": "json", "hex": ""}, {"codec": "json", "hex": b"{'a':1}".hex()},
            {"codec": "json", "hex": b"NaN".hex()}, {"codec": "json", "hex": b"1 2".hex()},
            *({"codec": "json", "hex": text.encode().hex()} for text in LONE_SURROGATES),
            {"codec": "json", "hex": b"1e400".hex()}, {"codec": "json", "hex": b"[-1e400]".hex()}, {"codec": "json", "hex": b"01".hex()},
            {"codec": "protobuf:google.protobuf.StringValue", "hex": "ff"}, {"codec": "protobuf:google.protobuf.StringValue", "hex": "0a0261"},
            {"codec": "protobuf:google.protobuf.StringValue", "hex": "0a01ff"}, {"codec": "protobuf:google.protobuf.Struct", "hex": "0a01"},
        ],
    }  # fmt: skip


def interface_hash(document: dict[str, Any]) -> str:
    def stripped(part: dict[str, Any]) -> dict[str, Any]:
        left_out = ("host", "port", "cookie", "brokers", "options")
        return {name: value for name, value in part.items() if name not in left_out}

    pipelines = [
        {"name": p["name"], "sources": [stripped(s) for s in p["sources"]], "steps": p["steps"], "sinks": [stripped(s) for s in p["sinks"]]}
        for p in document["pipelines"]
    ]  # fmt: skip
    names = ("topology_version", "name", "on_error")
    rest = {name: document[name] for name in names if name in document} | {"pipelines": pipelines}
    return "sha256:" + hashlib.sha256((canonical(rest) + "\n").encode()).hexdigest()


def with_hash(document: dict[str, Any]) -> dict[str, Any]:
    program, *libraries = document["workers"]
    return document | {"workers": [program | {"interface_hash": interface_hash(document)}, *libraries]}


def interface_vectors() -> dict[str, Any]:
    cases = [
        {"name": name, "document": f"topologies/valid/{name}.json", "interface_hash": interface_hash(d)}
        for name, d in VALID.items()
    ]
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
        "codecs": [{"codec": "int64", "value": 1, "hex": "0100000000000000"}, {"codec": "protobuf:google.protobuf.StringValue", "value": "a", "hex": "0a0162"}],
        "windows": wrong_windows(), "timers": wrong_timers(), "records": wrong_records(), "goka": wrong_goka(),
        "interface_hash": [{"name": "zeros", "document": "topologies/valid/word_count.json", "interface_hash": "sha256:" + "0" * 64}],
    }  # fmt: skip


def files() -> dict[str, str]:
    """Return every vector file: name to content."""
    made = {
        "canonical.json": canonical_vectors(), "keys.json": key_vectors(), "framing.json": framing_vectors(),
        "frames.json": {"valid": valid_frames(), "invalid": invalid_frames()}, "codecs.json": codec_vectors(),
        "pieces.json": piece_vectors(), "records.json": record_vectors(), "goka.json": goka_vectors(),
        "interface_hash.json": interface_vectors(), "windows.json": window_vectors(), "timers.json": timer_vectors(), "selftest.json": selftest(),
    }  # fmt: skip
    texts = {name: json.dumps(value, indent=1) + "\n" for name, value in made.items()}
    texts |= {
        f"topologies/valid/{name}.json": canonical(with_hash(document)) + "\n" for name, document in VALID.items()
    }
    texts |= {
        f"topologies/invalid/{name}.json": json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        for name, value in INVALID.items()
    }
    return texts


def main() -> int:
    stale = []
    for name, text in files().items():
        path = FOLDER / name
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
