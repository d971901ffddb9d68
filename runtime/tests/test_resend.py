"""What a sink that connects again gets once more: `resend_bytes`."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.part import PART, configured
from wallaroo.frame import encode_frame
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.position import read_position, read_retained
from wallaroo_runtime.storage.outbox.staging import StagingWriter

pytestmark = pytest.mark.slow
DEADLINE_S = 90.0
RESEND_BYTES, WIDTH = 400_000, 8
# Listens, keeps what it reads in a file, and stops to read after so many bytes (0: never).
RECEIVER = """
import socket, sys, time
port, path, most = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
listener.bind(("127.0.0.1", port))
listener.listen()
connection = listener.accept()[0]
with open(path, "wb", buffering=0) as file:
    while not most or file.tell() < most:
        block = connection.recv(min(65536, most - file.tell()) if most else 65536)
        if not block:
            sys.exit()
        file.write(block)
    time.sleep(3600)
"""


def numbers(start: int, end: int) -> bytes:
    return b"".join(b"%07d\n" % number for number in range(start, end))


def wait(holds: Callable[[], object], what: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, f"waited {DEADLINE_S} s; {what()}"
        time.sleep(0.01)


def size_of(path: Path) -> int:
    """Return a file's size; 0 when the egress has removed it meanwhile."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


class Place:
    """An outbox, its egress, and receivers that come and go."""

    def __init__(self, root: Path) -> None:
        self.root, self.batch = root, 0
        self.outbox = Outbox(root / "outbox", root / "dead-letters", root / "staging", fsync=False, compact_bytes=200)
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.processes: list[subprocess.Popen[bytes]] = []

    def publish(self, start: int, end: int) -> None:
        writer = StagingWriter(self.root / "staging", "q", self.batch, 0, 0, self.batch, fsync=False)
        for at in range(start, end, 1000):
            writer.write(3, encode_frame(numbers(at, min(end, at + 1000)).splitlines(keepends=True), port=3))
        self.outbox.publish("q", self.batch, writer.finish())
        self.batch += 1

    def start(self, *command: str) -> "subprocess.Popen[bytes]":
        with (self.root / "log").open("ab") as log:
            self.processes.append(subprocess.Popen([sys.executable, *command], stderr=log))
        return self.processes[-1]

    def egress(self) -> "subprocess.Popen[bytes]":
        sinks = [{"port": 3, "name": "sink", "host": "127.0.0.1", "tcp_port": self.port}]
        return self.start(PART, "egress", configured(self.root, {"sinks": sinks, "resend_bytes": RESEND_BYTES}))

    def receiver(self, name: str, most: int = 0) -> "subprocess.Popen[bytes]":
        return self.start("-c", RECEIVER, str(self.port), str(self.root / name), str(most))

    def got(self, name: str) -> bytes:
        path = self.root / name
        return path.read_bytes() if path.exists() else b""

    def sink(self) -> dict[str, Any]:
        status = self.root / "egress.json"
        found: list[dict[str, Any]] = json.loads(status.read_bytes())["sinks"] if status.exists() else [{}]
        return found[0]

    def kept(self) -> int:
        """Return how many bytes the outbox has in files."""
        return sum(size_of(path) for path in self.outbox.directory.glob("*.frames"))

    def settled(self) -> int:
        """Return how far the sink's TCP has acknowledged, once that has not changed for half a second."""
        last, since = -1, time.monotonic()
        deadline = since + DEADLINE_S
        while time.monotonic() < since + 0.5:
            assert time.monotonic() < deadline
            time.sleep(0.02)
            if (now := int(self.sink().get("bytes", 0))) != last:
                last, since = now, time.monotonic()
        return last

    def close(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait(DEADLINE_S)


def test_a_killed_receiver_loses_nothing_and_what_repeats_is_bounded(tmp_path: Path) -> None:
    place, total = Place(tmp_path), 150_000
    expected = numbers(0, total)
    try:
        for start in range(0, total, 10_000):
            place.publish(start, start + 10_000)
        egress, first = place.egress(), place.receiver("first", most=500_004)
        wait(lambda: len(place.got("first")) == 500_004, place.sink)
        acknowledged = place.settled()
        assert len(place.got("first")) < acknowledged < len(expected), "the kernel holds what nobody reads"
        first.send_signal(signal.SIGKILL)
        first.wait(DEADLINE_S)
        place.receiver("second", most=RESEND_BYTES + 200_000)
        wait(lambda: len(place.got("second")) == RESEND_BYTES + 200_000, place.sink)
        begin = (acknowledged - RESEND_BYTES) // WIDTH * WIDTH
        assert place.got("second") == expected[begin : begin + RESEND_BYTES + 200_000]
        assert begin <= len(place.got("first")), "lost"
        assert int(place.sink()["bytes"]) >= acknowledged, "what is sent once more does not count again"
        # The egress dies, too; its successor knows what must be repeated.
        place.settled()
        egress.send_signal(signal.SIGKILL)
        egress.wait(DEADLINE_S)
        acknowledged = read_position(place.outbox.directory, 3).total_bytes
        place.processes[2].kill()
        place.processes[2].wait(DEADLINE_S)
        egress = place.egress()
        place.receiver("third")
        begin = (acknowledged - RESEND_BYTES) // WIDTH * WIDTH
        wait(lambda: len(place.got("third")) == len(expected) - begin, place.sink)
        assert place.got("third") == expected[begin:]
        wait(lambda: place.sink()["pending_bytes"] == 0 and place.sink()["messages"] == total, place.sink)
        wait(lambda: place.kept() < 2 * RESEND_BYTES, place.kept)  # files go within a second
        assert place.kept() >= RESEND_BYTES
        assert place.outbox.size() == 0, "what is kept to be repeated does not count as waiting"
        retained = read_retained(place.outbox.directory, 3)
        assert retained is not None
        assert len(expected) - retained.total_bytes >= RESEND_BYTES
        egress.terminate()
        assert egress.wait(DEADLINE_S) == 0
    finally:
        place.close()
