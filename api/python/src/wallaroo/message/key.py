"""Keys: the values that a partition function may return, their bytes, and their buckets."""

import base64
import dataclasses
import enum
import numbers
import struct
import zlib
from typing import Any, cast

# Prefix of keys that are neither text, nor bytes, nor a number of 64 bits. No UTF-8 text begins with it.
STRUCTURED = b"\xffkey:"
SPREAD = 0x9E3779B1
MASK = 0xFFFFFFFF
_CONTROL = frozenset([*range(0x20), *range(0x7F, 0xA0)])


def key_bytes(key: object) -> bytes:
    r"""Return a key's bytes: text as UTF-8, a number of 0 to 2**64-1 as 8 bytes big-endian, bytes as they are.

    Keys with the same bytes are the same key, with one state. So `"a"` equals `b"a"`, e.g. the key of a Kafka record.

    In Wallaroo 0.1 to 0.4 a key could be any object with a hash. Here it can also be another number, a tuple, a frozen
    set, a member of an enumeration or a frozen dataclass. Equal keys have equal bytes.

    Raises:
        TypeError: The key has another type, or is None, the result of a function without `return`.
        ValueError: The key is NaN, or text with lone surrogates.

    Example:
        >>> key_bytes("AAPL"), key_bytes(7), key_bytes(("AAPL", 7)) == key_bytes(("AAPL", 7.0))
        (b'AAPL', b'\x00\x00\x00\x00\x00\x00\x00\x07', True)
    """
    if isinstance(key, str):
        return str.encode(key)
    if isinstance(key, (bytes, bytearray, memoryview)):
        return bytes(key)
    if isinstance(key, (int, numbers.Integral)) and 0 <= int(key) < 1 << 64:
        return int(key).to_bytes(8, "big")
    if key is None:
        raise TypeError(type(key).__name__)
    if isinstance(key, float) and key.is_integer():
        return key_bytes(int(key))
    return STRUCTURED + _structured(key)


def state_key(key: object) -> bytes:
    r"""Return the bytes under which the state of a key is stored.

    They are the result of `key_bytes`, except for bytes keys that begin with the prefix of structured keys. Without the
    exception a sender that chooses `b"\xffkey:t4:i1:1"` as its key would reach the state of the tuple `(1,)`.

    Raises:
        TypeError: As for `key_bytes`.
        ValueError: As for `key_bytes`.

    Example:
        >>> state_key((1,)), state_key(b"\xffkey:t4:i1:1") == state_key((1,)), state_key(b"a")
        (b'\xffkey:t4:i1:1', False, b'a')
    """
    data = key_bytes(key)
    is_bytes = data.startswith(STRUCTURED) and isinstance(key, (bytes, bytearray, memoryview))
    return STRUCTURED + _tagged(b"b", data) if is_bytes else data


def _structured(key: object) -> bytes:
    """Return the bytes of a structured key (or a part of it): a letter for the type, the length, and the content."""
    if isinstance(key, float) and key.is_integer():
        key = int(key)
    if key is None:
        return _tagged(b"n", b"")
    if isinstance(key, (int, numbers.Integral)):
        return _tagged(b"i", b"%d" % int(key))
    if isinstance(key, float):
        if key != key:
            msg = "not a number"
            raise ValueError(msg)
        return _tagged(b"f", struct.pack(">d", key))
    if isinstance(key, (str, bytes)):
        return _tagged(b"s", key_bytes(key))
    if isinstance(key, tuple):
        return _tagged(b"t", b"".join(map(_structured, key)))
    if isinstance(key, frozenset):
        return _tagged(b"z", b"".join(sorted(map(_structured, key))))
    if isinstance(key, enum.Enum):
        return _tagged(b"e", f"{type(key).__qualname__}.{key.name}".encode())
    if _is_frozen(key):
        values = (getattr(key, each.name) for each in dataclasses.fields(cast(Any, key)) if each.compare)
        return _tagged(b"d", _structured(type(key).__qualname__) + b"".join(map(_structured, values)))
    raise TypeError(type(key).__name__)


def _tagged(kind: bytes, content: bytes) -> bytes:
    return b"%s%d:%s" % (kind, len(content), content)


def _is_frozen(key: object) -> bool:
    parameters = getattr(type(key), "__dataclass_params__", None)
    return parameters is not None and bool(parameters.frozen and parameters.eq)


def readable(key: bytes) -> str | bytes:
    """Return a key in the form that user code gets: text if the bytes are UTF-8, else the bytes."""
    try:
        return key.decode()
    except UnicodeDecodeError:
        return key


def key_json(key: object) -> Any:
    r"""Return a key as the topology document writes it.

    Example:
        >>> key_json("a"), key_json(7), key_json(b"\xff")
        ('a', 7, {'base64': '/w=='})
    """
    data = state_key(key)
    if isinstance(key, (float, numbers.Integral)) and len(data) == 8:
        return int(key)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}
    if any(ord(character) in _CONTROL for character in text):
        return {"base64": base64.b64encode(data).decode("ascii")}
    return text


def bucket_of(key: bytes, bucket_count: int) -> int:
    """Return the bucket of a key, from its CRC-32 and a multiplicative hash.

    Example:
        >>> 0 <= bucket_of(b"a", 8) < 8
        True
    """
    spread = zlib.crc32(key) * SPREAD & MASK
    return spread * bucket_count >> 32
