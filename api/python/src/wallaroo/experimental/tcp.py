"""TCP connections to an address that may have no listener."""

import errno
import os
import socket


def connected(host: str, port: int, timeout: float) -> socket.socket:
    """Connect to a listener.

    Raises:
        OSError: There is none.
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

    The system makes one when the port of this machine has no listener and happens to be the one that it gives to the
    new socket; what is sent there would look as if a receiver had taken it.

    Args:
        own: The socket's address.
        peer: The address that it is connected to.

    Raises:
        ConnectionRefusedError: The two are the same.
    """
    if own == peer:
        raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
