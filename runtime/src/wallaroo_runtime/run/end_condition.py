"""Declares the conditions that end a run without a failure or signal. The run checks each condition repeatedly.

A part that fails raises an error instead (`Flow.check`); `checkpoint/end_note.py` notes for `status` how the run ended.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wallaroo_runtime.run.options import RunOptions


class EndCondition(NamedTuple):
    """A condition that ends a run.

    Attributes:
        holds: Returns at a monotonic time in seconds whether the run must end. It may raise the error of a failed part.
        text: Reason of the end, in words.
    """

    holds: Callable[[float], bool]
    text: str


@dataclass(frozen=True, slots=True)
class Activity:
    """The numbers at one moment that show whether a run is idle.

    Attributes:
        received: Number of messages in the journal since its beginning.
        processed: Number of these messages that are processed in finished batches.
        is_delivered: Whether no output waits, except for sinks that cannot be reached.
        is_held: Whether the outbox is full, so that the query waits for sinks.
        records: Number of messages of sources that Spark reads itself.
    """

    received: int
    processed: int
    is_delivered: bool
    is_held: bool = False
    records: int = 0


class IdleWatch:
    """Detects that no messages have come for some time, and that all possible work on earlier messages is done.

    A run can be idle although output waits for sinks that cannot be reached, or messages wait for a full outbox. The
    next run delivers this output and processes these messages.

    Args:
        seconds: Seconds without input after which the run is idle.
        now: Monotonic time in seconds from which the silence counts.
    """

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds = seconds
        self._received = -1
        self._since = now

    def is_over(self, activity: Activity, now: float) -> bool:
        """Take the current activity, and return whether the run has been idle for long enough."""
        received = activity.received + activity.records
        if received != self._received:
            if self._received >= 0:
                self._since = now
            self._received = received
        is_processed = activity.processed >= activity.received or activity.is_held
        return is_processed and activity.is_delivered and now - self._since >= self._seconds


def ends_of(
    options: RunOptions, now: float, activity: Callable[[], Activity], is_complete: Callable[[], bool]
) -> Sequence[EndCondition]:
    """Return the conditions that end a run, from its options.

    Args:
        options: Options of the run.
        now: Monotonic time in seconds at which the run is ready.
        activity: Returns the progress of the run.
        is_complete: Returns whether everything that existed at the start is delivered.
    """
    ends: list[EndCondition] = []
    if options.stop_when_idle is not None:
        seconds = options.stop_when_idle
        idle = IdleWatch(seconds, now)
        ends.append(EndCondition(lambda now: idle.is_over(activity(), now), f"nothing came in for {seconds:g} s"))
    if options.available_now:
        ends.append(EndCondition(lambda _: is_complete(), "all that was there at its start is delivered"))
    return ends
