"""Updates: each record of a table is stored in a view or, for a joined table, in the state of the record's key."""

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from wallaroo.goka.error import CallbackError
from wallaroo.message.kafka_record import has_time
from wallaroo.message.timer import FIRST_MS, LAST_MS

Values = MutableMapping[str, bytes]
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class Update:
    """Topic, position, headers and time of a table's record, for an update callback.

    Attributes:
        topic: Topic of the table.
        partition: Partition of the record.
        offset: Offset of the record.
        headers: Headers of the record.
        timestamp: Time of the record in UTC; None if it has no time.

    Example:
        >>> Update("users-table", 0, 17, {}, None).offset
        17

    Source: Goka, `goka.UpdateContext`.
    """

    topic: str
    partition: int
    offset: int
    headers: Mapping[str, bytes | None]
    timestamp: datetime | None


def time_in_utc(timestamp_ms: int) -> datetime | None:
    """Return the time of a record, or the nearest time that Python has; None if the record has no time.

    Example:
        >>> time_in_utc(5).microsecond, time_in_utc(10**18).year, time_in_utc(-1)
        (5000, 9999, None)
    """
    nearest = max(FIRST_MS, min(timestamp_ms, LAST_MS))
    return _EPOCH + timedelta(milliseconds=nearest) if has_time(timestamp_ms) else None


class Storage:
    """The values of a table, to which an update callback writes. In a join only the record's key can be used.

    Args:
        values: Encoded values by key.
        only: The only key that may be used; None allows all keys.

    Example:
        >>> storage = Storage({"Ann": b"7"})
        >>> storage.delete("Ann")
        >>> storage.has("Ann"), storage.get("Ann")
        (False, None)

    Source: Goka, `storage.Storage`.
    """

    def __init__(self, values: Values, only: str | None = None) -> None:
        self._values, self._only = values, only

    def has(self, key: str) -> bool:
        """Return whether a key has a value."""
        return self._checked(key) in self._values

    def get(self, key: str) -> bytes | None:
        """Return a key's value, or None."""
        return self._values.get(self._checked(key))

    def set(self, key: str, value: bytes) -> None:
        """Set a key's value."""
        self._values[self._checked(key)] = bytes(value)

    def delete(self, key: str) -> None:
        """Remove a key's value, if it has one."""
        self._values.pop(self._checked(key), None)

    def _checked(self, key: str) -> str:
        if self._only is not None and key != self._only:
            msg = f"key {key!r} in the update of {self._only!r}: a join keeps its values with the state of their key"
            raise CallbackError(msg)
        return key


UpdateCallback = Callable[[Update, Storage, str, bytes | None], object]


def default_update(update: Update, storage: Storage, key: str, value: bytes | None) -> None:
    """Store a record's value under its key; a record without a value removes the key.

    Args:
        update: Not used.
        storage: The values of the table.
        key: Key of the record.
        value: Value of the record.

    Example:
        >>> values = {}
        >>> default_update(Update("users-table", 0, 0, {}, None), Storage(values), "Ann", b"7")
        >>> values
        {'Ann': b'7'}

    Source: Goka, `goka.DefaultUpdate`.
    """
    if value is None:
        storage.delete(key)
    else:
        storage.set(key, value)
