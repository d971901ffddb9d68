"""Codecs for the values of topics. They write the same bytes as Goka's codecs."""

import json
import re
from typing import Any, Protocol, runtime_checkable

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


@runtime_checkable
class Codec(Protocol):
    """Writes and reads the values of a topic. Programs may define codecs, too.

    Example:
        >>> class Shout:
        ...     def encode(self, value):
        ...         return value.upper().encode()
        ...
        ...     def decode(self, data):
        ...         return data.decode()
        >>> isinstance(Shout(), Codec), isinstance(str, Codec)
        (True, False)

    Source: Goka, `goka.Codec`.
    """

    def encode(self, value: Any) -> bytes:
        """Return the bytes of a value; an exception fails the message."""

    def decode(self, data: Any) -> Any:
        """Return the value that bytes encode. With `nil_handling="decode"`, None means a message without a value."""


class Bytes:
    """A codec for bytes, which it leaves as they are.

    Example:
        >>> Bytes().encode(b"abc"), Bytes().decode(b"abc")
        (b'abc', b'abc')

    Source: Goka, `codec.Bytes`.
    """

    def encode(self, value: Any) -> bytes:
        """Return the value as bytes.

        Raises:
            TypeError: The value is not bytes.
        """
        if not isinstance(value, (bytes, bytearray, memoryview)):
            msg = "DefaultCodec: value to encode is not of type []byte"
            raise TypeError(msg)
        return bytes(value)

    def decode(self, data: bytes | None) -> bytes | None:
        """Return the bytes unchanged."""
        return data


class String:
    r"""A codec for text in UTF-8. Invalid bytes are read as surrogates, which are written as the same bytes again.

    Example:
        >>> String().encode("né"), String().decode(String().encode("né"))
        (b'n\xc3\xa9', 'né')

    Source: Goka, `codec.String`.
    """

    def encode(self, value: Any) -> bytes:
        """Return the bytes of a text.

        Raises:
            TypeError: The value is not a str.
            UnicodeEncodeError: The text has a surrogate that does not represent a byte.
        """
        if not isinstance(value, str):
            msg = f"String: value to encode is not of type string but {type(value).__name__}"
            raise TypeError(msg)
        return value.encode("utf-8", "surrogateescape")

    def decode(self, data: bytes | None) -> str:
        """Return the text; an empty text if `data` is None."""
        return (data or b"").decode("utf-8", "surrogateescape")


class Int64:
    """A codec for integers of 64 bits, which it writes as decimal digits.

    Example:
        >>> Int64().encode(1312), Int64().decode(b"-7")
        (b'1312', -7)

    Source: Goka, `codec.Int64`.
    """

    def encode(self, value: Any) -> bytes:
        """Return the digits of an integer.

        Raises:
            TypeError: The value is not an int, or does not fit into 64 bits.
        """
        if type(value) is not int or not _LEAST <= value <= _MOST:
            msg = "Int64: value to encode is not of type int64"
            raise TypeError(msg)
        return b"%d" % value

    def decode(self, data: bytes | None) -> int:
        """Return the integer.

        Raises:
            ValueError: The bytes are not the digits of a 64-bit integer.
        """
        text = String().decode(data)
        if _INTEGER.fullmatch(text) is None:
            raise _not_parsed(0, text, "invalid syntax")
        # A number with 20 digits or more is out of range. Python's int() refuses texts with thousands of digits.
        value = int(text) if len(text.lstrip("+-0")) < 20 else (_LEAST if text.startswith("-") else _MOST) * 2
        if not _LEAST <= value <= _MOST:
            raise _not_parsed(min(max(value, _LEAST), _MOST), text, "value out of range")
        return value


class Json:
    """A codec for JSON without whitespace. Programs in Go read it with a custom codec that uses `encoding/json`.

    Example:
        >>> Json().encode({"user": "né", "clicks": [1, 2]}).decode()
        '{"user":"né","clicks":[1,2]}'
        >>> Json().decode(b"[1, null]")
        [1, None]
    """

    def encode(self, value: Any) -> bytes:
        """Return the JSON of a value.

        Raises:
            TypeError: The value has a type that JSON does not have.
            ValueError: The value contains a number that JSON does not have, e.g. NaN.
        """
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()

    def decode(self, data: bytes | None) -> Any:
        """Return the value; None if `data` is None.

        Raises:
            ValueError: The bytes are not JSON.
        """
        return None if data is None else json.loads(data)


def _not_parsed(value: int, text: str, reason: str) -> ValueError:
    quoted = json.dumps(text)
    return ValueError(f"Error parsing data from string {value}: strconv.ParseInt: parsing {quoted}: {reason}")
