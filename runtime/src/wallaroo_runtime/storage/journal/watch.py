"""Waiting for a journal to grow, in the process that writes it."""

import threading

from wallaroo_runtime.storage.journal.head import Position


class HeadWatch:
    """Reports the readable end of the journal to waiting threads; a slow thread gets only the latest position."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._safe: Position | None = None
        self._version = 0

    def move(self, safe: Position) -> None:
        """Note that the journal may be read up to `safe`; any thread may call this."""
        with self._changed:
            self._safe = safe
            self._turn()

    def wake(self) -> None:
        """Wake all waiting threads, so that they check again whether to wait."""
        with self._changed:
            self._turn()

    def _turn(self) -> None:
        self._version += 1
        self._changed.notify_all()

    @property
    def version(self) -> int:
        """A number that differs after each change."""
        return self._version

    def wait(self, version: int) -> tuple[int, Position | None]:
        """Wait until the version differs; returns it, and the readable end of the journal, None if it is not known."""
        with self._changed:
            self._changed.wait_for(lambda: self._version != version)
            return self._version, self._safe
