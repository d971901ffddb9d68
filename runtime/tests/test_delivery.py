"""Delivery by tasks themselves, over real sockets."""

import pickle
import socket
import struct
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from wallaroo.frame import encode_frame
from wallaroo_runtime.egress import Delivery, SinkConfig
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.remote import OutputPlace

DEADLINE_S = 90.0
MIB = 1 << 20
Talk = Callable[[socket.socket], None]


class Receiver:
    """Listens, and lets a function deal with each connection in a thread of its own."""

    def __init__(self, talk: Talk | None = None, port: int = 0) -> None:
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self.listener.getsockname()[1]
        self.data: list[bytes] = []
        self._talk = talk or self.read
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            self.threads.append(threading.Thread(target=self._take, args=(connection,), daemon=True))
            self.threads[-1].start()

    def _take(self, connection: socket.socket) -> None:
        with connection:
            self._talk(connection)

    def read(self, connection: socket.socket) -> None:
        """Read to the end."""
        while block := connection.recv(MIB):
            self.data.append(block)

    def config(self, port: int = 3) -> SinkConfig:
        return SinkConfig(port, "out", "127.0.0.1", self.port)

    def __enter__(self) -> "Receiver":
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self.threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive(), "a connection was left open"


def deliver(receiver: Receiver, *frames: bytes) -> Delivery:
    delivery = Delivery(receiver.config(), "q-7-0-0-12-3", 0, close_s=0.3)
    for frame in frames:
        delivery.write(frame)
    return delivery


def test_the_receiver_has_everything_when_a_delivery_is_settled() -> None:
    with Receiver() as receiver:
        delivery = deliver(receiver, encode_frame([b"one\n", b""], port=3), encode_frame([b"two\n"], port=3))
        delivery.finish()
        delivery.settle()
        assert b"".join(receiver.data) == b"one\ntwo\n"
        sent = delivery.so_far()
        path = f"127.0.0.1:{receiver.port}/q-7-0-0-12-3"
        assert (sent.port, sent.path, sent.bytes, sent.messages, sent.partition) == (3, path, 8, 3, 0)


def test_a_slow_receiver_holds_the_sender_up() -> None:
    goes_on, written = threading.Event(), 0
    frames = 64

    def wait_and_read(connection: socket.socket) -> None:
        assert goes_on.wait(DEADLINE_S)
        receiver.read(connection)

    with Receiver(wait_and_read) as receiver:
        delivery = deliver(receiver)

        def write() -> None:
            nonlocal written
            for number in range(frames):
                delivery.write(encode_frame([bytes([number]) * MIB], port=3))
                written = number + 1
            delivery.finish()
            delivery.settle()

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        seen, deadline = -1, time.monotonic() + DEADLINE_S
        while seen != written:
            assert time.monotonic() < deadline, "the sender never stopped"
            seen = written
            thread.join(0.5)
        assert 0 < written < frames, "the system's buffers, and no more, take what nobody reads"
        goes_on.set()
        thread.join(DEADLINE_S)
        assert written == frames and not thread.is_alive()
        assert b"".join(receiver.data) == b"".join(bytes([number]) * MIB for number in range(frames))


def test_a_receiver_that_comes_late_is_waited_for() -> None:
    with Receiver() as early:
        port = early.port
    made: list[Receiver] = []
    later = threading.Timer(0.4, lambda: made.append(Receiver(port=port)))
    later.start()
    delivery = Delivery(SinkConfig(3, "out", "127.0.0.1", port), "a", 0)
    delivery.write(encode_frame([b"x"], port=3))
    delivery.finish()
    delivery.settle()
    with made[0] as receiver:
        assert receiver.data == [b"x"]


def test_a_receiver_that_never_comes() -> None:
    with Receiver() as gone:
        config = gone.config()
    with pytest.raises(RunError) as caught:
        Delivery(config, "a", 0, reach_s=0.3)
    assert str(caught.value) == (
        f'R687 sink "out": a task cannot deliver to 127.0.0.1:{config.tcp_port}; '
        "no connection for 0.3 s; Connection refused\n"
        "  fix: start a receiver there that every executor reaches, and run again: the micro-batch is sent once more; "
        'with delivery "outbox" output waits on disk for it'
    )


