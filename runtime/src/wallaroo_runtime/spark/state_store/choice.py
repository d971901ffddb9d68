"""The conditions by which a reader chooses states from Spark's state store: names, keys and limits."""

import base64
import json
from dataclasses import dataclass
from typing import NamedTuple


class StateRow(NamedTuple):
    """The state of one key, read from the state log of a bucket.

    Attributes:
        port: Number of the state in the plan.
        encoding: Number of the encoding of `value`, as in headers of frames.
        size: Number of bytes of the state.
        value: The serialized state; empty if only its size is wanted.
    """

    port: int
    key: bytes
    encoding: int
    size: int
    value: bytes


def row_bytes(row: StateRow) -> int:
    """Return the bytes of key and value, which count for the limit of a page of states."""
    return len(row.key) + len(row.value)


@dataclass(frozen=True, slots=True)
class StateChoice:
    """The conditions by which a reader chooses states. `ChosenStates` in Java applies them in each bucket.

    Attributes:
        ports: Ports of the wanted states.
        keys: The wanted keys; None for all.
        prefixes: The beginnings of wanted keys; a key fits if it begins with any of them.
        after: Wanted keys are after this one, in the order of their bytes; None begins with the first key.
        limit: The largest number of states: the first ones are returned. None for no limit.
        most_bytes: For a state with more bytes only the size is returned; None returns all states whole.
        page_bytes: Each bucket returns its first states up to this size, but at least two states; None for no limit.
    """

    ports: frozenset[int]
    keys: frozenset[bytes] | None = None
    prefixes: tuple[bytes, ...] = (b"",)
    after: bytes | None = None
    limit: int | None = None
    most_bytes: int | None = None
    page_bytes: int | None = None

    def to_json(self) -> str:
        """Return the conditions as JSON for the operators in Java."""
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
