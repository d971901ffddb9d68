"""The built-in codecs: messages as bytes that are the same in every language."""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

NATIVE = "native"
_INT64, _FLOAT64 = struct.Struct(">q"), struct.Struct(">d")


@dataclass(frozen=True, slots=True)
class Codec:
    r"""A pair of functions between messages of one type and bytes.

    Attributes:
        name: As the topology writes it.
        encode: From a message to bytes; TypeError or ValueError when the message is of another type.
        decode: From bytes to a message; ValueError when the bytes are none of this codec's.

    Example:
        >>> CODECS["json"].encode({"b": 1, "a": [True]})
        b'{"a":[true],"b":1}'
        >>> CODECS["int64"].decode(b"\xff" * 8)
        -1
    """

    name: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def _encode_bytes(message: Any) -> bytes:
    if isinstance(message, (bytes, bytearray, memoryview)):
        return bytes(message)
    raise _other(message, "bytes")


def _encode_string(message: Any) -> bytes:
    if isinstance(message, str):
        return message.encode()
    raise _other(message, "str")


def _encode_int64(message: Any) -> bytes:
    if type(message) is not int:
        raise _other(message, "int")
    try:
        return _INT64.pack(message)
    except struct.error:
        msg = f"{message} is not between -2**63 and 2**63-1"
        raise ValueError(msg) from None


def _encode_float64(message: Any) -> bytes:
    if type(message) in (float, int):
        return _FLOAT64.pack(message)
    raise _other(message, "float")


def _encode_json(message: Any) -> bytes:
    text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)
    return text.encode()


def _decode_string(data: bytes) -> str:
    return data.decode()


def _decode_int64(data: bytes) -> Any:
    return _number(_INT64, data)


def _decode_float64(data: bytes) -> Any:
    return _number(_FLOAT64, data)


def _decode_json(data: bytes) -> Any:
    return json.loads(data.decode(), parse_constant=_no_number)


def _number(form: struct.Struct, data: bytes) -> Any:
    if len(data) != form.size:
        msg = f"{len(data)} bytes; a number has {form.size}"
        raise ValueError(msg)
    return form.unpack(data)[0]


def _no_number(text: str) -> Any:
    msg = f"{text} is not JSON"
    raise ValueError(msg)


def _other(message: object, expected: str) -> TypeError:
    return TypeError(f"the message is {type(message).__name__}; expected {expected}")


CODECS = {
    codec.name: codec
    for codec in (
        Codec("bytes", _encode_bytes, bytes),
        Codec("string", _encode_string, _decode_string),
        Codec("int64", _encode_int64, _decode_int64),
        Codec("float64", _encode_float64, _decode_float64),
        Codec("json", _encode_json, _decode_json),
    )
}
