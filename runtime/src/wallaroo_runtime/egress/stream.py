"""A TCP connection to the receiver (peer) of a sink. It knows which bytes the receiver's TCP has acknowledged."""

import fcntl
import os
import select
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence

from wallaroo.diagnostic.fault import reach
from wallaroo.experimental.tcp import connected
from wallaroo_runtime.egress.feed import Piece
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.position import SinkPosition

_SIOCOUTQ = 0x5411
_ABORT, _WAIT = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)  # SO_LINGER: `close` drops sent bytes, or keeps them
CONNECT_S = 5.0
UNSENT_BYTES = 128 * 1024  # limit for unsent bytes in the system: at the end the peer must take them soon
FLIGHT_S = 1.0


class SinkStream:
    """Sends pieces (messages of one frame each) in order, and keeps each until the peer's TCP has acknowledged it.

    Args:
        wake: A descriptor that becomes readable when waiting must end.

    Attributes:
        peer_is_open: Whether the peer has not closed its side.

    Raises:
        OSError: The peer cannot be connected to.
    """

    def __init__(self, config: pb.Sink, wake: int) -> None:
        self._socket = connected(config.host, config.tcp_port, CONNECT_S)
        self._socket.setblocking(False)
        # The next connection sends the bytes that are not acknowledged, so this one must not, even if it is killed.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        self._wake = wake
        self.peer_is_open = True
        self._has_finished = False
        self._rest = memoryview(b"")
        self._queued = self._sent = self._acknowledged = 0
        self._pieces: deque[tuple[int, Piece]] = deque()

    @property
    def is_idle(self) -> bool:
        """True if the peer has acknowledged all pieces."""
        return not self._pieces

    @property
    def is_sending(self) -> bool:
        """True if the operating system has not yet taken all bytes of the last call of `put`."""
        return bool(self._rest)

    def put(self, pieces: Sequence[Piece]) -> None:
        """Begin to send the next pieces; not allowed while `is_sending`."""
        for piece in pieces:
            self._pieces.append((self._queued, piece))
            self._queued += len(piece.data)
        self._rest = memoryview(pieces[0].data if len(pieces) == 1 else b"".join(piece.data for piece in pieces))
        self.send()

    def send(self) -> None:
        """Give the operating system as many bytes as it takes now.

        Raises:
            OSError: The connection broke.
        """
        while self._rest:
            reach("egress.before_send")
            try:
                count = self._socket.send(self._rest)
            except BlockingIOError:
                return
            reach("egress.after_send")
            self._sent += count
            self._rest = self._rest[count:]

    def acknowledged(self) -> Iterator[Piece]:
        """Yield the pieces that were acknowledged completely since the last call; allowed after `close`, too."""
        if self._socket.fileno() >= 0:
            self._acknowledged = self._sent - self._outstanding()
        while self._pieces:
            start, piece = self._pieces[0]
            if start + len(piece.data) > self._acknowledged:
                return
            self._pieces.popleft()
            yield piece

    def partly(self) -> SinkPosition | None:
        """Return the position after the last acknowledged message; None if all pieces are acknowledged completely."""
        if not self._pieces:
            return None
        start, piece = self._pieces[0]
        return piece.position(max(0, self._acknowledged - start))

    def wait(self, timeout_s: float) -> bool:
        """Wait until more can be sent, the peer acts, or another thread calls. Return whether a thread has called.

        Raises:
            OSError: The connection broke.
        """
        poll = select.poll()
        if self.peer_is_open or not self._has_finished:  # if both sides are closed, `poll` would return at once
            events = (select.POLLIN if self.peer_is_open else 0) | (select.POLLOUT if self._rest else 0)
            poll.register(self._socket, events)
        poll.register(self._wake, select.POLLIN)
        is_woken = False
        for descriptor, event in poll.poll(max(1, int(timeout_s * 1000))):
            if descriptor == self._wake:
                os.read(self._wake, 8)
                is_woken = True
            elif event & (select.POLLERR | select.POLLNVAL) or not event & (select.POLLIN | select.POLLOUT):
                code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                raise ConnectionResetError(code, os.strerror(code) if code else "the peer closed the connection")
            elif event & select.POLLIN:
                # Bytes from the peer are ignored. A peer that closes only its own side may still read.
                self.peer_is_open = bool(self._socket.recv(65536))
        return is_woken

    def finish(self) -> None:
        """Signal to the peer that nothing more comes."""
        self._has_finished = True
        self._socket.shutdown(socket.SHUT_WR)

    @property
    def is_finished(self) -> bool:
        """True if the peer has acknowledged all bytes and, after `finish`, the end of the stream."""
        return self._outstanding() == 0

    def _outstanding(self) -> int:
        """Return the number of bytes that are unsent or not acknowledged. The end of the stream counts as one byte."""
        (count,) = struct.unpack("i", fcntl.ioctl(self._socket, _SIOCOUTQ, b"\0\0\0\0"))
        return int(count)

    def settle(self, timeout_s: float) -> None:
        """Wait until the peer has acknowledged all bytes that were sent.

        After `timeout_s` the call returns as soon as nothing is in flight: the peer has acknowledged all bytes that it
        has.
        """
        end = time.monotonic() + timeout_s
        while self._outstanding():
            over_s = time.monotonic() - end
            if over_s >= FLIGHT_S or (over_s >= 0 and not self._in_flight()):
                return
            time.sleep(0.001)

    def _in_flight(self) -> int:
        """Return the number of TCP segments that were sent and not acknowledged (`tcpi_unacked` of Linux)."""
        tcp_info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 28)
        return int.from_bytes(tcp_info[24:28], sys.byteorder)

    def close(self) -> None:
        """Close the connection. Bytes that the peer has not acknowledged never arrive."""
        if self._outstanding() <= self._has_finished:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _WAIT)
        outstanding = self._outstanding()
        self._socket.close()  # close soon after `settle`: bytes that the peer takes in between are sent again
        self._acknowledged = self._sent - outstanding
