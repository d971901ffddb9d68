"""Measures whether the rest of a partly received message comes fast enough."""

LEAST_BYTES_PER_S = 64 * 1024


class Pace:
    """Measures by how many seconds a partly received message is late.

    A message must come at `LEAST_BYTES_PER_S` or faster. The delay grows with time. Each received byte reduces it by
    the time that a byte takes at this rate, but never below 0.

    Example:
        >>> pace = Pace()
        >>> pace.begin(100.0)
        >>> pace.came(LEAST_BYTES_PER_S * 3, 110.0)
        >>> pace.behind_s(110.0)
        7.0
    """

    __slots__ = ("_kept_up", "_paused")

    def __init__(self) -> None:
        self._kept_up, self._paused = 0.0, 0.0

    def begin(self, now: float) -> None:
        """Note that a message begins."""
        self._kept_up, self._paused = now, self._paused and now

    def came(self, size: int, now: float) -> None:
        """Note that more bytes of the message have come."""
        self._kept_up = min(now, self._kept_up + size / LEAST_BYTES_PER_S)

    def pause(self, now: float) -> None:
        """Note that the gateway stops reading the connection. The peer does not become late in the meantime."""
        self._paused = self._paused or now

    def go_on(self, now: float) -> None:
        """Note that the connection is read again."""
        if self._paused:
            self._kept_up, self._paused = self._kept_up + now - self._paused, 0.0

    def behind_s(self, now: float) -> float:
        """Return the seconds by which the peer is late with the rest of its message."""
        return 0.0 if self._paused else now - self._kept_up
