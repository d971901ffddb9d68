"""States as readable JSON: values of other types are written as text."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, time, timedelta
from enum import Enum
from typing import Any

from wallaroo.diagnostic.diagnostic import ADDRESS

DEEPEST = 32
MOST_VALUES = 100_000
MOST_BITS = 4096  # largest integer that is shown as a number: not all JSON readers accept more digits
CUT = "..."


def shown_json(value: Any) -> bytes:
    r"""Return a value as JSON in UTF-8: objects with their attributes, sets sorted, other values as their `repr`.

    Example:
        >>> shown_json({"sum": 1.5, "seen": {3, 1}, "raw": b"\x00\x01", 7: None})
        b'{"sum": 1.5, "seen": [1, 3], "raw": "0x0001", "7": null}'
    """
    return json.dumps(_Walk().plain(value, 0), ensure_ascii=True).encode("ascii")


class _Walk:
    """Converts one value. Limits of depth and number of objects end the conversion if the value refers to itself."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def plain(self, value: Any, depth: int) -> Any:
        self._left -= 1
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind is int:
            return value if value.bit_length() <= MOST_BITS else hex(value)
        if kind is str:
            return value.encode("utf-8", "backslashreplace").decode()  # lone surrogates cannot be written in UTF-8
        if kind is float:
            return value if math.isfinite(value) else repr(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return _text(bytes(value))
        if depth > DEEPEST or self._left < 0:
            return CUT
        try:
            return self._compound(value, depth + 1)
        except (Exception, SystemExit) as err:  # an error of user code, e.g. of a `__repr__`
            return f"<{kind.__name__}: {type(err).__name__}>"

    def _compound(self, value: Any, depth: int) -> Any:
        if isinstance(value, Enum):
            return value.name
        if isinstance(value, Mapping):
            return self._mapping(value, depth)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return {name: self.plain(part, depth) for name, part in zip(value._fields, value, strict=True)}
        if isinstance(value, (set, frozenset)):
            return sorted((self.plain(part, depth) for part in value), key=_order)
        if isinstance(value, (list, tuple)) or type(value).__name__ == "deque":
            return [self.plain(part, depth) for part in value]
        if isinstance(value, (date, time)):
            return value.isoformat()
        if isinstance(value, timedelta):
            return str(value)
        names = _attributes(value)
        if names is None:
            return self.plain(ADDRESS.sub("", repr(value)), depth)
        return {name: self.plain(getattr(value, name), depth) for name in names if hasattr(value, name)}

    def _mapping(self, value: Mapping[Any, Any], depth: int) -> Any:
        names = [part if isinstance(part, str) else _name(self.plain(part, depth)) for part in value]
        if len(set(names)) == len(names):
            plain = map(self.plain, names, [depth] * len(names))
            return {name: self.plain(part, depth) for name, part in zip(plain, value.values(), strict=True)}
        return [[self.plain(name, depth), self.plain(part, depth)] for name, part in value.items()]


def _attributes(value: Any) -> list[str] | None:
    """Return the names of an object's attributes. Return None if the object has none that Python knows."""
    if is_dataclass(value):
        return [field.name for field in fields(value)]
    slots = [name for base in type(value).__mro__ for name in _slots(base)]
    names = [*vars(value), *slots] if hasattr(value, "__dict__") else slots
    return names or None


def _slots(base: type) -> list[str]:
    slots = base.__dict__.get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _name(plain: Any) -> str:
    return plain if isinstance(plain, str) else json.dumps(plain)


def _order(plain: Any) -> tuple[str, Any]:
    return ("number", plain) if isinstance(plain, (int, float)) else ("text", json.dumps(plain, sort_keys=True))


def _text(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if text.isprintable() else f"0x{data.hex()}"
