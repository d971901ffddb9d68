"""Bytes of the worker protocol as the specification prints them: in hexadecimal digits, a line for each part."""

from collections.abc import Generator, Iterator

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from wallaroo.message.frame import FRAMED, HEADER, HEADER_BYTES, SEQUENCES, read_frame

INDENT, COLUMN, IN_A_LINE = "  ", 44, 13
Part = tuple[int, bytes, str]  # depth, bytes, what they are
FIELDS = (
    ("magic", 4), ("flags", 1), ("encoding", 1), ("port", 2), ("count", 4), ("body_bytes", 4),
    ("sequence", 8), ("timestamp_ms", 8), ("reserved", 4), ("checksum", 4),
)  # fmt: skip
MEANINGS = {("flags", SEQUENCES): ": sequences", ("encoding", FRAMED): ": framed", ("encoding", 0): ": raw bytes"}


def printed(parts: Iterator[Part]) -> str:
    """Return parts as lines: bytes, then what they are."""
    lines = []
    for depth, data, said in parts:
        for at in range(0, max(len(data), 1), IN_A_LINE):
            text = INDENT * depth + data[at : at + IN_A_LINE].hex(" ")
            lines.append(f"{text:{COLUMN}}{said if at == 0 else ''}".rstrip())
    return "\n".join(lines) + "\n"


def read_back(text: str) -> bytes:
    """Return the bytes that printed lines have."""
    return b"".join(bytes.fromhex(line[:COLUMN]) for line in text.splitlines())


def message_parts(message: Message, depth: int = 0) -> Iterator[Part]:
    """Yield the parts of a message of protobuf."""
    for field, value in message.ListFields():
        for each in [value] if isinstance(value, int | str | bytes | Message) else value:
            yield from _field_parts(field, each, depth)


def _field_parts(field: FieldDescriptor, value: object, depth: int) -> Iterator[Part]:
    name, number = field.name, field.number << 3
    if isinstance(value, int):
        yield depth, _varint(number) + _varint(value % (1 << 64)), f"field {field.number}, {name}: {value}"
        return
    data = _bytes_of(value)
    begin = _varint(number | 2) + _varint(len(data))
    if isinstance(value, str):
        yield depth, begin + data, f'field {field.number}, {name}: {len(data)} bytes, "{value}"'
        return
    yield depth, begin, f"field {field.number}, {name}: {len(data)} bytes"
    yield from message_parts(value, depth + 1) if isinstance(value, Message) else frame_parts(data, depth + 1)


def _bytes_of(value: object) -> bytes:
    if isinstance(value, Message):
        return value.SerializeToString(deterministic=True)
    return value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[call-overload]


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def frame_parts(data: bytes, depth: int) -> Iterator[Part]:
    """Yield the parts of a frame without keys, times, headers and absent values; framed values have a u32be length."""
    at = 0
    for (name, size), value in zip(FIELDS, HEADER.unpack_from(data), strict=True):
        shown = value.decode() if name == "magic" else f"{value:#010x}" if name == "checksum" else value
        yield depth, data[at : at + size], f"{name} {shown}{MEANINGS.get((name, value), '')}"
        at += size
    frame, body = read_frame(data), data[HEADER_BYTES:]
    if frame.header.flags & SEQUENCES:
        body = yield from _column(body, frame.header.count, "differences of sequences", depth)
    if frame.header.encoding == FRAMED:
        while body:
            end = 4 + int.from_bytes(body[:4], "big")
            yield depth, body[:4], "as on the wire: length of the payload"
            yield depth, body[4:end], f"payload {body[4:end].decode()!r}"
            body = body[end:]
        return
    yield from _column(body, frame.header.count, "lengths of values", depth)
    for value in frame.values():
        yield depth, value, f"value {value.decode()!r}"


def _column(body: bytes, count: int, name: str, depth: int) -> Generator[Part, None, bytes]:
    width, end = body[0], 1 + body[0] * count
    numbers = [int.from_bytes(body[at : at + width], "little") for at in range(1, end, width)]
    yield depth, body[:end], f"{name}, a column: width {width}, then {', '.join(map(str, numbers))}"
    return body[end:]
