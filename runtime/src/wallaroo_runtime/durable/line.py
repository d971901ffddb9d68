"""Packs and reads lines with a checksum, for small files that cannot be restored from other files."""

import json
import zlib
from pathlib import Path
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
    """Return the object in a line without its newline; None if the checksum does not fit."""
    if len(line) < 10 or line[8:9] != b" " or b"%08x" % zlib.crc32(line[9:]) != line[:8]:
        return None
    value = json.loads(line[9:])
    return value if isinstance(value, dict) else None


def read_line(path: Path) -> dict[str, Any] | None:
    """Return the object in a file of one line; None if there is no such file.

    Raises:
        ValueError: The line does not fit its checksum.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if (value := unpack_line(content.rstrip(b"\n"))) is None:
        reason = "it does not fit its checksum"
        raise ValueError(reason)
    return value
