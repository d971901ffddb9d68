"""Which of the states in a stage's logs somebody wants to see."""

import base64
import json
from dataclasses import dataclass
from typing import NamedTuple


class StateRow(NamedTuple):
    """The state of one key, as its log has it.

    Attributes:
        size: Bytes of the value.
        value: The serialized state; empty when only the size is wanted.
    """

    port: int
    key: bytes
    encoding: int
    size: int
    value: bytes


def row_bytes(row: StateRow) -> int:
    """Return the bytes of a page that a row counts for."""
    return len(row.key) + len(row.value)


@dataclass(frozen=True, slots=True)
class StateChoice:
    """Says which states are wanted; `ChosenStates` of `runtime/java` chooses them in each bucket.

    Attributes:
        keys: Only of these keys; None: of all.
        prefixes: Only of keys that begin in one of these ways.
        after: Only of keys after this one, in the order of their bytes; None: from the first.
        limit: At most so many, the first; None: all.
        most_bytes: Of a larger value only the size is wanted; None: of none.
        page_bytes: Of the first states that have so many bytes together, and the next; None: of all.
    """

    ports: frozenset[int]
    keys: frozenset[bytes] | None = None
    prefixes: tuple[bytes, ...] = (b"",)
    after: bytes | None = None
    limit: int | None = None
    most_bytes: int | None = None
    page_bytes: int | None = None

    def to_json(self) -> str:
        """Return it as the operators read it."""
        return json.dumps(
            {
                "ports": sorted(self.ports),
                "keys": None if self.keys is None else [_text(key) for key in sorted(self.keys)],
                "prefixes": [_text(prefix) for prefix in self.prefixes],
                "after": None if self.after is None else _text(self.after),
                "limit": self.limit,
                "most_bytes": self.most_bytes,
                "page_bytes": self.page_bytes,
            }
        )


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
