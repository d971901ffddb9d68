"""The clock that gives messages their time of arrival."""

import time


class Clock:
    """A clock that never goes back: if the machine's clock is set back, this clock goes on at its normal rate.

    So windows still close. If the machine's clock is set forward, this clock follows at once.
    """

    def __init__(self) -> None:
        self._now_ms = self._looked_ms = 0

    def now_ms(self) -> int:
        """Return milliseconds since 1970."""
        looked_ms, wall_ms = time.monotonic_ns() // 1_000_000, time.time_ns() // 1_000_000
        self._now_ms = max(wall_ms, self._now_ms + looked_ms - self._looked_ms) if self._now_ms else wall_ms
        self._looked_ms = looked_ms
        return self._now_ms
