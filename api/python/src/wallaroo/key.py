"""Keys: what a partition function may return, their bytes, and the bucket that they fall into."""

import base64
import zlib
from typing import Any

SPREAD = 0x9E3779B1
MASK = 0xFFFFFFFF
_CONTROL = frozenset([*range(0x20), *range(0x7F, 0xA0)])


def key_bytes(key: object) -> bytes:
    r"""Return a key's bytes: text as UTF-8, an integer as 8 bytes big-endian, bytes as they are.

    Raises:
        TypeError: The key is none of these.
        ValueError: The integer does not fit, or the text has lone surrogates.

    Example:
        >>> key_bytes("AAPL"), key_bytes(7)
        (b'AAPL', b'\x00\x00\x00\x00\x00\x00\x00\x07')
    """
    if isinstance(key, str):
        return str.encode(key)
    if isinstance(key, (bytes, bytearray, memoryview)):
        return bytes(key)
    if isinstance(key, int) and not isinstance(key, bool):
        if 0 <= key < 1 << 64:
            return key.to_bytes(8, "big")
        msg = "an int outside 0 to 2**64-1"
        raise ValueError(msg)
    raise TypeError(type(key).__name__)


def key_json(key: object) -> Any:
    r"""Return a key as the topology document writes it.

    Example:
        >>> key_json("a"), key_json(7), key_json(b"\xff")
        ('a', 7, {'base64': '/w=='})
    """
    if isinstance(key, int):
        return int(key)
    data = key_bytes(key)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}
    if any(ord(character) in _CONTROL for character in text):
        return {"base64": base64.b64encode(data).decode("ascii")}
    return text


def bucket_of(key: bytes, bucket_count: int) -> int:
    """Return the bucket of a key: multiplicative spread of its CRC-32.

    Example:
        >>> 0 <= bucket_of(b"a", 8) < 8
        True
    """
    spread = zlib.crc32(key) * SPREAD & MASK
    return spread * bucket_count >> 32
