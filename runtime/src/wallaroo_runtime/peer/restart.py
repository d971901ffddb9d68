"""Starts gateway and egress again when they have ended by themselves: journal and outbox carry them over it."""

import time
from collections import deque
from collections.abc import Callable

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.process import Process

RESTART_LIMIT, RESTART_WINDOW_S = 10, 60.0


class Keeper:
    """Keeps one process running.

    Args:
        process: It was started and is ready.
        note: Notifies the user that it was started again.
    """

    def __init__(self, process: Process, note: Callable[[str], None]) -> None:
        self._process, self._note = process, note
        self._starts: deque[float] = deque()
        self._addresses = process.addresses()

    def check(self) -> None:
        """Look once; returns when it is ready again.

        Raises:
            RunError: It says itself that it cannot go on, or it ends again and again (R617).
        """
        while not self._process.is_alive():
            error = self._process.failure()
            if self._process.has_failed() or not self._may_start():
                raise error
            self._process.start()
            try:
                self._process.wait_ready()
            except RunError:
                if self._process.has_failed():
                    raise
                continue
            self._tell(error)

    def _may_start(self) -> bool:
        now = time.monotonic()
        while self._starts and now - self._starts[0] > RESTART_WINDOW_S:
            self._starts.popleft()
        self._starts.append(now)
        return len(self._starts) <= RESTART_LIMIT

    def _tell(self, error: RunError) -> None:
        self._note(f"{error.diagnostics[0].message}; it was started again")
        addresses = self._process.addresses()
        for name, address in addresses:
            if (name, address) not in self._addresses:
                self._note(f'source "{name}" now listens at {address}')
        self._addresses = addresses
