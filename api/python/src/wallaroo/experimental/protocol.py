"""The frames of the connector protocol: `topology-schema/SPECIFICATION.md`, section 7."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PROTOCOL_VERSION = "0.0.1"
HELLO, OK, ERROR, NOTIFY, NOTIFY_ACK, MESSAGE, ACK, RESTART, EOS_MESSAGE = range(9)
MAX_FRAME_BYTES = 64 * 1024 * 1024
MOST_ERROR_CHARACTERS = 1000
NEVER = 2**64 - 1  # value for the point of reference of an unknown stream
_U32, _U64 = struct.Struct(">I"), struct.Struct(">Q")
_MESSAGE, _POSITION = struct.Struct(">QQqH"), struct.Struct(">QQ")


class ProtocolError(Exception):
    """The other side violated the protocol."""


@dataclass(frozen=True, slots=True)
class ReceivedFrame:
    """A frame that the other side sent.

    Attributes:
        tag: Kind of the frame: `HELLO` to `EOS_MESSAGE`.
        credits: How many more messages may be sent.
        error: Text of `ERROR`.
        is_accepted: Whether a stream may send.
        positions: Streams with their points of reference; `NOTIFY`, `MESSAGE` and `EOS_MESSAGE` have one stream.
        texts: For `HELLO` version, cookie, program and instance; for `NOTIFY` the stream's name.
        payload: Payload of `MESSAGE`.
    """

    tag: int
    credits: int = 0
    error: str = ""
    is_accepted: bool = False
    positions: tuple[tuple[int, int], ...] = ()
    texts: tuple[str, ...] = ()
    payload: bytes = b""


def hello(version: str, cookie: str, program: str, instance: str) -> bytes:
    """Return the first frame of a connector."""
    return framed(HELLO, b"".join(map(_text, (version, cookie, program, instance))))


def notify(stream: int, name: str, point_of_reference: int) -> bytes:
    """Return the frame that announces a stream."""
    return framed(NOTIFY, _U64.pack(stream) + _text(name) + _U64.pack(point_of_reference))


def message(stream: int, message_id: int, event_time_ns: int, key: bytes, payload: bytes) -> bytes:
    """Return the frame of a message."""
    return framed(MESSAGE, _MESSAGE.pack(stream, message_id, event_time_ns, len(key)) + key + payload)


def end_of_stream(stream: int) -> bytes:
    """Return the frame that ends a stream."""
    return framed(EOS_MESSAGE, _U64.pack(stream))


def ok(credits: int) -> bytes:
    """Return the frame that accepts the other side."""
    return framed(OK, _U32.pack(credits))


def error(text: str) -> bytes:
    """Return the frame that refuses the other side."""
    return framed(ERROR, _text(text[:MOST_ERROR_CHARACTERS]))


def notify_ack(stream: int, point_of_reference: int, *, is_accepted: bool) -> bytes:
    """Return the frame that accepts or refuses a stream."""
    return framed(NOTIFY_ACK, bytes((is_accepted,)) + _POSITION.pack(stream, point_of_reference))


def ack(credits: int, positions: Mapping[int, int]) -> bytes:
    """Return the frame that gives new credits, and contains the points up to which streams are processed."""
    pairs = b"".join(_POSITION.pack(*pair) for pair in positions.items())
    return framed(ACK, _U32.pack(credits) + _U32.pack(len(positions)) + pairs)


def restart() -> bytes:
    """Return the frame that asks the other side to connect again."""
    return framed(RESTART, b"")


def framed(tag: int, fields: bytes) -> bytes:
    """Return the frame with this tag and these fields."""
    return _U32.pack(len(fields) + 1) + bytes((tag,)) + fields


def cut(received: bytearray) -> Iterator[ReceivedFrame]:
    """Remove complete frames from the front of the received bytes, and yield them.

    Raises:
        ProtocolError: The bytes are not a frame of the protocol.
    """
    while len(received) >= _U32.size:
        (size,) = _U32.unpack_from(received)
        if not 1 <= size <= MAX_FRAME_BYTES:
            msg = f"a frame of {size} bytes"
            raise ProtocolError(msg)
        if len(received) < _U32.size + size:
            return
        body = bytes(received[_U32.size : _U32.size + size])
        del received[: _U32.size + size]
        try:
            yield _read(body[0], body[1:])
        except (struct.error, UnicodeDecodeError, IndexError) as err:
            msg = f"a frame with tag {body[0]}: {err}"
            raise ProtocolError(msg) from err


def _read(tag: int, fields: bytes) -> ReceivedFrame:
    if tag == MESSAGE:
        stream, number, _, size = _MESSAGE.unpack_from(fields)
        return ReceivedFrame(tag, positions=((stream, number),), payload=fields[_MESSAGE.size + size :])
    if tag == OK:
        return ReceivedFrame(tag, credits=_U32.unpack(fields)[0])
    if tag == ERROR:
        return ReceivedFrame(tag, error=_texts(fields)[0])
    if tag == NOTIFY_ACK:
        return ReceivedFrame(tag, is_accepted=fields[0] != 0, positions=(_POSITION.unpack(fields[1:]),))
    if tag == ACK:
        credits, count = struct.unpack_from(">II", fields)
        positions = tuple(_POSITION.iter_unpack(fields[8:]))
        if len(positions) != count:
            msg = f"an ACK of {count} streams has {len(positions)}"
            raise ProtocolError(msg)
        return ReceivedFrame(tag, credits=credits, positions=positions)
    if tag == HELLO:
        return ReceivedFrame(tag, texts=_texts(fields))
    if tag == NOTIFY:
        ends = fields[: _U64.size] + fields[-_U64.size :]
        return ReceivedFrame(tag, positions=(_POSITION.unpack(ends),), texts=_texts(fields[_U64.size : -_U64.size]))
    if tag == EOS_MESSAGE:
        return ReceivedFrame(tag, positions=((_U64.unpack_from(fields)[0], 0),))
    if tag == RESTART:
        return ReceivedFrame(tag)
    msg = f"tag {tag}"
    raise ProtocolError(msg)


def _texts(fields: bytes) -> tuple[str, ...]:
    """Return all texts of the fields."""
    texts, at = [], 0
    while at < len(fields):
        (size,) = struct.unpack_from(">H", fields, at)
        texts.append(struct.unpack_from(f"{size}s", fields, at + 2)[0].decode())
        at += 2 + size
    return tuple(texts)


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack(">H", len(data)) + data
