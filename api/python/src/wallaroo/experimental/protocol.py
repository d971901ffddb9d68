"""The frames of the connector protocol: `topology-schema/SPECIFICATION.md`, section 7."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

PROTOCOL_VERSION = "0.0.1"
HELLO, OK, ERROR, NOTIFY, NOTIFY_ACK, MESSAGE, ACK, RESTART, EOS_MESSAGE = range(9)
MAX_FRAME_BYTES = 64 * 1024 * 1024
MOST_ERROR_CHARACTERS = 1000
NEVER = 2**64 - 1  # value for the point of reference of an unknown stream
_U16, _U32, _U64 = struct.Struct(">H"), struct.Struct(">I"), struct.Struct(">Q")
_MESSAGE, _POSITION, _ACK = struct.Struct(">QQqH"), struct.Struct(">QQ"), struct.Struct(">II")
MESSAGE_BYTES = 1 + _MESSAGE.size + 65535  # limit for a message's frame without length and payload


class ProtocolError(Exception):
    """The other side violated the protocol."""


@dataclass(slots=True)
class ReceivedFrame:
    """A frame of the connector protocol that the other side sent.

    Attributes:
        tag: Kind of the frame: `HELLO` to `EOS_MESSAGE`.
        credits: How many more messages may be sent.
        error: Text of `ERROR`.
        is_accepted: Whether a stream may send.
        positions: Streams with their points of reference; `NOTIFY`, `MESSAGE` and `EOS_MESSAGE` have one stream.
        texts: For `HELLO` version, cookie, program and instance; for `NOTIFY` the stream's name.
        payload: Payload of `MESSAGE`.
        key: Key of `MESSAGE`.
        event_time_ns: For `MESSAGE`: time of its event; 0 if it has none.
    """

    tag: int
    credits: int = 0
    error: str = ""
    is_accepted: bool = False
    positions: tuple[tuple[int, int], ...] = ()
    texts: tuple[str, ...] = ()
    payload: bytes = b""
    key: bytes = b""
    event_time_ns: int = 0


class Fields:
    """Reads the fields of a frame or message, one after the other.

    Raises (from every method): `struct.error` if too few bytes are left, `UnicodeDecodeError` if a text is damaged.
    """

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self._data, self._at, self._end = data, at, end

    @property
    def left(self) -> int:
        """Number of bytes that are not read yet."""
        return self._end - self._at

    def take(self, size: int) -> bytes:
        """Read the next `size` bytes."""
        if size > self.left:
            msg = f"{size} bytes were expected, {self.left} are left"
            raise struct.error(msg)
        self._at += size
        return self._data[self._at - size : self._at]

    def numbers(self, layout: struct.Struct) -> tuple[int, ...]:
        """Read the next numbers in a layout of `struct`."""
        return layout.unpack(self.take(layout.size))

    def text(self) -> str:
        """Read a text after its length."""
        return self.take(*self.numbers(_U16)).decode()


def hello(version: str, cookie: str, program: str, instance: str) -> bytes:
    """Return the frame HELLO, the first one of a connector."""
    return framed(HELLO, b"".join(map(packed, (version, cookie, program, instance))))


def notify(stream: int, name: str, point_of_reference: int) -> bytes:
    """Return the frame NOTIFY, which announces a stream."""
    return framed(NOTIFY, _U64.pack(stream) + packed(name) + _U64.pack(point_of_reference))


def message(stream: int, message_id: int, event_time_ns: int, key: bytes, payload: bytes) -> bytes:
    """Return the frame MESSAGE with a message of a stream."""
    return framed(MESSAGE, _MESSAGE.pack(stream, message_id, event_time_ns, len(key)) + key + payload)


def end_of_stream(stream: int) -> bytes:
    """Return the frame EOS_MESSAGE, which ends a stream."""
    return framed(EOS_MESSAGE, _U64.pack(stream))


def ok(credits: int) -> bytes:
    """Return the frame OK, which accepts a HELLO and gives the sender credits: how many messages it may send."""
    return framed(OK, _U32.pack(credits))


def error(text: str) -> bytes:
    """Return the frame ERROR, which refuses the other side and gives the reason."""
    return framed(ERROR, packed(text[:MOST_ERROR_CHARACTERS]))


def notify_ack(stream: int, point_of_reference: int, *, is_accepted: bool) -> bytes:
    """Return the frame NOTIFY_ACK, which accepts a stream, and gives its next position, or refuses the stream."""
    return framed(NOTIFY_ACK, bytes((is_accepted,)) + _POSITION.pack(stream, point_of_reference))


def ack(credits: int, positions: Mapping[int, int]) -> bytes:
    """Return the frame ACK. It gives new credits, and the position up to which each stream is processed."""
    pairs = b"".join(_POSITION.pack(*pair) for pair in positions.items())
    return framed(ACK, _U32.pack(credits) + _U32.pack(len(positions)) + pairs)


def restart() -> bytes:
    """Return the frame RESTART, which asks the other side to connect again."""
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
        frame = bytes(received[_U32.size : _U32.size + size])
        del received[: _U32.size + size]
        yield read(frame, 0, size)


def read(data: bytes, at: int, end: int) -> ReceivedFrame:
    """Read the frame whose tag and fields are `data[at:end]`.

    Raises:
        ProtocolError: The bytes are not a frame of the protocol.
    """
    if at == end:
        msg = "a frame is empty"
        raise ProtocolError(msg)
    tag, fields = data[at], Fields(data, at + 1, end)
    try:
        frame = _read(tag, fields)
    except (struct.error, UnicodeDecodeError) as err:
        msg = f"a frame of tag {tag} is damaged: {err}"
        raise ProtocolError(msg) from err
    if fields.left:
        msg = f"{fields.left} bytes are left after a frame of tag {tag}"
        raise ProtocolError(msg)
    return frame


def _read(tag: int, fields: Fields) -> ReceivedFrame:
    if tag == MESSAGE:
        stream, number, time, size = fields.numbers(_MESSAGE)
        key = fields.take(size)
        payload = fields.take(fields.left)
        return ReceivedFrame(tag, positions=((stream, number),), payload=payload, key=key, event_time_ns=time)
    if tag == OK:
        return ReceivedFrame(tag, credits=fields.numbers(_U32)[0])
    if tag == ERROR:
        return ReceivedFrame(tag, error=fields.text())
    if tag == NOTIFY_ACK:
        return ReceivedFrame(tag, is_accepted=fields.take(1) != b"\0", positions=(_position(fields),))
    if tag == ACK:
        credits, count = fields.numbers(_ACK)
        return ReceivedFrame(tag, credits=credits, positions=tuple(_position(fields) for _ in range(count)))
    if tag == HELLO:
        return ReceivedFrame(tag, texts=tuple(fields.text() for _ in range(4)))
    if tag == NOTIFY:
        (stream,), name, (point,) = fields.numbers(_U64), fields.text(), fields.numbers(_U64)
        return ReceivedFrame(tag, positions=((stream, point),), texts=(name,))
    if tag == EOS_MESSAGE:
        (stream,) = fields.numbers(_U64)
        return ReceivedFrame(tag, positions=((stream, 0),))
    if tag == RESTART:
        return ReceivedFrame(tag)
    msg = f"tag {tag}"
    raise ProtocolError(msg)


def _position(fields: Fields) -> tuple[int, int]:
    stream, point = fields.numbers(_POSITION)
    return stream, point


def packed(text: str) -> bytes:
    """Return a text with its length in front."""
    data = text.encode()
    return _U16.pack(len(data)) + data
