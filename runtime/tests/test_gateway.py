"""The gateway as a process, over real sockets."""

import os
import resource
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.gateway_process import DEADLINE_S, MAX_MESSAGE_BYTES, Process, finish, is_reset, message
from wallaroo_runtime.gateway.intake import Intake
from wallaroo_runtime.gateway.source_progress import SourceProgress
from wallaroo_runtime.storage.journal.head import read_committed
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.writer import JournalWriter

pytestmark = pytest.mark.slow


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Process]:
    process = Process(tmp_path)
    yield process.start()
    if process.child.poll() is None:
        process.kill()


def test_pieces_blocks_and_sizes_on_two_connections_at_once(gateway: Process) -> None:
    elegant = b"My solitude is cheered by that elegant hope."
    huge = os.urandom(5 * 1024 * 1024)
    gateway.send(b"")

    def pieces() -> None:
        with gateway.connect() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in message(elegant) + message(b"") + message(b"end"):
                connection.sendall(bytes((byte,)))
            finish(connection)

    blocks = b"".join(message(b"%d" % number) for number in range(10_000))
    actions = [
        threading.Thread(target=action)
        for action in (pieces, lambda: gateway.send(blocks, 1), lambda: gateway.send(message(huge) + message(b"x"), 1))
    ]
    for thread in actions:
        thread.start()
    for thread in actions:
        thread.join(DEADLINE_S)
    assert gateway.payloads(0) == [elegant, b"", b"end"]
    second = gateway.payloads(1)
    assert [payload for payload in second if len(payload) < 9 and payload != b"x"] == [
        b"%d" % number for number in range(10_000)
    ]
    assert second.index(huge) + 1 == second.index(b"x") or second.index(huge) < second.index(b"x")
    assert gateway.stop() == 0
    assert gateway.status()["state"] == "stopped"
    assert gateway.status()["messages"] == 10_005


def test_eof_means_that_readers_have_it(gateway: Process) -> None:
    for number in range(20):
        gateway.send(message(b"%d" % number))
        assert JournalReader(gateway.directory / "journal").end().messages == number + 1


def test_order_of_arrival_holds_across_sources(gateway: Process) -> None:
    with gateway.connect(0) as first, gateway.connect(1) as second:
        for number in range(30):
            (first, second)[number % 2].sendall(message(b"%d" % number))
            gateway.wait(lambda number=number: JournalReader(gateway.directory / "journal").end().messages > number)
        finish(first)
        finish(second)
    assert gateway.journal() == [(number % 2, b"%d" % number) for number in range(30)]


def test_a_header_that_announces_too_much_ends_only_its_connection(gateway: Process) -> None:
    with gateway.connect() as good, gateway.connect() as bad:
        good.sendall(message(b"one")[:5])
        bad.sendall(message(b"kept") + struct.pack(">I", MAX_MESSAGE_BYTES + 1) + b"xyz")
        peer = "{}:{}".format(*bad.getsockname())
        assert is_reset(bad)
        good.sendall(message(b"one")[5:])
        finish(good)
    assert sorted(gateway.payloads()) == [b"kept", b"one"]
    gateway.stop()
    assert gateway.log() == (
        f'R606 source "source 0", connection {peer}: a message has more than max_message_bytes, '
        f"{MAX_MESSAGE_BYTES}; a header announces {MAX_MESSAGE_BYTES + 1} bytes; the connection was closed\n"
        "  fix: correct the sender's framing (a line needs a line break), or send it in parts; only a topology that "
        "no program emits can raise max_message_bytes\n"
    )
    assert [finding["code"] for finding in gateway.status()["diagnostics"]] == ["R606"]


def test_a_connection_that_is_closed_in_the_middle_of_a_message(gateway: Process) -> None:
    with gateway.connect() as bad:
        bad.sendall(message(b"kept") + message(b"0123456789")[:9])
        peer = "{}:{}".format(*bad.getsockname())
        bad.shutdown(socket.SHUT_WR)
        assert is_reset(bad)  # EOF would say that everything was taken
    with gateway.connect() as bad:
        bad.sendall(b"\0\0")
        bad.shutdown(socket.SHUT_WR)
        assert is_reset(bad)
    gateway.send(message(b"later"))
    assert gateway.payloads() == [b"kept", b"later"]
    gateway.stop()
    assert gateway.log().startswith(
        f'R607 source "source 0", connection {peer}: only 9 bytes of a message of 14 bytes arrived; the sender closed '
        "the connection; the message was not accepted\n  fix: send it again whole, without long pauses"
    )
    assert "only 2 bytes of a message of unknown size arrived" in gateway.log()


