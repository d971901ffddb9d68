"""The time that a large half message may keep its part of the gateway's memory."""

from collections.abc import Iterable

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.gateway.connection import Connection

PRESSED = 6  # so much shorter is the limit while others wait for room
SMALL_TAIL_BYTES = 64 * 1024  # half messages up to this size may wait as long as they like


def stalled(
    connections: Iterable[Connection], now: float, limit_s: float, is_pressed: bool
) -> list[tuple[Connection, Diagnostic]]:
    """Return the connections whose half messages must go, each with its finding (R607).

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


def resumed(connections: set[Connection], waiting: set[Connection], has_room: bool) -> list[Connection]:
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


def _finding(connection: Connection, limit_s: float) -> Diagnostic:
    return Diagnostic.of(
        "R607",
        source=connection.source.config.name,
        peer=connection.peer,
        received=len(connection.tail),
        size=connection.size,
        reason=f"the rest is more than {limit_s:g} s late, and the connection was closed",
    )
