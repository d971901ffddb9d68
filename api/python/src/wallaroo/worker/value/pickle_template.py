"""Pickles instances of plain classes. For small ones it needs a quarter of the time of `pickle.dumps`.

`pickle.dumps` spends most of its time to find out, for each object, how its class must be pickled, and whether the
class can be imported by its name. For a class without its own hooks the answer is always the same: here it is computed
once per class, and an object costs only the pickling of its `__dict__`. `pickle.loads` reads the result.
"""

import copyreg
import pickle
from abc import ABCMeta
from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter
from types import GetSetDescriptorType
from typing import Any, NamedTuple

PROTOCOL = 5
MAX_CLASSES = 1000
HEAP_TYPE = 1 << 9  # flag of classes that were made at run time, e.g. by a class statement
_dumps, _fields = pickle.dumps, attrgetter("__dict__")
_START = pickle.PROTO + bytes((PROTOCOL,))
_START_BYTES = len(_START)
_BUILD = pickle.BUILD + pickle.STOP
# A class that overrides one of these methods of `object` may be pickled or read in a special way.
_HOOKS = (
    "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__",
    "__getattribute__", "__getattr__",
)  # fmt: skip


class Template(NamedTuple):
    """The bytes that the pickles of all instances of a class have in common.

    Attributes:
        head: The bytes before the pickled fields.
        name: The pickled class name. The pickled fields contain it if they refer to an instance of the class.
    """

    head: bytes
    name: bytes


class _Plain:
    """An example of a plain class. Objects of another size keep data outside of `__dict__`, so they are not plain."""


_templates: dict[type, Template | None] = {}


def dump(value: Any) -> bytes:
    """Return a pickle of an object."""
    kind = type(value)
    template = _templates[kind] if kind in _templates else _learn(kind)
    if template is not None:
        fields = _dumps(value.__dict__, PROTOCOL)
        # An object that contains itself must contain itself again after it is read; only `pickle.dumps` does that.
        if fields.find(template.name) < 0:
            return template.head + fields[_START_BYTES:-1] + _BUILD
    return _dumps(value, PROTOCOL)


def dump_all(values: Sequence[Any]) -> list[bytes]:
    """Return a pickle of each object."""
    kinds = set(map(type, values))
    if len(kinds) == 1:
        kind = kinds.pop()
        template = _templates[kind] if kind in _templates else _learn(kind)
        if template is None:
            return list(map(_dumps, values, repeat(PROTOCOL)))
        fields = list(map(_dumps, map(_fields, values), repeat(PROTOCOL)))
        if template.name not in b"".join(fields):
            head = template.head
            return [head + each[_START_BYTES:-1] + _BUILD for each in fields]
    return list(map(dump, values))


def _learn(kind: type) -> Template | None:
    if len(_templates) >= MAX_CLASSES:
        _templates.clear()
    template = _templates[kind] = _template(kind) if _is_plain(kind) else None
    return template


def _is_plain(kind: type) -> bool:
    if type(kind) not in (type, ABCMeta) or kind in copyreg.dispatch_table:
        return False
    if (kind.__basicsize__, kind.__itemsize__) != (_Plain.__basicsize__, _Plain.__itemsize__):
        return False  # instances have data outside of `__dict__`: slots, or fields of a built-in class
    if any(getattr(kind, hook, None) is not getattr(object, hook, None) for hook in _HOOKS):
        return False
    parts = [part for part in kind.__mro__ if part is not object]
    fields = [vars(part)["__dict__"] for part in parts if "__dict__" in vars(part)]
    is_own = all(part.__flags__ & HEAP_TYPE and "__class__" not in vars(part) for part in parts)
    return is_own and {GetSetDescriptorType} == set(map(type, fields))


def _template(kind: type) -> Template | None:
    try:
        module, name = kind.__module__.encode(), kind.__qualname__.encode()
        if max(len(module), len(name)) > 255:
            return None
        written = pickle.SHORT_BINUNICODE + bytes((len(name),)) + name
        # The head stores nothing in pickle's memo, because the pickled fields number their memo from 0.
        head = _START + pickle.SHORT_BINUNICODE + bytes((len(module),)) + module + written + pickle.STACK_GLOBAL
        if b"." in name or pickle.loads(head + pickle.STOP) is not kind:
            return None
    except Exception:
        return None  # the class cannot be imported by its name; `pickle.dumps` will report the reason
    return Template(head + pickle.EMPTY_TUPLE + pickle.NEWOBJ, written + pickle.MEMOIZE)
