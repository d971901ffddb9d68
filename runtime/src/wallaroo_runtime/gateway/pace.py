"""How fast the bytes of a message come that is not whole yet."""

LEAST_BYTES_PER_S = 64 * 1024


class Pace:
    """When a message that is not whole has last come as fast as it must.

    Bytes move that moment on, each as far as the least rate says, up to now: a pause counts, a slow peer falls back.

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
        self._kept_up = now

    def came(self, size: int, now: float) -> None:
        """Note that bytes of it came."""
        self._kept_up = min(now, self._kept_up + size / LEAST_BYTES_PER_S)

    def pause(self, now: float) -> None:
        """Note that the connection is not read from now on: that is not the peer's fault."""
        self._paused = self._paused or now

    def go_on(self, now: float) -> None:
        """Note that the connection is read again."""
        if self._paused:
            self._kept_up, self._paused = self._kept_up + now - self._paused, 0.0

    def behind_s(self, now: float) -> float:
        """Return the seconds by which the peer is late."""
        return 0.0 if self._paused else now - self._kept_up
