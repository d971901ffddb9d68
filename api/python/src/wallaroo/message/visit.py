"""Visits: a state computation's visitors run for every key that has state."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Deleted:
    """A visitor returns it in place of its result when the key is no longer to have a state.

    Attributes:
        result: The message that goes on, None for none; of a computation with many results the list of them.

    Example:
        >>> import wallaroo
        >>> @wallaroo.state_computation("count", state=list)
        ... def count(data, state):
        ...     state.append(data)
        ...     return len(state)
        >>> @count.visitor("forget")
        ... def forget(metadata, key, state):
        ...     return wallaroo.Deleted(f"{key} had {len(state)}")
        >>> forget(b"", "a", ["x"])
        Deleted(result='a had 1')
    """

    result: Any = None
