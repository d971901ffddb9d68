"""What a peer gets that reads slowly, when the egress ends: each message once."""

import array
import contextlib
import fcntl
import random
import socket
import struct
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.egress_process import DEADLINE_S, Egress, numbers

pytestmark = pytest.mark.slow


def test_it_resumes_behind_the_last_message_that_the_peer_acknowledged(tmp_path: Path) -> None:
    """What the peer's kernel took counts as delivered, to the byte; the message in the middle is sent again."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    egress = Egress(tmp_path, listener.getsockname()[1]).start()
    try:
        values = numbers(0, 500_000)
        egress.publish(*values, frames=1)
        expected = b"".join(values)
        first = listener.accept()[0]
        read = len(first.recv(10_001, socket.MSG_WAITALL))
        taken = settled(lambda: waiting_bytes(first))
        position = 8 * ((read + taken) // 8)
        egress.wait(lambda: egress.sink()["bytes"] == position)
        first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        first.close()
        second = listener.accept()[0]
        got = second.recv(1000, socket.MSG_WAITALL)
        assert got == expected[position : position + 1000]
        second.close()
    finally:
        egress.kill()
        listener.close()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(each, marks=pytest.mark.long) for each in range(2, 8))])
def test_a_slow_peer_gets_nothing_twice_when_the_egress_ends(tmp_path: Path, seed: int) -> None:
    source, egress, whole = random.Random(seed), Egress(tmp_path), b""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 20_000)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(DEADLINE_S)
        address = {"host": "127.0.0.1", "tcp_port": listener.getsockname()[1]}
        egress.config["sinks"] = [{"port": 3, "name": "slow", **address}]
        values = numbers(0, 500_000)
        expected = b"".join(values)
        egress.publish(*values, frames=1)
        for _ in range(3):
            egress.start()
            with listener.accept()[0] as peer:
                peer.settimeout(DEADLINE_S)
                got = peer.recv(source.randrange(1, 200_000), socket.MSG_WAITALL)
                taken = settled(lambda peer=peer: waiting_bytes(peer))  # type: ignore[misc]
                position = 8 * ((len(whole) + len(got) + taken) // 8)
                egress.wait(lambda position=position: egress.sink()["bytes"] == position)  # type: ignore[misc]
                source.choice([egress.stop, egress.kill])()
                whole += got + rest_of(peer)
            assert position <= len(whole) < position + 8, "more arrived than the egress counts"
            whole = whole[:position]  # a message that is cut comes again
            assert whole == expected[:position]
    assert len(whole) < len(expected)


class Reader(threading.Thread):
    """Reads on at its own pace, and keeps what each connection brought.

    Args:
        buffer: Of the socket; 0: as usual.
        size, pause_s: It takes at most so much at a time, and rests for so long.
    """

    def __init__(self, buffer: int, size: int, pause_s: float) -> None:
        super().__init__(daemon=True)
        self.listener, self.size, self.pause_s = socket.socket(), size, pause_s
        if buffer:
            self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.port: int = self.listener.getsockname()[1]
        self.connections: list[bytearray] = []
        self.start()

    def run(self) -> None:
        while True:
            peer = self.listener.accept()[0]
            data = bytearray()
            self.connections.append(data)
            with peer, contextlib.suppress(ConnectionResetError):
                while part := peer.recv(self.size):
                    data += part
                    time.sleep(self.pause_s)

    def messages(self) -> list[bytes]:
        """Return all messages that came whole."""
        ends = [(data, range(LARGE, len(data) + 1, LARGE)) for data in self.connections]
        return [bytes(data[end - LARGE : end]) for data, its in ends for end in its]


LARGE = 128  # bytes of a message, so that many bytes are few messages
PACES = [(4096, 3000, 0.02), (20_000, 1000, 0.002), (0, 65_536, 0.05), (0, 400_000, 0.2)]


def test_peers_that_read_on_while_the_egress_ends_get_nothing_twice(tmp_path: Path) -> None:
    readers = [Reader(*pace) for pace in PACES]
    egress, source = Egress(tmp_path, *(reader.port for reader in readers)), random.Random(5)
    values = [b"%0*d\n" % (LARGE - 1, number) for number in range(250_000)]
    for index in range(len(readers)):
        egress.publish(*values, port=3 + index)
    for stop in range(2):
        egress.start()
        egress.wait(lambda stop=stop: all(len(reader.connections) > stop for reader in readers))  # type: ignore[misc]
        time.sleep(source.uniform(0, 0.5))
        egress.stop()
    for index, reader in enumerate(readers):
        egress.wait(lambda reader=reader: settled(lambda: len(reader.connections[-1])))  # type: ignore[misc]
        found = reader.messages()
        wrong = [at for at, pair in enumerate(zip(found, values, strict=False)) if pair[0] != pair[1]]
        assert not wrong, f"pace {PACES[index]}: {found[wrong[0]]!r} after {found[wrong[0] - 1]!r}"
        assert len(found) < len(values), f"pace {PACES[index]} was no slow one"


def rest_of(peer: socket.socket) -> bytes:
    """Return what still comes over a connection until it ends, in whatever way."""
    rest = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while part := peer.recv(1 << 20):
            rest += part
    return bytes(rest)


def waiting_bytes(connection: socket.socket) -> int:
    number = array.array("i", [0])
    fcntl.ioctl(connection, termios.FIONREAD, number)
    return number[0]


def settled(value: Callable[[], int]) -> int:
    """Return a value once it has not changed for half a second."""
    deadline = time.monotonic() + DEADLINE_S
    last, since = value(), time.monotonic()
    while time.monotonic() < since + 0.5:
        assert time.monotonic() < deadline
        time.sleep(0.02)
        if value() != last:
            last, since = value(), time.monotonic()
    return last
