"""Watches that the calls of a stream end in time, with one thread for all of them."""

import threading
import time
from collections.abc import Callable


class Deadline:
    """Runs an action once when a call has not been marked as done in time.

    Arming costs an assignment: the thread wakes when the earliest time it knows has come, and looks again.
    """

    def __init__(self, seconds: float, action: Callable[[], None]) -> None:
        self.seconds, self.has_passed = seconds, False
        self._action = action
        self._due = 0.0
        self._closed = threading.Event()
        self._armed = threading.Event()
        self._thread: threading.Thread | None = None

    def arm(self) -> None:
        """Begin to count, or begin anew."""
        self._due = time.monotonic() + self.seconds
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="call-deadline", daemon=True)
            self._thread.start()
        self._armed.set()

    def rest(self) -> None:
        """Stop counting until it is armed again."""
        self._due = 0.0

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._armed.set()

    def _watch(self) -> None:
        while not self._closed.is_set():
            due = self._due
            if not due:
                self._armed.wait()
                self._armed.clear()
            elif (left := due - time.monotonic()) > 0:
                self._closed.wait(left)
            else:
                self.has_passed = True
                self._action()
                return