def test_a_port_that_is_in_use(gateway: Process, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    second = Process(tmp_path / "other")
    second.sources = gateway.sources
    second.start()
    assert second.child.wait(DEADLINE_S) == 1
    status = second.status()
    assert status["state"] == "failed"
    address = f"127.0.0.1:{gateway.sources[0]}"
    assert status["diagnostics"] == [
        {
            "code": "R714",
            "message": f'source "source 0" cannot listen at {address}; Address already in use',
            "fix": "stop the program that uses the address, or give another HOST:PORT of this machine (`ip addr`) "
            "with --in; ports below 1024 are for root",
        }
    ]


def test_after_a_kill_everything_acknowledged_is_there_and_it_goes_on(gateway: Process) -> None:
    acknowledged = 0
    for round_number in range(3):
        noise = gateway.connect(1)
        noise.sendall(message(b"noise" * 100) * 1000 + b"\0\0\1")
        for number in range(10):
            gateway.send(message(b"%d-%d" % (round_number, number)))
            acknowledged += 1
        gateway.kill()
        noise.close()
        gateway.start()
    assert gateway.payloads(0) == [b"%d-%d" % (r, n) for r in range(3) for n in range(10)]
    assert set(gateway.payloads(1)) <= {b"noise" * 100}
    gateway.send(message(b"last"))
    assert gateway.payloads(0)[-1] == b"last"


def test_a_full_backlog_stops_reading_and_loses_nothing(tmp_path: Path) -> None:
    gateway = Process(tmp_path, backlog_bytes=2_000_000, segment_bytes=500_000).start()
    block = message(b"x" * 9996) * 100
    reader = JournalReader(tmp_path / "journal")
    try:
        sender = threading.Thread(target=gateway.send, args=(block * 20,))
        sender.start()
        gateway.wait(lambda: gateway.status()["reads"] is False and reader.end().offset >= 2_000_000)
        assert reader.end().offset < 8_000_000
        while sender.is_alive():
            end = reader.end().offset
            assert end - read_committed(tmp_path / "journal") < 8_000_000
            reader.commit(end)
            sender.join(0.02)
        assert reader.end().messages == 2000
        gateway.wait(lambda: len(list((tmp_path / "journal").glob("*.journal"))) < 20)
        assert gateway.stop() == 0
    finally:
        gateway.kill()


@pytest.mark.parametrize("fsync", ["batch", "interval", "never"])
def test_a_full_disk_pauses_until_there_is_room(tmp_path: Path, fsync: str) -> None:
    gateway = Process(tmp_path, fsync=fsync).start()
    try:
        # A limit of the file size gives the same kind of error as a full disk, and can be lifted from here.
        resource.prlimit(gateway.child.pid, resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
        expected = [b"%06d" % number * 5000 for number in range(30)]
        sender = threading.Thread(target=lambda: [gateway.send(message(payload)) for payload in expected])
        sender.start()
        gateway.wait(lambda: "R614" in gateway.log())
        assert sender.is_alive()
        resource.prlimit(gateway.child.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        sender.join(DEADLINE_S)
        assert gateway.payloads() == expected
        assert gateway.stop() == 0
        assert gateway.log() == (
            f"R614 no room on the disk of {tmp_path / 'journal'}; reading of sources is paused\n"
            "  fix: free some space; it goes on by itself\n"
        )
    finally:
        gateway.kill()


def test_idle_connections_cost_nothing_and_too_many_wait(tmp_path: Path) -> None:
    gateway = Process(tmp_path, max_connections=150, look_s=1.0).start()
    connections = [gateway.connect() for _ in range(150)]
    try:
        gateway.wait(lambda: gateway.status()["connections"] == 150)
        connections.append(waiting := gateway.connect())
        waiting.sendall(message(b"patient"))
        before = cpu_s(gateway.child.pid)
        time.sleep(1)  # the time over which its use of the CPU is measured
        assert cpu_s(gateway.child.pid) - before < 0.05
        assert gateway.status()["connections"] == 150
        gateway.wait(lambda: gateway.log().startswith("R699 150 connections of sources are open; further ones wait"))
        connections.pop(0).close()
        finish(waiting)
        assert gateway.payloads() == [b"patient"]
    finally:
        for connection in connections:
            connection.close()
        gateway.kill()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_messages_in_parts_are_bounded_in_their_sum_and_still_get_whole(tmp_path: Path) -> None:
    gateway = Process(tmp_path, buffer_bytes=3_000_000).start()
    data = [message(bytes((number,)) * 2_000_000) for number in range(4)]
    threads = [threading.Thread(target=gateway.send, args=(each,)) for each in data]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        assert sorted(gateway.payloads()) == [each[4:] for each in data]
    finally:
        gateway.kill()


def test_sigterm_keeps_what_is_complete_and_acknowledges_nobody_who_may_still_send(gateway: Process) -> None:
    with gateway.connect() as connection:
        connection.sendall(message(b"a") * 1000)
        gateway.wait(lambda: JournalReader(gateway.directory / "journal").end().messages == 1000)
        gateway.child.send_signal(signal.SIGTERM)
        assert gateway.child.wait(DEADLINE_S) == 0
        assert is_reset(connection)
    assert len(gateway.payloads()) == 1000


def test_a_killed_gateway_sends_no_eof(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    process = Process(tmp_path, fsync_interval_ms=3_600_000).start()
    request.addfinalizer(process.kill)
    process.send(message(b"safe: the first sync comes at once"))
    with process.connect() as connection:
        connection.sendall(message(b"read, but not safe for an hour"))
        connection.shutdown(socket.SHUT_WR)
        process.wait(lambda: process.status()["messages"] == 2)
        process.kill()
        assert is_reset(connection)  # EOF would say that everything is safe
    assert process.payloads() == [b"safe: the first sync comes at once"]


def test_the_first_sync_comes_at_once_on_a_machine_that_has_just_started(tmp_path: Path) -> None:
    synced = threading.Event()
    writer = JournalWriter(tmp_path, 1 << 20)
    intake = Intake(writer, "interval", 3600.0, 1 << 20, SourceProgress(tmp_path, [], []), synced.set)
    intake.take(0, 1, message(b"first"))
    assert intake.timeout(1.0) == 0.0  # the clock counts from the machine's start
    intake.turn(1.0)
    assert synced.wait(DEADLINE_S)
    assert intake.is_safe(1)
    intake.close()
