"""The default codec of messages and states: pickle. An application module's own pair takes its place."""

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple


def serialize(value: Any) -> bytes:
    """Pickle a message or a state; the default for a module without a `serialize` of its own.

    Args:
        value: The message or state.

    Returns:
        Its pickle, protocol 5.

    Raises:
        Exception: What `pickle` or the value's own methods raise, where it cannot be pickled.

    Example:
        >>> import zlib
        >>> words = ["abc"] * 1000
        >>> len(serialize(words)) > len(zlib.compress(serialize(words)))  # what an application's own may do
        True

    Source: Wallaroo 0.1, `wallaroo.serialize`.
    """
    return pickle.dumps(value, 5)


def deserialize(data: bytes) -> Any:
    """Return the object that `serialize` was given.

    Args:
        data: What `serialize` returned; nothing that a stranger can write, since a pickle may run any code.

    Raises:
        Exception: What `pickle` or the value's own methods raise, where it cannot be read.

    Example:
        >>> deserialize(serialize({"symbol": "AAPL", "amount": 5}))
        {'symbol': 'AAPL', 'amount': 5}

    Source: Wallaroo 0.1, `wallaroo.deserialize`.
    """
    return pickle.loads(data)


class Serializer(NamedTuple):
    """A pair of functions, and whether the user wrote them."""

    dump: Callable[[Any], bytes] = serialize
    load: Callable[[bytes], Any] = deserialize
    is_custom: bool = False
