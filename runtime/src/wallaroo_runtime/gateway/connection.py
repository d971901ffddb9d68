"""The connections of the gateway, and the sockets that accept connections."""

import contextlib
import resource
import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.experimental.protocol import MESSAGE_BYTES
from wallaroo_runtime.errors import RunError, host_port
from wallaroo_runtime.gateway.config import CONNECTOR, WORKER
from wallaroo_runtime.gateway.framing import NEWLINE, Cutter, fixed_cutter
from wallaroo_runtime.gateway.message_pace import Pace
from wallaroo_runtime.service._proto import service_pb2 as pb

UNKNOWN_SIZE = "unknown size"
RESET, EOF = struct.pack("ii", 1, 0), struct.pack("ii", 0, 0)  # values of SO_LINGER: `close` sends a reset, or EOF
_QUEUE = 1024


@dataclass(slots=True)
class Source:
    """A source and its listening socket; `cut` is None if only a worker can cut the bytes into messages."""

    config: pb.Source
    listener: socket.socket
    cut: Cutter | None
    address: dict[str, object]

    @property
    def is_connector(self) -> bool:
        """True if the peers of this source speak the connector protocol."""
        return bool(self.config.framing == CONNECTOR)


@dataclass(slots=True, eq=False)
class Connection:
    """A connection, with the bytes of its last message if that was received only partly.

    Attributes:
        source: Source that the peer connected to.
        peer: Address of the peer, for people.
        tail: Received bytes of the partly received message.
        wanted: Size of the message that `tail` begins, header included; 0 if it is not known yet.
        pace: Measures whether the rest of the partly received message comes fast enough.
        is_refused: Whether no more input is accepted; the peer then gets some time to read the reason.
        taken: Value of `Intake.taken` after the last message of this connection.
        has_ended: Whether the peer has closed its side and all its bytes were read.
    """

    source: Source
    socket: socket.socket
    peer: str
    tail: bytearray = field(default_factory=bytearray)
    wanted: int = 0
    pace: Pace = field(default_factory=Pace)
    is_refused: bool = False
    taken: int = 0
    has_ended: bool = False

    def extend(self, data: memoryview, now: float) -> None:
        """Add received bytes to `tail`, the partly received message."""
        if not self.tail:
            self.pace.begin(now)
        self.pace.came(len(data), now)
        self.tail += data

    def look(self) -> None:
        """Check a connection that is not being read: set `has_ended` if the peer has closed and no byte is unread."""
        with contextlib.suppress(OSError):
            self.has_ended = self.has_ended or not self.socket.recv(1, socket.MSG_PEEK)

    def close(self, is_safe: Callable[[int], bool]) -> None:
        """Close with EOF if the peer has closed, too, and all its messages are safe. Otherwise close with a reset.

        A peer that gets EOF knows that all its messages are safe. So a peer that may still send gets a reset. A refused
        connector gets EOF, too, because only the acknowledgements of its protocol count for it.

        Args:
            is_safe: `Intake.is_safe`.

        """
        if self.is_refused or (self.has_ended and not self.tail and is_safe(self.taken)):
            with contextlib.suppress(OSError):
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, EOF)
        self.socket.close()

    def cut_message(self) -> Diagnostic | None:
        """Return the finding that the peer closed the connection within a message; None if no message is incomplete."""
        if not self.tail or self.is_refused:
            return None
        return within_message(self.source.config, self.peer, len(self.tail), self.size)

    def message_too_large(self, size: int) -> Diagnostic:
        """Return the finding that a message is too large."""
        return too_large(self.source.config, self.peer, size)

    @property
    def size(self) -> str:
        """Size of the partly received message, as text."""
        return f"{self.wanted} bytes" if self.wanted > len(self.tail) else UNKNOWN_SIZE

    def last_line(self) -> bytes:
        """Return the last line of a closed connection, with the missing line break added; empty if none is missing."""
        if not self.tail or self.is_refused or self.source.config.framing != NEWLINE:
            return b""
        return bytes(self.tail) + b"\n"


def within_message(config: pb.Source, peer: str, received: int, size: str = UNKNOWN_SIZE) -> Diagnostic:
    """Return the finding that a peer closed its connection within a message."""
    reason = "the sender closed the connection"
    return Diagnostic.of("R607", source=config.name, peer=peer, received=received, size=size, reason=reason)


def too_large(config: pb.Source, peer: str, size: int) -> Diagnostic:
    """Return the finding that a message is too large."""
    why = "a line is longer" if config.framing == NEWLINE else f"a header announces {size} bytes"
    place, reason = f"connection {peer}", f"{why}; the connection was closed"
    return Diagnostic.of("R606", source=config.name, place=place, limit=config.max_message_bytes, reason=reason)


def real_address(config: pb.Source, listener: socket.socket) -> dict[str, object]:
    """Return the address at which a source really listens, for the status file."""
    host, tcp_port = listener.getsockname()[:2]
    address = host_port(host, tcp_port)
    return {"port": config.port, "name": config.name, "address": address, "host": host, "tcp_port": tcp_port}


def listen(config: pb.Source) -> socket.socket:
    """Open the listening socket of a source.

    Raises:
        RunError: R714 if the address cannot be used.
    """
    listener = None
    try:
        addresses = socket.getaddrinfo(
            config.host or None, config.tcp_port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, target = addresses[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(target)
        listener.listen(_QUEUE)
        listener.setblocking(False)
    except OSError as error:
        if listener is not None:
            listener.close()
        what, address = f'source "{config.name}"', f"{config.host}:{config.tcp_port}"
        raise RunError.of("R714", what=what, address=address, reason=error.strerror, option="--in") from error
    return listener


def listen_all(configs: Iterable[pb.Source]) -> list[Source]:
    """Open the listening sockets of all sources. If one cannot be opened, close the others.

    Raises:
        RunError: R714 if an address cannot be used.
    """
    sources: list[Source] = []
    try:
        for config in configs:
            listener = listen(config)
            sources.append(Source(config, listener, _cutter(config), real_address(config, listener)))
    except RunError:
        for source in sources:
            source.listener.close()
        raise
    return sources


def _cutter(config: pb.Source) -> Cutter | None:
    if config.framing == CONNECTOR:
        return fixed_cutter("u32be", MESSAGE_BYTES + config.max_message_bytes)
    return None if config.framing == WORKER else fixed_cutter(config.framing, config.max_message_bytes)


def accept(source: Source) -> Connection | None:
    """Accept one connection. Return None if no peer waits.

    Raises:
        OSError: There are no more descriptors or buffers.
    """
    try:
        accepted, peer = source.listener.accept()
    except (BlockingIOError, ConnectionAbortedError):
        return None
    accepted.setblocking(False)
    # Otherwise the connection of a machine that has vanished would stay open forever.
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # The system closes the sockets of a killed gateway. Peers must not see EOF then: it means that everything is safe.
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    return Connection(source, accepted, f"{peer[0]}:{peer[1]}")


def descriptor_limit() -> int:
    """Raise the number of files that this process may open, as far as possible, and return that number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
