"""A TCP connection to a receiver: sends without blocking, and knows what the receiver's TCP has acknowledged."""

import fcntl
import os
import select
import socket
import struct

from wallaroo_runtime.egress.config import SinkConfig

_SIOCOUTQ = 0x5411
CONNECT_S = 5.0


class Connection:
    """A connection to the receiver of a sink.

    Args:
        config: Where to connect to.
        wake: A descriptor that becomes readable when waiting must end.

    Attributes:
        peer_is_open: Whether the receiver has not closed its side.

    Raises:
        OSError: There is no connection.
    """

    def __init__(self, config: SinkConfig, wake: int) -> None:
        self._socket = socket.create_connection((config.host, config.tcp_port), timeout=CONNECT_S)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wake = wake
        self.peer_is_open = True
        self._is_finished = False

    def send(self, data: memoryview) -> int:
        """Hand over as much as the system takes now, and return how much that is.

        Raises:
            OSError: The connection broke.
        """
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    def outstanding(self) -> int:
        """Return how many bytes the system still holds, unsent or not acknowledged; the end of `finish` is one."""
        (count,) = struct.unpack("i", fcntl.ioctl(self._socket, _SIOCOUTQ, b"\0\0\0\0"))
        return int(count)

    def wait(self, timeout_s: float, *, is_sending: bool = False) -> None:
        """Wait until the receiver does something, `wake` is readable or, when `is_sending`, more can be sent.

        Raises:
            OSError: The connection broke.
        """
        poll = select.poll()
        if self.peer_is_open or not self._is_finished:  # else the system would say at once that both sides are closed
            events = (select.POLLIN if self.peer_is_open else 0) | (select.POLLOUT if is_sending else 0)
            poll.register(self._socket, events)
        poll.register(self._wake, select.POLLIN)
        for descriptor, event in poll.poll(max(1, int(timeout_s * 1000))):
            if descriptor == self._wake:
                os.read(self._wake, 8)
            elif event & (select.POLLERR | select.POLLNVAL) or not event & (select.POLLIN | select.POLLOUT):
                self.check()
                raise ConnectionResetError(0, "the peer closed the connection")
            elif event & select.POLLIN:
                self._discard()

    def check(self) -> None:
        """Raise what has broken the connection.

        Raises:
            OSError: It broke.
        """
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))

    def _discard(self) -> None:
        """Throw away what the receiver says. One that only closes its own side may still read."""
        self.peer_is_open = bool(self._socket.recv(65536))

    def finish(self) -> None:
        """Tell the receiver that nothing more comes.

        Raises:
            OSError: The connection broke.
        """
        self._is_finished = True
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()
