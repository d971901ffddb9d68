"""Lets threads of the process that writes a journal wait until the journal grows."""

import threading

from wallaroo_runtime.storage.journal.head import Position


class HeadWatch:
    """Notifies waiting threads of the journal's readable end. A slow thread gets only the latest position."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._safe: Position | None = None
        self._version = 0

    def move(self, safe: Position) -> None:
        """Note that the journal may be read up to `safe`. Any thread may call this."""
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
        """A number that changes with each call of `move` or `wake`."""
        return self._version

    def wait(self, version: int) -> tuple[int, Position | None]:
        """Wait until the version differs from `version`. Return the version and the journal's readable end."""
        with self._changed:
            self._changed.wait_for(lambda: self._version != version)
            return self._version, self._safe
