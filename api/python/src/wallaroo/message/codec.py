"""The built-in codecs: they convert messages to bytes and back. The bytes are the same in every language."""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.message.canonical_json import read_json, write_json

NATIVE = "native"
_PROTOBUF = re.compile(r"protobuf:(\w+(?:\.\w+)*)", re.ASCII)
_INT64, _FLOAT64 = struct.Struct(">q"), struct.Struct(">d")


@dataclass(frozen=True, slots=True)
class Codec:
    r"""A codec: one function that converts messages of a type to bytes, and one that converts bytes to messages.

    Attributes:
        name: Name of the codec in the topology.
        encode: Converts a message to bytes; raises TypeError or ValueError for a message of another type.
        decode: Converts bytes to a message; raises ValueError for bytes that this codec does not write.

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
    if type(message) is float:
        return _FLOAT64.pack(message)
    if type(message) is not int:
        raise _other(message, "float")
    try:
        data = _FLOAT64.pack(message)
    except (OverflowError, struct.error):
        data = b""
    if not data or _FLOAT64.unpack(data)[0] != message:
        msg = f"{shown(message)} is no float of 64 bits; the nearest one is another number"
        raise ValueError(msg)
    return data


def _encode_json(message: Any) -> bytes:
    return write_json(message).encode()


def _decode_json(data: bytes) -> Any:
    return read_json(data.decode())


def _number(form: struct.Struct, data: bytes) -> Any:
    if len(data) != form.size:
        msg = f"{len(data)} bytes; a number has {form.size}"
        raise ValueError(msg)
    return form.unpack(data)[0]


def _other(message: object, expected: str) -> TypeError:
    return TypeError(f"the message is {type(message).__name__}; expected {expected}")


CODECS = {
    codec.name: codec
    for codec in (
        Codec("bytes", _encode_bytes, bytes),
        Codec("string", _encode_string, bytes.decode),
        Codec("int64", _encode_int64, partial(_number, _INT64)),
        Codec("float64", _encode_float64, partial(_number, _FLOAT64)),
        Codec("json", _encode_json, _decode_json),
    )
}


def codec_of(name: str) -> Codec | None:
    r"""Return the codec with a name, or None if there is no such codec.

    A codec `protobuf:NAME` exists once the program has imported the module that protoc generated for the message NAME.

    Example:
        >>> codec_of("string").encode("é")
        b'\xc3\xa9'
        >>> from google.protobuf import wrappers_pb2
        >>> codec_of("protobuf:google.protobuf.StringValue").encode(wrappers_pb2.StringValue(value="é"))
        b'\n\x02\xc3\xa9'
        >>> codec_of("protobuf:shop.v1.Order") is None
        True
    """
    match = _PROTOBUF.fullmatch(name)
    return _message_codec(name, match[1]) if match else CODECS.get(name)


def expected_codec(name: object) -> tuple[str, str]:
    """Return the valid names and the remedy, as texts of the error about an unknown codec."""
    match = isinstance(name, str) and _PROTOBUF.fullmatch(name)
    if match:
        return "a message whose generated module is imported", f"import what protoc generated for {match[1]}"
    expected = "one of " + ", ".join(f'"{known}"' for known in (*CODECS, "protobuf:FULL.NAME"))
    return expected, f"pass {expected}"


def _message_codec(name: str, full_name: str) -> Codec | None:
    # Programs without protobuf messages do not need the package protobuf.
    try:
        from google.protobuf import descriptor_pool, message, message_factory
    except ImportError:
        return None
    try:
        descriptor = descriptor_pool.Default().FindMessageTypeByName(full_name)
    except KeyError:
        return None
    kind = message_factory.GetMessageClass(descriptor)

    def encode(value: Any) -> bytes:
        if type(value) is not kind:
            raise _other(value, full_name)
        try:
            data: bytes = value.SerializeToString(deterministic=True)
        except message.EncodeError as err:
            raise ValueError(str(err)) from None
        return data

    def decode(data: bytes) -> Any:
        try:
            return kind.FromString(data)
        except message.DecodeError as err:
            raise ValueError(str(err)) from None

    return Codec(name, encode, decode)
