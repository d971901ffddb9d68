"""Ticks: the gateway writes them between messages, while a driver lives, for applications with windows alone."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from support.gateway import in_thread
from support.part import journal_request
from wallaroo.message.frame import TICK_PORT, FrameHeader, split_frames
from wallaroo_runtime.gateway.clock import Clock
from wallaroo_runtime.gateway.gateway import Gateway
from wallaroo_runtime.gateway.service import worker_maker, worker_splitter
from wallaroo_runtime.storage.journal.head import write_committed
from wallaroo_runtime.storage.journal.reader import JournalReader

DEADLINE_S = 90.0
Wait = Callable[..., None]


@contextmanager
def running(directory: Path, has_driver: Callable[[], bool] = lambda: True, **config: Any) -> Iterator[Gateway]:
    source = {"path": "0/sources/0", "name": "texts", "host": "127.0.0.1", "framing": "u32be", "max_message_bytes": 50}
    request = journal_request(sources=[source], **config)
    gateway = Gateway(directory, request, worker_splitter, worker_maker, has_driver=has_driver)
    with in_thread(gateway):
        yield gateway


STEP_MS = st.integers(-(10**9), 10**9)


@given(st.lists(st.tuples(st.integers(0, 10**6), STEP_MS), max_size=20))
@example([(1000, -3_600_000), (1000, 0)])
def test_time_goes_on_while_the_clock_of_the_machine_jumps(steps: list[tuple[int, int]]) -> None:
    """`steps`: what passes, and by how much the clock is set meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        wall_ms, passed_ms = 10**12, 5
        patch.setattr("time.time_ns", lambda: wall_ms * 1_000_000)
        patch.setattr("time.monotonic_ns", lambda: passed_ms * 1_000_000)
        clock = Clock()
        before = clock.now_ms()
        assert before == wall_ms
        for milliseconds, jump in steps:
            passed_ms, wall_ms = passed_ms + milliseconds, wall_ms + milliseconds + jump
            now = clock.now_ms()
            assert now == max(wall_ms, before + milliseconds)
            before = now


def send(gateway: Gateway, *texts: bytes) -> None:
    """Send messages, half-close, and wait for the acknowledgement."""
    with socket.create_connection(gateway.addresses()[0], timeout=DEADLINE_S) as connection:
        connection.sendall(b"".join(struct.pack(">I", len(text)) + text for text in texts))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


def frames(directory: Path) -> list[FrameHeader]:
    reader = JournalReader(directory / "journal")
    return [header for piece in reader.read(0, reader.end().offset) for header, _, _ in split_frames(piece)]


def ticks(directory: Path) -> list[FrameHeader]:
    return [header for header in frames(directory) if header.port == TICK_PORT]


def ticks_after(directory: Path, messages: int) -> int:
    """Return how many ticks come after so many messages, if no more came."""
    found = frames(directory)
    sent = [at for at, header in enumerate(found, 1) if header.port != TICK_PORT]
    sequences = sum(header.count for header in found if header.port != TICK_PORT)
    return len(found) - max(sent, default=0) if sequences == messages else 0


def test_ticks_stand_between_messages_and_move_time(tmp_path: Path, wait_until: Wait) -> None:
    with running(tmp_path, tick_ms=20) as gateway:
        for sent in (0, 2, 4):
            wait_until(lambda sent=sent: ticks_after(tmp_path, sent) > 1, f"ticks after {sent}")
            send(gateway, b"a", b"b")
        wait_until(lambda: ticks_after(tmp_path, 6) > 1, "ticks at the end")
    found = frames(tmp_path)
    sequence = 0
    for header in found:
        assert header.sequence == sequence
        assert header.count == 1 or header.port == 0  # a tick has a sequence of its own
        sequence += header.count
    assert sequence == 6 + len(ticks(tmp_path))
    assert JournalReader(tmp_path / "journal").end().messages == 6
    times = [header.timestamp_ms for header in found]
    assert times == sorted(times)
    assert json.loads((tmp_path / "gateway.json").read_bytes())["messages"] == 6


def test_without_a_driver_there_are_no_ticks(tmp_path: Path, wait_until: Wait) -> None:
    has_come = threading.Event()
    with running(tmp_path, has_come.is_set, tick_ms=1) as gateway:
        send(gateway, b"a")
        # What arrives is safe 50 ms later: a tick that was due every millisecond would stand in the journal.
        assert not ticks(tmp_path)
        has_come.set()
        wait_until(lambda: ticks(tmp_path), "a tick for the driver that came")


def test_without_room_in_the_journal_there_are_no_ticks(tmp_path: Path, wait_until: Wait) -> None:
    with running(tmp_path, tick_ms=1, backlog_bytes=200):
        wait_until(lambda: JournalReader(tmp_path / "journal").end().offset >= 200, "a full journal")
        full = frames(tmp_path)
        write_committed(tmp_path / "journal", JournalReader(tmp_path / "journal").end().offset)
        wait_until(lambda: len(frames(tmp_path)) > len(full), "a tick after there was room again")
    assert 5 <= len(full) <= 6


def test_without_windows_there_are_no_ticks(tmp_path: Path) -> None:
    with running(tmp_path) as gateway:
        send(gateway, b"a")
        send(gateway, b"b")
    assert [header.port for header in frames(tmp_path)] == [0, 0]
