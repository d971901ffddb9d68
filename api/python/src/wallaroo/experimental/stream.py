"""How messages travel between connectors and applications.

A frame of a stream is a length (u32), a time in milliseconds (i64), both little-endian, and the payload.
"""

import struct
from collections.abc import Callable
from typing import Any

from wallaroo.component.wrapped import BaseWrapped, Encoder

LENGTH, TIME = struct.Struct("<I"), struct.Struct("<q")
Function = Callable[..., Any]


class StreamDecoderError(Exception):
    """A frame of a stream is shorter than the time that it begins with."""


class StreamEncoder(BaseWrapped[..., Any]):
    """Turns a message into a frame of a stream."""

    kind = "encoder"
    is_direct = False

    def encode(self, data: Any, event_time: int = 0) -> bytes | None:
        """Return the frame of a message, or None when the function gives None.

        Args:
            data: The message.
            event_time: Its time in milliseconds since 1970; 0: it has none.
        """
        payload = self.function(data)
        if payload is None:
            return None
        payload = payload.encode() if isinstance(payload, str) else bytes(payload)
        return LENGTH.pack(len(payload) + TIME.size) + TIME.pack(event_time) + payload


class StreamDecoder(BaseWrapped[..., Any]):
    """Turns a frame of a stream into a message."""

    kind = "decoder"
    is_direct = False
    parameters = ("bs",)

    def header_length(self) -> int:
        """Return the number of bytes of the length."""
        return LENGTH.size

    def payload_length(self, bs: bytes) -> int:
        """Return the length that a header holds."""
        return int(LENGTH.unpack(bs)[0])

    def decode(self, bs: bytes) -> Any:
        """Return the message of a frame without its length.

        Raises:
            StreamDecoderError: The frame is too short.
        """
        if len(bs) < TIME.size:
            msg = f"a frame has {len(bs)} bytes; at least {TIME.size} are a time"
            raise StreamDecoderError(msg)
        return self.function(bs[TIME.size :])


class TimedStreamDecoder(StreamDecoder):
    """Turns a frame of a stream into a message that has the frame's time."""

    def event_time(self, bs: bytes) -> int:
        """Return the time of a frame in milliseconds since 1970; 0: it has none."""
        return int(TIME.unpack_from(bs)[0])


class OctetEncoder(Encoder[..., Any]):
    """Turns a message into the payload of the connector protocol."""


class OctetDecoder(BaseWrapped[..., Any]):
    """Turns the payload of the connector protocol into a message."""

    kind = "decoder"
    parameters = ("bs",)

    def decode(self, bs: bytes) -> Any:
        """Return the message of a payload."""
        return self.function(bs)


def stream_message_encoder(function: Function) -> StreamEncoder:
    """Make a function `f(data)` that returns bytes or str the encoder of a stream.

    Args:
        function: Gets a message; None sends nothing.

    Raises:
        WallarooParameterError: It is no function (T207).

    Example:
        >>> @stream_message_encoder
        ... def text(data):
        ...     return data
        >>> len(text.encode("abc", event_time=5))
        15

    Source: Wallaroo 0.5.4 and 0.6.1.
    """
    return StreamEncoder(function)


def stream_message_decoder(function: Function | None = None, *, event_time: bool = False) -> Any:
    """Make a function `f(bs)` the decoder of a stream.

    Args:
        function: Gets the payload.
        event_time: Whether messages have the times that their connector gives them; else that of their arrival.

    Raises:
        WallarooParameterError: It is no function (T207).

    Example:
        >>> @stream_message_decoder
        ... def text(bs):
        ...     return bs.decode()
        >>> text.decode(bytes(8) + b"abc")
        'abc'

    Source: Wallaroo 0.5.4 and 0.6.1.
    """
    cls = TimedStreamDecoder if event_time else StreamDecoder
    return cls if function is None else cls(function)


def octet_message_encoder(function: Function) -> OctetEncoder:
    """Make a function `f(data)` that returns bytes the encoder of the connector protocol.

    Args:
        function: Gets a message; for a sink it may also return str, sent as UTF-8, or None to send nothing.

    Raises:
        WallarooParameterError: It is no function (T207).

    Example:
        >>> import json
        >>> @octet_message_encoder
        ... def encode(order):
        ...     return json.dumps(order).encode()
        >>> encode.encode({"amount": 5})
        b'{"amount": 5}'

    Source: Wallaroo, unreleased.
    """
    return OctetEncoder(function)


def octet_message_decoder(function: Function) -> OctetDecoder:
    """Make a function `f(bs)` the decoder of the connector protocol.

    Args:
        function: Gets the payload as bytes; returns a message, or None to drop it.

    Raises:
        WallarooParameterError: It is no function (T207).

    Example:
        >>> import json
        >>> @octet_message_decoder
        ... def decode(bs):
        ...     return json.loads(bs)
        >>> decode.decode(b'{"amount": 5}')
        {'amount': 5}

    Source: Wallaroo, unreleased.
    """
    return OctetDecoder(function)
