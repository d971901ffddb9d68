"""Lines with a checksum: what small files hold that nobody else could restore."""

import json
import zlib
from typing import Any


def pack_line(value: dict[str, Any]) -> bytes:
    r"""Return a line: CRC-32 in 8 hex digits, a space, JSON, a newline.

    Example:
        >>> pack_line({"batch": 3})
        b'55e564b3 {"batch":3}\n'
    """
    text = json.dumps(value, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def unpack_line(line: bytes) -> dict[str, Any] | None:
    """Read a line without its newline; None when its checksum does not fit."""
    if len(line) < 10 or line[8:9] != b" " or b"%08x" % zlib.crc32(line[9:]) != line[:8]:
        return None
    value = json.loads(line[9:])
    return value if isinstance(value, dict) else None
