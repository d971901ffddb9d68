"""Reads and writes records: small files of typed fields, as JSON with a checksum over every byte.

A record is an object of a dataclass. The fields are texts, numbers, truth values, bytes, tuples, mappings and objects
of other dataclasses. Logs, which grow, have lines of JSON with a checksum instead (`pack_line`).
"""

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from wallaroo_runtime.durable.file import damage, replace_file, unnoticed
from wallaroo_runtime.errors import RunError

Kind = TypeVar("Kind")
_END = b',\n "crc32": "%08x"\n}\n'
_END_BYTES = len(_END % 0)


def pack_record(record: Any) -> bytes:
    """Return the content of the file for a record."""
    text = json.dumps(asdict(record), ensure_ascii=False, indent=1, default=_base64)
    body = text.removesuffix("\n}").encode("utf-8", "surrogatepass")
    return body + _END % zlib.crc32(body)


def unpack_record(kind: type[Kind], content: bytes, place: object) -> Kind:
    """Return the record in the content of a file that `pack_record` has made.

    Args:
        place: Path of the file, for the error.

    Raises:
        RunError: R698 if the bytes are damaged, or the record is not of this kind.
    """
    body = content[:-_END_BYTES]
    try:
        _check(body + _END % zlib.crc32(body) == content, "it does not fit its checksum")
        value = json.loads(content)
        del value["crc32"]
        record: Kind = _typed(kind, value)
    except (ValueError, TypeError, AttributeError) as error:
        raise RunError.of("R698", what=place, reason=error) from error
    return record


def read_record(path: Path, kind: type[Kind]) -> Kind | None:
    """Return the record in a file; None if there is no such file.

    Raises:
        RunError: R698 if the file cannot be read or is damaged, or the record is not of this kind.
        PermissionError: This user may not read the file.
    """
    try:
        with open(path, "rb", opener=unnoticed) as file:
            content = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise damage(error, path) from error
    return unpack_record(kind, content, path)


def write_record(path: Path, record: Any, *, durable: bool = True) -> None:
    """Replace the record in a file. A reader sees the old record or the new record.

    Args:
        durable: Whether the new record must survive a loss of power from now on.
    """
    replace_file(path, pack_record(record), durable=durable)


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _typed(hint: Any, value: Any) -> Any:
    """Convert a value that was read from JSON to the type of a field.

    Raises:
        ValueError: The value is not of that type.
    """
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return value
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        _check([*value] == [each.name for each in fields(hint)], f"its fields are {', '.join(value)}")
        return kind(**{name: _typed(hints[name], each) for name, each in value.items()})
    if kind is Mapping:
        return {inner[0](key): _typed(inner[1], each) for key, each in value.items()}
    if kind is tuple:
        inner = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_typed(each, item) for each, item in zip(inner, value, strict=True))
    if kind is bytes:
        return base64.b64decode(value, validate=True)
    _check(type(value) is kind, f"{value!r} is no {kind.__name__}")
    return value


def _check(is_right: bool, reason: str) -> None:
    if not is_right:
        raise ValueError(reason)


def pack_line(value: dict[str, Any]) -> bytes:
    r"""Return an object as a line of a log: CRC-32 in 8 hexadecimal digits, a space, JSON, a newline.

    Example:
        >>> pack_line({"batch": 3})
        b'55e564b3 {"batch":3}\n'
    """
    text = json.dumps(value, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def unpack_line(line: bytes) -> dict[str, Any] | None:
    """Return the object in a line (given without its newline); None if the line is damaged."""
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
