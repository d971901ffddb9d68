"""The default codec of messages and states: pickle. An application module may define its own pair of functions."""

import pickle
from collections.abc import Callable
from typing import Any, NamedTuple


def serialize(value: Any) -> bytes:
    """Pickle a message or a state. Workers call this if the application's module does not define `serialize`.

    Args:
        value: The message or state.

    Returns:
        The pickle of the value, with protocol 5.

    Raises:
        Exception: The value cannot be pickled; `pickle` or a method of the value raises the error.

    Example:
        >>> import zlib
        >>> words = ["abc"] * 1000
        >>> len(serialize(words)) > len(zlib.compress(serialize(words)))  # what an application's own may do
        True

    Source: Wallaroo 0.1, `wallaroo.serialize`.
    """
    return pickle.dumps(value, 5)


def deserialize(data: bytes) -> Any:
    """Return a copy of the object that `serialize` has pickled.

    Args:
        data: Result of `serialize`. Never pass data from untrusted senders, because a pickle may run any code.

    Raises:
        Exception: The pickle cannot be read; `pickle` or a method of the value raises the error.

    Example:
        >>> deserialize(serialize({"symbol": "AAPL", "amount": 5}))
        {'symbol': 'AAPL', 'amount': 5}

    Source: Wallaroo 0.1, `wallaroo.deserialize`.
    """
    return pickle.loads(data)


class Serializer(NamedTuple):
    """The two functions that write and read messages and states, and whether the user has defined them."""

    dump: Callable[[Any], bytes] = serialize
    load: Callable[[bytes], Any] = deserialize
    is_custom: bool = False
