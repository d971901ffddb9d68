"""Writes ticks into the journal: frames without messages, which advance the time of windows."""

from collections.abc import Callable

from wallaroo.message.frame import TICK_PORT
from wallaroo_runtime.gateway.intake import Intake


class TickWriter:
    """Writes ticks into the journal, while a driver is alive and the journal has room.

    Args:
        has_driver: Returns whether a driver is alive.
        interval_ms: Time from one tick to the next; 0 if there are no ticks.
    """

    def __init__(self, intake: Intake, has_driver: Callable[[], bool], interval_ms: int) -> None:
        self._intake, self._has_driver, self._interval_s = intake, has_driver, interval_ms / 1000
        self._at = 0.0

    def turn(self, now: float) -> None:
        """Write a tick if it is due. Called once in every turn of the event loop."""
        if self._interval_s and now >= self._at:
            self._at = now + self._interval_s
            if self._has_driver() and self._intake.accepts:
                self._intake.control(TICK_PORT)

    def wait(self, now: float) -> float:
        """Return the seconds until the next tick is due."""
        return max(0.0, self._at - now) if self._interval_s else float("inf")