def test_what_a_dying_receiver_had_not_read_is_an_error_though_its_tcp_had_it_all() -> None:
    acknowledged = threading.Event()

    def die(connection: socket.socket) -> None:
        assert acknowledged.wait(DEADLINE_S)  # and close with bytes unread, as the system does for a killed process

    with Receiver(die) as receiver:
        delivery = deliver(receiver, encode_frame([b"never read"], port=3))
        delivery.finish()
        threading.Timer(0.1, acknowledged.set).start()
        with pytest.raises(RunError, match="the connection broke; Connection reset by peer"):
            delivery.settle()
        delivery.close()


def test_a_receiver_that_breaks_while_it_is_written_to() -> None:
    def reset(connection: socket.socket) -> None:
        connection.recv(1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with Receiver(reset) as receiver:
        delivery = deliver(receiver)
        with pytest.raises(RunError, match=r"R687 .* the connection broke; "):
            for _ in range(100):
                delivery.write(encode_frame([b"x" * MIB], port=3))
        delivery.close()


def test_an_acknowledgement_is_enough_of_a_receiver_that_never_closes() -> None:
    stays = threading.Event()

    def stay(connection: socket.socket) -> None:
        receiver.read(connection)
        assert stays.wait(DEADLINE_S)

    with Receiver(stay) as receiver:
        delivery = deliver(receiver, encode_frame([b"x"], port=3))
        begun = time.monotonic()
        delivery.finish()
        delivery.settle()
        assert 0.25 < time.monotonic() - begun < DEADLINE_S
        assert receiver.data == [b"x"]
        stays.set()


def test_a_receiver_that_closes_its_side_first_is_still_served() -> None:
    def silent(connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_WR)
        receiver.read(connection)

    with Receiver(silent) as receiver:
        delivery = deliver(receiver, *[encode_frame([b"x" * MIB], port=3)] * 16)
        delivery.finish()
        delivery.settle()
    assert b"".join(receiver.data) == b"x" * 16 * MIB


def test_a_receiver_may_talk_back() -> None:
    def echo(connection: socket.socket) -> None:
        while block := connection.recv(MIB):
            receiver.data.append(block)
            connection.sendall(block)

    with Receiver(echo) as receiver:
        delivery = deliver(receiver, *[encode_frame([b"x" * MIB], port=3)] * 16)
        delivery.finish()
        delivery.settle()
    assert b"".join(receiver.data) == b"x" * 16 * MIB


def test_a_task_writes_its_own_sinks_and_stages_the_others(tmp_path: Path) -> None:
    with Receiver() as receiver:
        place = OutputPlace(str(tmp_path / "staging"), direct=(receiver.config(port=5),))
        writer = pickle.loads(pickle.dumps(place)).writer("q", 7, 0, 0, 12)
        writer.write(4, encode_frame([b"staged"], port=4))
        writer.write(5, encode_frame([b"sent", b"too"], port=5))
        told = writer.so_far()
        assert [(file.port, file.messages) for file in told] == [(4, 1), (5, 2)]
        assert writer.finish() == told
        assert receiver.data == [b"senttoo"]
        assert [path.name for path in (tmp_path / "staging").iterdir()] == ["q-7-0-0-12-4.frames"]
        idle = place.writer("q", 8, 0, 0, 13)
        assert idle.finish() == [], "a task without output for the sink connects to nobody"
    assert len(receiver.threads) == 2


def test_an_attempt_that_is_abandoned_leaves_neither_connection_nor_file(tmp_path: Path) -> None:
    with Receiver() as receiver:  # which looks for connections that are left
        place = OutputPlace(str(tmp_path / "staging"), direct=(receiver.config(port=5),))
        writer = place.writer("q", 7, 0, 0, 12)
        writer.write(4, encode_frame([b"staged"], port=4))
        writer.write(5, encode_frame([b"sent"], port=5))
        writer.abort()
    assert list((tmp_path / "staging").iterdir()) == []
