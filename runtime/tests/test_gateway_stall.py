"""Peers that stop in the middle of large messages: others get their turn, and the operator is notified."""

import contextlib
import re
import signal
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.gateway_process import MAX_MESSAGE_BYTES, Process, message
from wallaroo_runtime.gateway.message_pace import LEAST_BYTES_PER_S, Pace

STALL_S = 6.0
STEPS = st.lists(
    st.tuples(st.sampled_from(["came", "pause", "go_on"]), st.integers(0, 200), st.integers(0, 30)), max_size=30
)


@pytest.fixture
def connected() -> Iterator[Callable[..., socket.socket]]:
    """Give a function that connects to a source of a gateway and sends something; the gateway ends with the test."""
    with ExitStack() as stack:

        def connect(gateway: Process, source: int, data: bytes) -> socket.socket:
            connection = stack.enter_context(gateway.connect(source))
            connection.sendall(data)
            stack.callback(gateway.stop)
            return connection

        yield connect


@pytest.mark.slow
def test_stalled_senders_starve_nobody(tmp_path: Path, connected: Callable[..., socket.socket]) -> None:
    gateway = Process(tmp_path, buffer_bytes=3_000_000, stall_s=STALL_S).start()
    header = struct.pack(">I", MAX_MESSAGE_BYTES)
    stalled = [connected(gateway, 1, header + bytes(1_000_000)) for _ in range(4)]
    small = connected(gateway, 1, header + b"x")
    honest = b"h" * MAX_MESSAGE_BYTES
    gateway.send(message(honest))
    assert gateway.journal() == [(0, honest)]
    gateway.wait(lambda: len(gateway.status()["diagnostics"]) == len(stalled))
    found = gateway.status()["diagnostics"]
    assert {finding["code"] for finding in found} == {"R607"}
    peers = ["{}:{}".format(*connection.getsockname()) for connection in stalled]
    (said,) = [finding["message"] for finding in found if peers[0] in finding["message"]]
    came = rf"only \d+ bytes of a message of {MAX_MESSAGE_BYTES + 4} bytes arrived"
    assert re.match(f'source "source 1", connection {peers[0]}: {came}', said)
    with pytest.raises(ConnectionResetError):
        stalled[0].recv(1)
    small.settimeout(0.1)
    with pytest.raises(TimeoutError):  # who holds nothing may wait as long as it likes
        small.recv(1)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1_000_000, 1_200_000, 2_500_000])
def test_half_messages_that_came_at_once_do_not_wait_for_each_other(
    tmp_path: Path, connected: Callable[..., socket.socket], size: int
) -> None:
    gateway = Process(tmp_path, buffer_bytes=3_000_000, stall_s=1.0).start()
    header = struct.pack(">I", MAX_MESSAGE_BYTES)
    gateway.child.send_signal(signal.SIGSTOP)  # then each has more to read at once than there is room for
    peers = [connected(gateway, 0, header) for _ in range(5)]
    honest = connected(gateway, 1, b"")
    senders = [Thread(target=_send, args=(peer, bytes(size))) for peer in peers]
    senders.append(Thread(target=_send, args=(honest, message(b"h" * MAX_MESSAGE_BYTES))))
    for sender in senders:
        sender.start()
    gateway.child.send_signal(signal.SIGCONT)
    gateway.wait(gateway.journal)
    for sender in senders:
        sender.join()
    assert gateway.journal() == [(1, b"h" * MAX_MESSAGE_BYTES)]


def _send(connection: socket.socket, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        connection.sendall(data)


@pytest.mark.slow
def test_a_slow_sender_has_all_the_time_that_it_needs(tmp_path: Path, connected: Callable[..., socket.socket]) -> None:
    gateway = Process(tmp_path, stall_s=2.0).start()
    connected(gateway, 1, struct.pack(">I", MAX_MESSAGE_BYTES) + bytes(100_000))
    slow = connected(gateway, 0, struct.pack(">I", 600_000))
    for _ in range(6):
        slow.sendall(b"s" * 100_000)  # faster than it must be
        time.sleep(0.7)
    gateway.wait(lambda: gateway.status()["diagnostics"])
    slow.shutdown(socket.SHUT_WR)
    assert slow.recv(1) == b""
    assert gateway.journal() == [(0, b"s" * 600_000)]
    assert [finding["code"] for finding in gateway.status()["diagnostics"]] == ["R607"]


@given(STEPS)
def test_pace_is_the_time_that_a_bucket_of_the_least_rate_is_empty(steps: list[tuple[str, int, int]]) -> None:
    pace, now, late, is_paused = Pace(), 100.0, 0.0, False
    pace.begin(now)
    for step, kib, seconds in steps:
        now += seconds
        late += 0 if is_paused else seconds
        if step == "came" and not is_paused:
            pace.came(kib * 1024, now)
            late = max(0.0, late - kib * 1024 / LEAST_BYTES_PER_S)
        elif step == "pause":
            pace.pause(now)
            is_paused = True
        elif step == "go_on":
            pace.go_on(now)
            is_paused = False
        assert pace.behind_s(now) == pytest.approx(0.0 if is_paused else late, abs=1e-6)
