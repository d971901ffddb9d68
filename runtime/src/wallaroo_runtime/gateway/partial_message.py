"""Limits the time that the gateway keeps a large partial message in memory."""

from collections.abc import Iterable

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.gateway.connection import Connection

PRESSED = 6  # the time limit is divided by this while other connections wait for room
SMALL_TAIL_BYTES = 64 * 1024  # partial messages up to this size have no time limit


def stalled(
    connections: Iterable[Connection], now: float, limit_s: float, is_pressed: bool
) -> list[tuple[Connection, Diagnostic]]:
    """Return the connections whose partial messages are too late, each with its finding (R607).

    Args:
        limit_s: Seconds by which a message may be late.
        is_pressed: Whether other connections wait for room.
    """
    limit = limit_s / PRESSED if is_pressed else limit_s
    return [
        (connection, _finding(connection, limit))
        for connection in connections
        if len(connection.tail) > SMALL_TAIL_BYTES and connection.pace.behind_s(now) > limit
    ]


def resumed(connections: set[Connection], waiting: set[Connection], has_room: bool) -> list[Connection]:
    """Return those connections, of the ones that wait for room in memory, from which the gateway continues to read.

    If there is room, all of them are read again. If not, only the connection with the largest partial message is read
    again, unless the gateway already reads another large message. Without this rule all connections could wait for
    ever, since no time limit applies to a message while the gateway does not read it.

    Args:
        waiting: Connections whose partial messages wait for room; at least one.
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
