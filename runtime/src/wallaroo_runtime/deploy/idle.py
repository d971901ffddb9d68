"""Decides when a run with `--stop-when-idle` is over."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Activity:
    """What one look at a run shows.

    Attributes:
        received: How far the journal goes, in bytes.
        processed: How far batches have been finished, in bytes.
        is_delivered: Whether no output waits, except for sinks that cannot be reached.
    """

    received: int
    processed: int
    is_delivered: bool


class IdleWatch:
    """Says that nothing came in for so long, and that everything before is done.

    Args:
        seconds: How long nothing may have come in.
        now: Monotonic time in seconds from which the silence counts.
    """

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds = seconds
        self._received = -1
        self._since = now

    def is_over(self, activity: Activity, now: float) -> bool:
        """Look once."""
        if activity.received != self._received:
            if self._received >= 0:
                self._since = now
            self._received = activity.received
        done = activity.processed >= activity.received and activity.is_delivered
        return done and now - self._since >= self._seconds
