"""Which of the states in a bucket's log somebody wants to see."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from wallaroo_runtime.storage.state_log import latest_states


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
    """Return what a row counts of a page."""
    return len(row.key) + len(row.value)


@dataclass(frozen=True, slots=True)
class StateChoice:
    """Says which states are wanted.

    Attributes:
        keys: Only of these keys; None: of all.
        prefix: Only of keys that begin so, or in one of these ways.
        after: Only of keys after this one, in the order of their bytes; None: from the first.
        limit: At most so many, the first; None: all.
        has_values: Whether values are wanted, not only their sizes.
        most_bytes: Of a larger value only the size is wanted; None: of none.
        page_bytes: Of the first states that have so many bytes together, and the next; None: of all.
    """

    ports: frozenset[int]
    keys: frozenset[bytes] | None = None
    prefix: bytes | tuple[bytes, ...] = b""
    after: bytes | None = None
    limit: int | None = None
    has_values: bool = True
    most_bytes: int | None = None
    page_bytes: int | None = None

    def rows(self, entries: Iterable[bytes]) -> list[StateRow]:
        """Return the chosen states of a log, in the order of their keys.

        Args:
            entries: Of the log, oldest first.

        Raises:
            RunError: R664, an entry is damaged.
        """
        found = [
            StateRow(port, key, encoding, len(value), value if self._wants(value) else b"")
            for (port, key), (encoding, value) in latest_states(entries).items()
            if port in self.ports and self._has(key)
        ]
        found = sorted(found, key=lambda row: (row.key, row.port))[: self.limit]
        return found if self.page_bytes is None else found[: self._page(found)]

    def _page(self, rows: list[StateRow]) -> int:
        """Return how many rows are wanted: what is after that of one bucket is after that of all buckets, too."""
        size = 0
        for at, row in enumerate(rows):
            if at > 1 and size > (self.page_bytes or 0):  # a page has one state at least
                return at
            size += row_bytes(row)
        return len(rows)

    def _wants(self, value: bytes) -> bool:
        return self.has_values and (self.most_bytes is None or len(value) <= self.most_bytes)

    def _has(self, key: bytes) -> bool:
        is_after = self.after is None or key > self.after
        return is_after and key.startswith(self.prefix) and (self.keys is None or key in self.keys)
