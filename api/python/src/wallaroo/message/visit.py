"""The result by which a visitor or a timer's callback deletes a state."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Deleted:
    """The result of a visitor, or of a timer's callback, that deletes the state of its key.

    A computation cannot return it (C503): let it set a timer with `after=timedelta(0)`, whose callback returns it.

    Attributes:
        result: The output message, or None; for a computation with any number of outputs a list of them.

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
