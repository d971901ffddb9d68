"""Records a sink's position (of its last delivered output) in a thread, so that sending never waits for the disk."""

import threading
import time
from collections.abc import Callable

RECORD_S, RECORD_DURABLY_S = 0.02, 1.0


class PositionRecorder:
    """Records the position of a sink soon after it has moved, and syncs it to disk within a second.

    Args:
        record: Records the current position, and returns whether that was possible; its argument says whether the
            record must survive a loss of power.
        failed: Called in the thread when `record` has raised an error.
        name: Name of the thread.

    Attributes:
        error: Error that `record` has raised.
    """

    def __init__(self, record: Callable[[bool], bool], failed: Callable[[], None], name: str) -> None:
        self._record, self._failed = record, failed
        self._moved, self._closing = threading.Event(), threading.Event()
        self.error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def notify(self) -> None:
        """Signal that the position has moved."""
        if not self._moved.is_set():
            self._moved.set()

    def close(self) -> None:
        """End the thread. The caller must then record the last position, because the thread may not have done it."""
        self._closing.set()
        self._moved.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._keep()
        except Exception as error:
            self.error = error  # the sink ends with this error, of whatever type
            self._failed()

    def _keep(self) -> None:
        durable_at = -RECORD_DURABLY_S
        is_durable = True
        while not self._closing.is_set():
            self._moved.wait(None if is_durable else durable_at + RECORD_DURABLY_S - time.monotonic())
            self._moved.clear()
            if self._closing.is_set():
                return
            is_durable = time.monotonic() >= durable_at + RECORD_DURABLY_S
            is_recorded = self._record(is_durable)
            if is_durable:
                durable_at = time.monotonic()
            is_durable &= is_recorded
            self._closing.wait(RECORD_S)
