"""Watches that the calls of a stream end in time, with one thread for all of them."""

import threading
import time
from collections.abc import Callable

from wallaroo_runtime.worker.flight import InFlight

LOOKS = 8  # within the time of a deadline
LEAST_LOOKS = 4  # without progress, before it passes
PATIENCE = 2  # times the deadline, for a call in whose way another one may be


class IdleTimer:
    """How long there was no progress, as one who looks now and then can tell.

    A look that comes late says little: what held it up, as a machine that was stopped, has held up the worker, too.

    Example:
        >>> timer = IdleTimer()
        >>> [timer.look(now, 0.0, 1.0) for now in (0.5, 1.5, 61.5)], timer.look(62.0, 61.9, 1.0) < 0.2
        ([0.5, 1.5, 2.5], True)
    """

    def __init__(self) -> None:
        self._since = self._looked = self._seconds = 0.0

    def look(self, now: float, since: float, longest: float) -> float:
        """Return how many seconds have passed since the last progress, as far as they count.

        Args:
            now: When it is.
            since: When the last progress was.
            longest: How many seconds from one look to the next count.
        """
        if since != self._since:
            self._since = self._looked = since
            self._seconds = 0.0
        self._seconds += min(now - self._looked, longest)
        self._looked = now
        return self._seconds


class Deadline:
    """Runs an action once when a call has neither been marked as done in time nor made progress.

    Arming costs an assignment; the thread looks a few times within the deadline.

    Attributes:
        seconds: How long a message in flight may take; may change between two calls. While no message of the call is in
            flight, the worker reads, writes, or waits for another call: for that it has the time of the beginning.
        slowest: How long the call was seen without progress at most before some came.

    Args:
        seconds: How long a call may take from its last progress; the first value of `seconds`.
        look: Returns what changes with the call's progress, and what is in flight.
    """

    def __init__(self, seconds: float, action: Callable[[], None], look: Callable[[], tuple[object, InFlight]]) -> None:
        self.seconds, self.has_passed = seconds, False
        self._whole = seconds
        self.slowest = 0.0
        self._action, self._look = action, look
        self._since = 0.0
        self._closed = threading.Event()
        self._armed = threading.Event()
        self._thread: threading.Thread | None = None

    def arm(self) -> None:
        """Begin to count, or begin again."""
        self._since = time.monotonic()
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="call-deadline", daemon=True)
            self._thread.start()
        self._armed.set()

    def rest(self) -> None:
        """Stop counting until it is armed again."""
        self._since = 0.0

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._armed.set()

    def _allowed(self, flying: InFlight) -> float:
        if flying is InFlight.OWN:
            return self.seconds
        return self._whole * (PATIENCE if flying is InFlight.OTHER else 1)

    def _watch(self) -> None:
        seen: object = None
        changed = stalled = 0.0
        timer = IdleTimer()
        while not self._closed.is_set():
            since = self._since
            if not since:
                self._armed.wait()
                self._armed.clear()
                continue
            now = time.monotonic()
            found, flying = self._look()
            if found != seen:
                self.slowest = max(self.slowest, stalled)
                seen, changed = found, now
            allowed = self._allowed(flying)
            stalled = timer.look(now, max(since, changed), allowed / LEAST_LOOKS)
            left = allowed - stalled
            if left > 0:
                self._closed.wait(min(left, self.seconds / LOOKS))
            elif since == self._since:  # else it was answered just now
                self.has_passed = True
                self._action()
                return
