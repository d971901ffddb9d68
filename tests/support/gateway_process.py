"""A gateway as a process of its own, its messages, and how its connections end."""

import json
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.part import PART, configured
from wallaroo.message.frame import read_frame, split_frames
from wallaroo_runtime.gateway.framing import fixed_cutter
from wallaroo_runtime.storage.journal.reader import JournalReader

DEADLINE_S = 90.0


MAX_MESSAGE_BYTES = 8 * 1024 * 1024


def message(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


class Process:
    """A gateway with two sources."""

    def __init__(self, directory: Path, **config: Any) -> None:
        self.directory, self.config = directory, config
        self.sources: list[int] = []

    def start(self) -> "Process":
        status = self.directory / "gateway.json"
        status.unlink(missing_ok=True)
        sources = [
            {
                "port": number,
                "path": f"{number}/sources/0",
                "name": f"source {number}",
                "host": "127.0.0.1",
                "tcp_port": self.sources[number] if self.sources else 0,
                "framing": "u32be",
                "max_message_bytes": MAX_MESSAGE_BYTES,
            }
            for number in range(2)
        ]
        path = configured(self.directory, {"sources": sources, **self.config})
        with (self.directory / "log").open("ab") as log:
            self.child = subprocess.Popen([sys.executable, PART, "gateway", path], stderr=log)
        self.wait(lambda: self.status().get("state") in ("listening", "failed") or self.child.poll() is not None)
        self.sources = [source["tcp_port"] for source in self.status().get("sources", [])]
        return self

    def status(self) -> dict[str, Any]:
        try:
            value: dict[str, Any] = json.loads((self.directory / "gateway.json").read_bytes())
        except FileNotFoundError:
            return {}
        return value

    def wait(self, holds: Callable[[], object], seconds: float = DEADLINE_S) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"waited {seconds} s; {self.status()}; {self.log()}"
            time.sleep(0.01)

    def log(self) -> str:
        return (self.directory / "log").read_text()

    def connect(self, source: int = 0) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.sources[source]), timeout=DEADLINE_S)

    def send(self, data: bytes, source: int = 0) -> None:
        """Send, half-close, and wait for the acknowledgement."""
        with self.connect(source) as connection:
            connection.sendall(data)
            finish(connection)

    def stop(self) -> int:
        self.child.terminate()
        return self.child.wait(DEADLINE_S)

    def kill(self) -> None:
        self.child.kill()
        self.child.wait(DEADLINE_S)

    def journal(self) -> list[tuple[int, bytes]]:
        """Return port and payload of each message in the journal."""
        reader = JournalReader(self.directory / "journal")
        end = reader.end()
        found: list[tuple[int, bytes]] = []
        for piece in reader.read(0, end.offset):
            for header, at, _ in split_frames(piece):
                assert header.sequence == len(found)
                assert header.timestamp_ms > 1_600_000_000_000
                found += [(header.port, payload) for payload in payloads(read_frame(piece, at).data, header.count)]
        assert end.messages == len(found)
        return found

    def payloads(self, port: int = 0) -> list[bytes]:
        return [payload for source, payload in self.journal() if source == port]


def payloads(data: bytes, count: int) -> list[bytes]:
    cut = fixed_cutter("u32be", MAX_MESSAGE_BYTES)(data, len(data))
    assert (cut.count, cut.end) == (count, len(data))
    found, at = [], 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        found.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return found


def finish(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b""


def is_reset(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) != b""
    except ConnectionResetError:
        return True
