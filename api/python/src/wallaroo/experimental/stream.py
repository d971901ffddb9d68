"""Encoders and decoders of the messages between connector programs and applications.

A stream frame is a length (u32), a time in milliseconds (i64), both little-endian, and the payload.
"""

import struct
from collections.abc import Callable
from typing import Any

from wallaroo.component.wrapped import BaseWrapped, Encoder, ValueDecoder

LENGTH, TIME = struct.Struct("<I"), struct.Struct("<q")
Function = Callable[..., Any]


class StreamDecoderError(Exception):
    """A stream frame is shorter than 8 bytes, so that it cannot contain a time."""


class StreamEncoder(BaseWrapped[..., Any]):
    """Converts a message to a stream frame; made by `stream_message_encoder`."""

    kind = "encoder"
    is_direct = False

    def encode(self, data: Any, event_time: int = 0) -> bytes | None:
        """Return the frame of a message, or None if the function returns None.

        Args:
            data: The message.
            event_time: Time of the message in milliseconds since 1970, or 0 if it has no time.
        """
        payload = self.function(data)
        if payload is None:
            return None
        payload = payload.encode() if isinstance(payload, str) else bytes(payload)
        return LENGTH.pack(len(payload) + TIME.size) + TIME.pack(event_time) + payload


class StreamDecoder(BaseWrapped[..., Any]):
    """Converts a stream frame to a message; made by `stream_message_decoder`."""

    kind = "decoder"
    is_direct = False
    parameters = ("bs",)

    def header_length(self) -> int:
        """Return the number of bytes of the length field."""
        return LENGTH.size

    def payload_length(self, bs: bytes) -> int:
        """Return the value of the length field."""
        return int(LENGTH.unpack(bs)[0])

    def decode(self, bs: bytes) -> Any:
        """Return the message of a frame, which is passed without the length field.

        Raises:
            StreamDecoderError: The frame is too short.
        """
        if len(bs) < TIME.size:
            msg = f"a frame has {len(bs)} bytes; at least {TIME.size} are a time"
            raise StreamDecoderError(msg)
        return self.function(bs[TIME.size :])


class TimedStreamDecoder(StreamDecoder):
    """Converts a stream frame to a message with the frame's time, for `stream_message_decoder(event_time=True)`."""

    def event_time(self, bs: bytes) -> int:
        """Return the time of a frame in milliseconds since 1970, or 0 if it has no time."""
        return int(TIME.unpack_from(bs)[0])


def stream_message_encoder(function: Function) -> StreamEncoder:
    """Make a function `f(data)` an encoder for connectors without a cookie.

    Args:
        function: Takes a message; returns bytes or str, or None to send nothing.

    Raises:
        WallarooParameterError: T207 if `function` cannot be called.

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
    """Make a function `f(bs)` a decoder for connectors without a cookie.

    Args:
        function: Takes the payload as bytes and returns a message.
        event_time: True gives messages the times that the connector sends, False the times of arrival.

    Raises:
        WallarooParameterError: T207 if `function` cannot be called.

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


def octet_message_encoder(function: Function) -> Encoder[..., Any]:
    """Make a function `f(data)` an encoder for connectors with a cookie, which speak the connector protocol.

    Args:
        function: Takes a message and returns bytes. For a sink it may return str, sent as UTF-8, or None to send
            nothing.

    Raises:
        WallarooParameterError: T207 if `function` cannot be called.

    Example:
        >>> import json
        >>> @octet_message_encoder
        ... def encode(order):
        ...     return json.dumps(order).encode()
        >>> encode.encode({"amount": 5})
        b'{"amount": 5}'

    Source: Wallaroo, unreleased.
    """
    return Encoder(function)


def octet_message_decoder(function: Function) -> ValueDecoder[..., Any]:
    """Make a function `f(bs)` a decoder for connectors with a cookie, which speak the connector protocol.

    Args:
        function: Takes the payload as bytes; returns a message, or None to drop it.

    Raises:
        WallarooParameterError: T207 if `function` cannot be called.

    Example:
        >>> import json
        >>> @octet_message_decoder
        ... def decode(bs):
        ...     return json.loads(bs)
        >>> decode.decode(b'{"amount": 5}')
        {'amount': 5}

    Source: Wallaroo, unreleased.
    """
    return ValueDecoder(function)
