"""How long a large half message may keep its part of the gateway's memory."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from wallaroo.diagnostic.diagnostic import Diagnostic

if TYPE_CHECKING:
    from wallaroo_runtime.gateway.connection import Connection

LEAST_BYTES_PER_S = 64 * 1024
PRESSED = 6  # so much shorter is the limit while others wait for room
SMALL_TAIL_BYTES = 64 * 1024  # half messages up to this size may wait as long as they like


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
        """Return how many seconds the peer is late."""
        return 0.0 if self._paused else now - self._kept_up


def stalled(
    connections: Iterable["Connection"], now: float, limit_s: float, is_pressed: bool
) -> list[tuple["Connection", Diagnostic]]:
    """Return the connections whose half messages must go, and what to say of each (R607).

    Args:
        limit_s: For how long a peer may be late.
        is_pressed: Whether others wait for the room that they take.
    """
    limit = limit_s / PRESSED if is_pressed else limit_s
    return [
        (connection, _finding(connection, limit))
        for connection in connections
        if len(connection.tail) > SMALL_TAIL_BYTES and connection.pace.behind_s(now) > limit
    ]


def resumed(connections: set["Connection"], waiting: set["Connection"], has_room: bool) -> list["Connection"]:
    """Return the waiting connections that are read again: all with room for them, else one when no other has a turn.

    A half message that nobody reads is never late, so without the last rule all could wait for each other.

    Args:
        waiting: Those of them whose half messages wait for room; at least one.
        has_room: Whether there is room.
    """
    if has_room:
        return list(waiting)
    if any(len(each.tail) > SMALL_TAIL_BYTES for each in connections - waiting):
        return []
    return [max(waiting, key=lambda each: len(each.tail))]


def _finding(connection: "Connection", limit_s: float) -> Diagnostic:
    received = len(connection.tail)
    return Diagnostic.of(
        "R607",
        source=connection.source.config.name,
        peer=connection.peer,
        received=received,
        expected=connection.wanted if connection.wanted > received else "more",
        reason=f"the rest is more than {limit_s:g} s late, and the connection was closed",
    )
