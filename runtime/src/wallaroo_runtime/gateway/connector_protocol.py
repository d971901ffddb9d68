"""Strict reader of connectors' frames (SPECIFICATION.md, section 7); `wallaroo.experimental.protocol` writes them."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from wallaroo.experimental.protocol import EOS_MESSAGE, HELLO, MESSAGE, NOTIFY, ProtocolError

CONTROL_BYTES = 64 * 1024
MOST_KEY_BYTES = 65535
_U16, _U32, _U64 = struct.Struct(">H"), struct.Struct(">I"), struct.Struct(">Q")
_MESSAGE = struct.Struct(">QQqH")
MESSAGE_FIELDS_BYTES = 1 + _MESSAGE.size + MOST_KEY_BYTES


@dataclass(frozen=True, slots=True)
class Hello:
    """The frame HELLO: the identity of a connector."""

    version: str
    cookie: str
    program: str
    instance: str


@dataclass(frozen=True, slots=True)
class Notify:
    """A request to send a stream; the connector believes that the stream is processed up to `point`."""

    stream: int
    name: str
    point: int


@dataclass(frozen=True, slots=True)
class StreamMessage:
    """A message of a stream; `event_time_ns` is 0 if the message has no event time."""

    stream: int
    id: int
    event_time_ns: int
    key: bytes
    payload: bytes


@dataclass(frozen=True, slots=True)
class EndOfStream:
    """The end of a stream: its connector sends no more messages of it."""

    stream: int


Received = Hello | Notify | StreamMessage | EndOfStream


def read_frames(data: bytes) -> Iterator[Received]:
    """Yield the frames in `data`, which holds whole frames of a connector only.

    Raises:
        ProtocolError: A frame breaks the protocol; the frames before it have been yielded.
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
        return StreamMessage(stream, number, time, data[at : at + size], data[at + size : end])
    if end - at > CONTROL_BYTES:
        reason = f"a frame of tag {tag} has {end - at} bytes; at most {CONTROL_BYTES} are allowed"
        raise ProtocolError(reason)
    if tag == HELLO:
        texts = []
        for _ in range(4):
            text, at = _text(data, at, end)
            texts.append(text)
        frame: Received = Hello(*texts)
    elif tag == NOTIFY:
        (stream,) = _unpack(_U64, data, at, end)
        name, at = _text(data, at + _U64.size, end)
        frame, at = Notify(stream, name, *_unpack(_U64, data, at, end)), at + _U64.size
    elif tag == EOS_MESSAGE:
        frame, at = EndOfStream(*_unpack(_U64, data, at, end)), at + _U64.size
    else:
        reason = f"no connector sends a frame of tag {tag}"
        raise ProtocolError(reason)
    if at != end:
        reason = f"{end - at} bytes are left after a frame of tag {tag}"
        raise ProtocolError(reason)
    return frame


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
