"""Decides when a run with `--stop-when-idle` is over."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Activity:
    """What one look at a run shows.

    Attributes:
        received: How far the journal goes, in messages.
        processed: How far batches have been finished, in messages.
        is_delivered: Whether no output waits, except for sinks that cannot be reached.
        is_held: Whether the outbox is full, so that nothing is processed before sinks have taken something.
        records: Messages of sources that Spark reads itself.
    """

    received: int
    processed: int
    is_delivered: bool
    is_held: bool = False
    records: int = 0


class IdleWatch:
    """Says that nothing came in for so long, and that everything before is done that can be.

    What waits for a sink that cannot be reached, output or, before a full outbox, messages, is the next run's.

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
        received = activity.received + activity.records
        if received != self._received:
            if self._received >= 0:
                self._since = now
            self._received = received
        is_processed = activity.processed >= activity.received or activity.is_held
        return is_processed and activity.is_delivered and now - self._since >= self._seconds
