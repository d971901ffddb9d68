"""Connects by TCP, and refuses a connection of a socket to itself."""

import errno
import os
import socket


def connected(host: str, port: int, timeout: float) -> socket.socket:
    """Connect to a listener.

    Raises:
        OSError: Nothing listens at the address, or it cannot be reached.
    """
    connection = socket.create_connection((host, port), timeout=timeout)
    try:
        refuse_itself(connection.getsockname(), connection.getpeername())
    except OSError:
        connection.close()
        raise
    return connection


def refuse_itself(own: object, peer: object) -> None:
    """Refuse a connection of a socket to itself.

    This happens if a local port has no listener and the system chooses the same port for the connecting socket. All
    bytes sent over this connection would count as received.

    Args:
        own: Address of the socket.
        peer: Address to which the socket is connected.

    Raises:
        ConnectionRefusedError: The two addresses are the same.
    """
    if own == peer:
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
