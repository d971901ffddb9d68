"""Timers that a state computation sets for the key of its message. When a timer is due, its callback runs."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from math import ceil
from typing import Any

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # first and last millisecond of the years 1 to 9999
DECLARE = 'write what runs, @STEP.timer("NAME") above `def f(key, state, time)`; in a class `timers` and `timer`'
_EPOCH, _MS = datetime(1970, 1, 1, tzinfo=timezone.utc), timedelta(milliseconds=1)


def ms_of(time: datetime) -> int:
    """Return a time in milliseconds since 1970. A time without a zone is in UTC."""
    return _since_epoch(time) // _MS


def _since_epoch(time: datetime) -> timedelta:
    return (time if time.tzinfo else time.replace(tzinfo=timezone.utc)) - _EPOCH


class WrongTimerError(Exception):
    """User code set a timer with an unknown name or an invalid time. Code: C529."""

    def __init__(self, name: object, reason: str, fix: str) -> None:
        super().__init__(f"timer {name!r} {reason}; {fix}")
        self.name, self.reason, self.fix = f'"{name}"', reason, fix


class Timers:
    """Sets and deletes timers of the current key; computations and callbacks get it as the parameter `timers`.

    A key has at most one timer of each name. The changes take effect when the function succeeds.

    Args:
        now_ms: Time of the message, or the due time of the timer whose callback runs, in milliseconds since 1970.
        declared: Names of the computation's timers.

    Attributes:
        changes: Due time of each timer that was set, and None for each that was deleted; for tests.

    Example:
        >>> timers = Timers(1000, ["close", "warn"])
        >>> timers.set("close", after=timedelta(seconds=5))
        >>> timers.delete("warn")
        >>> timers.changes
        {'close': 6000, 'warn': None}
    """

    __slots__ = ("_declared", "changes", "now_ms")

    def __init__(self, now_ms: int, declared: Collection[str]) -> None:
        self.now_ms, self._declared = now_ms, declared
        self.changes: dict[str, int | None] = {}

    def set(self, name: str, *, after: timedelta | None = None, at: datetime | float | None = None) -> None:
        """Set a timer of the key. It replaces an earlier timer of the same name. Pass either `after` or `at`.

        The time is rounded up to whole milliseconds.

        Args:
            name: Name of a timer that the computation declares.
            after: Time from `now_ms` until the timer is due, 0 or more.
            at: Due time: milliseconds since 1970, or a datetime, which is in UTC if it has no time zone.

        Raises:
            WrongTimerError: The name is not declared, or the time is not valid. The message is a dead letter (C529).
        """
        self._check(name)
        if isinstance(after, timedelta) and at is None and after >= timedelta(0):
            due = self.now_ms + after // _MS + bool(after % _MS)
        elif after is None and isinstance(at, datetime):
            due = min(-(-_since_epoch(at) // _MS), LAST_MS)
        elif isinstance(at, (int, float)) and not isinstance(at, bool) and after is None and FIRST_MS <= at <= LAST_MS:
            due = ceil(at)
        else:
            arguments = f"after={after!r}" if at is None else f"at={at!r}" if after is None else "both after and at"
            fix = "give after=timedelta(...) of 0 or more, or at=, a datetime or milliseconds since 1970"
            raise WrongTimerError(name, f"is set with {arguments}", fix)
        if not FIRST_MS <= due <= LAST_MS:
            raise WrongTimerError(name, f"is set to {due} ms since 1970", "give a time of the years 1 to 9999")
        self.changes[name] = due

    def delete(self, name: str) -> None:
        """Delete the timer of a name, if the key has one.

        Raises:
            WrongTimerError: The computation declares no timer of this name (C529).
        """
        self._check(name)
        self.changes[name] = None

    def _check(self, name: str) -> None:
        if name not in self._declared:
            known = ", ".join(f'"{each}"' for each in self._declared) or "none"
            raise WrongTimerError(name, f"is not declared; the step has {known}", DECLARE)


@dataclass(frozen=True, slots=True)
class Deleted:
    """A result with which a visitor, or a timer's callback, deletes the state of its key.

    A computation cannot return `Deleted` (C503). Instead let it set a timer with `after=timedelta(0)`, and let the
    callback of the timer return `Deleted`.

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
