"""The frames of the connector protocol, as a gateway reads and writes them: SPECIFICATION.md, section 7."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

VERSION = "0.0.1"
HELLO, OK, ERROR, NOTIFY, NOTIFY_ACK, MESSAGE, ACK, RESTART, EOS_MESSAGE = range(9)
CONTROL_BYTES = 64 * 1024
MOST_KEY_BYTES = 65535
_U16, _U32, _U64 = struct.Struct(">H"), struct.Struct(">I"), struct.Struct(">Q")
_MESSAGE, _POSITION = struct.Struct(">QQqH"), struct.Struct(">QQ")
MESSAGE_FIELDS_BYTES = 1 + _MESSAGE.size + MOST_KEY_BYTES


class ProtocolError(Exception):
    """A connector sent what the protocol does not have; the text says what, in words that follow a semicolon."""


@dataclass(frozen=True, slots=True)
class Hello:
    """Who a connector is."""

    version: str
    cookie: str
    program: str
    instance: str


@dataclass(frozen=True, slots=True)
class Notify:
    """A stream that a connector wants to send, and how far it takes the stream to be processed."""

    stream: int
    name: str
    point: int


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a stream; `event_time_ns` is 0 when it has no time."""

    stream: int
    id: int
    event_time_ns: int
    key: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class EndOfStream:
    """A stream that its connector sends no more of."""

    stream: int


Received = Hello | Notify | Message | EndOfStream


def read_frames(data: bytes) -> Iterator[Received]:
    """Yield what a connector says in bytes that are whole frames.

    Raises:
        ProtocolError: A frame is not one of a connector's; those before it were given.
    """
    at = 0
    while at < len(data):
        end = at + _U32.size + _U32.unpack_from(data, at)[0]
        try:
            yield _read(data, at + _U32.size, end)
        except (struct.error, UnicodeDecodeError) as error:
            reason = f"a frame of tag {data[at + _U32.size]} is damaged: {error}"
            raise ProtocolError(reason) from error
        at = end


def _read(data: bytes, at: int, end: int) -> Received:
    if at == end:
        reason = "a frame is empty"
        raise ProtocolError(reason)
    tag, at = data[at], at + 1
    if tag == MESSAGE:
        stream, number, time, size = _unpack(_MESSAGE, data, at, end)
        at += _MESSAGE.size
        if at + size > end:
            reason = f"a message has a key of {size} bytes; {end - at} are left"
            raise ProtocolError(reason)
        return Message(stream, number, time, data[at : at + size], data[at + size : end])
    if end - at > CONTROL_BYTES:
        reason = f"a frame of tag {tag} has {end - at} bytes; at most {CONTROL_BYTES} are allowed"
        raise ProtocolError(reason)
    if tag == HELLO:
        texts = []
        for _ in range(4):
            text, at = _text(data, at, end)
            texts.append(text)
        found: Received = Hello(*texts)
    elif tag == NOTIFY:
        (stream,) = _unpack(_U64, data, at, end)
        name, at = _text(data, at + _U64.size, end)
        found, at = Notify(stream, name, *_unpack(_U64, data, at, end)), at + _U64.size
    elif tag == EOS_MESSAGE:
        found, at = EndOfStream(*_unpack(_U64, data, at, end)), at + _U64.size
    else:
        reason = f"no connector sends a frame of tag {tag}"
        raise ProtocolError(reason)
    if at != end:
        reason = f"{end - at} bytes are left after a frame of tag {tag}"
        raise ProtocolError(reason)
    return found


def _unpack(layout: struct.Struct, data: bytes, at: int, end: int) -> tuple[int, ...]:
    if at + layout.size > end:
        reason = f"{layout.size} bytes were expected, {end - at} are left"
        raise struct.error(reason)
    return layout.unpack_from(data, at)


def _text(data: bytes, at: int, end: int) -> tuple[str, int]:
    (size,) = _unpack(_U16, data, at, end)
    at += _U16.size
    if at + size > end:
        reason = f"a text of {size} bytes was expected, {end - at} are left"
        raise struct.error(reason)
    return data[at : at + size].decode(), at + size


def ok(credits: int) -> bytes:
    """Return the frame that welcomes a connector."""
    return _framed(OK, _U32.pack(credits))


def error(text: str) -> bytes:
    """Return the frame that says why a connector is refused."""
    data = text.encode()[: CONTROL_BYTES // 2].decode(errors="ignore").encode()
    return _framed(ERROR, _U16.pack(len(data)) + data)


def notify_ack(*, is_accepted: bool, stream: int, point: int) -> bytes:
    """Return the frame that opens or refuses a stream."""
    return _framed(NOTIFY_ACK, bytes((is_accepted,)) + _POSITION.pack(stream, point))


def ack(credits: int, points: Mapping[int, int]) -> bytes:
    """Return the frame that gives credits, and says up to where streams are processed."""
    pairs = b"".join(_POSITION.pack(*pair) for pair in points.items())
    return _framed(ACK, _U32.pack(credits) + _U32.pack(len(points)) + pairs)


def restart() -> bytes:
    """Return the frame that asks a connector to connect again."""
    return _framed(RESTART, b"")


def _framed(tag: int, fields: bytes) -> bytes:
    return _U32.pack(1 + len(fields)) + bytes((tag,)) + fields
