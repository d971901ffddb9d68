"""The egress as a process, over real sockets."""

import contextlib
import random
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.egress_process import DEADLINE_S, Egress, numbers
from wallaroo.message.frame import encode_frame
from wallaroo_runtime.storage.outbox.position import read_position
from wallaroo_runtime.storage.outbox.staging import StagingWriter

pytestmark = pytest.mark.slow


class Receiver(threading.Thread):
    """Accepts one connection after the other, and keeps what each brought."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self.listener.getsockname()[1]
        self.connections: list[bytearray] = []
        self.current: socket.socket | None = None
        self.start()

    def run(self) -> None:
        while True:
            try:
                self.current = self.listener.accept()[0]
            except OSError:
                return
            data = bytearray()
            self.connections.append(data)
            with self.current, contextlib.suppress(ConnectionResetError):
                while part := self.current.recv(1 << 20):
                    data += part

    def stop(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        if self.current is not None and self.current.fileno() >= 0:
            with contextlib.suppress(OSError):  # the egress has left
                self.current.shutdown(socket.SHUT_RDWR)
        self.join(DEADLINE_S)
        assert not self.is_alive()

    def bytes(self) -> bytes:
        return b"".join(self.connections)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    if made.is_alive():
        made.stop()


@pytest.fixture
def egress(tmp_path: Path, receiver: Receiver) -> Iterator[Egress]:
    made = Egress(tmp_path, receiver.port)
    yield made.start()
    if made.child.poll() is None:
        made.kill()


def leave_room(egress: Egress, size: int | None) -> None:
    """Let files of the egress grow to so many bytes; None: as before."""
    _, hard = resource.prlimit(egress.child.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(egress.child.pid, resource.RLIMIT_FSIZE, (hard if size is None else size, hard))


@pytest.mark.parametrize("seed", range(2))
def test_without_room_for_positions_delivery_goes_on(egress: Egress, receiver: Receiver, seed: int) -> None:
    source, sent = random.Random(seed), 0
    egress.wait(lambda: egress.sink()["state"] == "connected")
    for has_room in (True, False, True, False, True):
        leave_room(egress, None if has_room else source.randrange(20))
        for _ in range(source.randrange(1, 4)):
            egress.publish(*numbers(sent, sent + 50))
            sent += 50
            time.sleep(source.random() / 10)
        egress.wait(lambda total=sent * 8: len(receiver.bytes()) == total)  # type: ignore[misc]
        time.sleep(source.random() * 1.5)  # positions are recorded durably once in a second
        assert egress.child.poll() is None, egress.log()
    egress.wait(lambda: egress.sink().get("messages") == sent)
    assert "R614" in {finding["code"] for finding in egress.status()["diagnostics"]}
    egress.wait(lambda: read_position(egress.root / "outbox", 3).messages == sent)
    egress.kill()
    egress.start()
    egress.publish(*numbers(sent, sent + 1))
    egress.wait(lambda: receiver.bytes().endswith(numbers(sent, sent + 1)[0]))
    assert receiver.bytes() == b"".join(numbers(0, sent + 1))


def test_values_are_delivered_in_order_and_files_removed(egress: Egress, receiver: Receiver) -> None:
    expected = b""
    for batch in range(10):
        values = [*numbers(batch * 1000, batch * 1000 + 1000), b"", b""]
        egress.publish(*values, frames=1)
        expected += b"".join(values)
    egress.wait(lambda: receiver.bytes() == expected)
    egress.wait(lambda: egress.sink()["pending_bytes"] == 0 and not egress.files())
    assert egress.sink()["messages"] == 10_020
    assert egress.sink()["pending_messages"] == 0
    assert egress.sink()["state"] == "connected"
    egress.publish(b"last")
    assert egress.stop() == 0  # what is published before SIGTERM is delivered before the end
    receiver.join(0.2)
    assert receiver.bytes() == expected + b"last"
    assert len(receiver.connections) == 1
    assert (egress.status()["state"], egress.sink()["state"]) == ("stopped", "stopped")
    assert egress.files() == []


def test_a_restarted_egress_repeats_nothing(egress: Egress, receiver: Receiver) -> None:
    egress.publish(*numbers(0, 100))
    egress.wait(lambda: len(receiver.bytes()) == 800)
    egress.stop()
    egress.publish(*numbers(100, 200))
    egress.start()
    egress.wait(lambda: len(receiver.bytes()) >= 1600)
    egress.stop()
    assert receiver.bytes() == b"".join(numbers(0, 200))


def test_after_kills_nothing_is_lost_and_each_connection_begins_at_a_message(
    egress: Egress, receiver: Receiver
) -> None:
    random.seed(5)
    total = 0
    for _ in range(5):
        for _ in range(4):
            egress.publish(*numbers(total, total + 30_000), frames=1)
            total += 30_000
        size = len(receiver.bytes())
        egress.wait(lambda size=size: len(receiver.bytes()) > size + random.randrange(500_000))
        egress.kill()
        egress.start()
    egress.wait(lambda: receiver.bytes().endswith(b"%07d\n" % (total - 1)))
    reached = 0
    for data in receiver.connections:
        if not data:
            continue
        whole = [int(data[at : at + 7]) for at in range(0, len(data) - 7, 8)]
        assert whole == list(range(whole[0], whole[0] + len(whole)))
        assert whole[0] <= reached, "lost"
        reached = whole[-1] + 1
    assert reached == total
    assert len(receiver.connections) >= 5


def test_an_outage_is_said_once_and_ends_by_itself(egress: Egress, receiver: Receiver) -> None:
    egress.publish(*numbers(0, 10))
    egress.wait(lambda: len(receiver.bytes()) == 80)
    receiver.stop()
    egress.publish(*numbers(10, 20))
    egress.wait(lambda: egress.sink().get("state") == "unreachable")
    egress.publish(*numbers(20, 30))
    egress.wait(lambda: egress.sink()["pending_messages"] == 20)
    again = Receiver(receiver.port)
    egress.wait(lambda: again.bytes() == b"".join(numbers(10, 30)))
    egress.stop()
    again.stop()
    assert egress.log() == (
        f'R613 sink "sink 0" cannot be reached at 127.0.0.1:{receiver.port}; Connection refused; '
        "output is kept and sent later\n"
        f"  fix: provide the receiver of the output: `wallaroo receive --listen 127.0.0.1:{receiver.port}`, "
        "or a program of yours\n"
    )


def test_a_sink_that_is_away_holds_up_neither_the_others_nor_the_end(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        closed = probe.getsockname()[1]
    receiver = Receiver()
    egress = Egress(tmp_path, closed, receiver.port).start()
    try:
        egress.publish(b"never", port=3)
        egress.publish(b"here", port=4)
        egress.wait(lambda: receiver.bytes() == b"here")
        begin = time.monotonic()
        assert egress.stop() == 0
        assert time.monotonic() - begin < 20
        assert egress.files() == ["q-0-0-3.frames"]
    finally:
        egress.kill()
        receiver.stop()


def test_a_peer_that_closes_its_own_side_still_gets_everything(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        egress = Egress(tmp_path, listener.getsockname()[1]).start()
        try:
            with listener.accept()[0] as peer:
                peer.shutdown(socket.SHUT_WR)
                egress.wait(lambda: egress.sink().get("state") == "half_closed")
                egress.publish(b"hello")
                peer.settimeout(DEADLINE_S)
                assert peer.recv(5, socket.MSG_WAITALL) == b"hello"
                egress.child.send_signal(signal.SIGTERM)
                assert peer.recv(1) == b""
                assert egress.child.wait(DEADLINE_S) == 0
        finally:
            egress.kill()


def test_a_damaged_file_stops_it(egress: Egress, receiver: Receiver) -> None:
    egress.publish(b"good")
    egress.wait(lambda: receiver.bytes() == b"good")
    writer = StagingWriter(egress.root / "staging", "q", 1, 0, 1)
    writer.write(3, encode_frame([b"bad"], port=3))
    files = writer.finish()
    data = bytearray(Path(files[0].path).read_bytes())
    data[-1] ^= 1
    Path(files[0].path).write_bytes(data)
    egress.outbox.publish("q", 1, files)
    assert egress.child.wait(DEADLINE_S) == 1
    assert egress.status()["state"] == "failed"
    assert "R698 outbox" in egress.log()
    assert "q-1-0-3.frames at 0: checksum is" in egress.log()


def test_it_costs_little_when_idle(egress: Egress) -> None:
    egress.wait(lambda: egress.sink().get("state") == "connected")

    def cpu() -> int:
        fields = Path(f"/proc/{egress.child.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    before = cpu()
    time.sleep(1)  # the time over which its use of the CPU is measured
    assert cpu() - before <= 4  # hundredths of a second
