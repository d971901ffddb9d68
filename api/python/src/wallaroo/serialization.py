"""The default codec of messages and states: pickle. An application module's own pair takes its place."""

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple


def serialize(value: Any) -> bytes:
    """Pickle a message or a state; what a module without a `serialize` of its own uses.

    Source: Wallaroo 0.1, `wallaroo.serialize`.
    """
    return pickle.dumps(value, 5)


def deserialize(data: bytes) -> Any:
    """Return what `serialize` was given.

    Source: Wallaroo 0.1, `wallaroo.deserialize`.
    """
    return pickle.loads(data)


class Serializer(NamedTuple):
    """A pair of functions, and whether the user wrote them."""

    dump: Callable[[Any], bytes] = serialize
    load: Callable[[bytes], Any] = deserialize
    is_custom: bool = False
