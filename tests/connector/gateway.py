"""The gateway as a process, with a source for connectors, and a connector that says what a test wants."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.part import PART, configured
from wallaroo.experimental import protocol
from wallaroo.message.frame import read_frame, split_frames
from wallaroo_runtime.storage.journal.reader import JournalReader

PORT = 4
DEADLINE_S = 90.0
CREDITS, REFILL = 8, 3
MOST = 200_000


class Gateway:
    """A gateway whose only source is for connectors."""

    def __init__(self, directory: Path, **config: Any) -> None:
        self.directory, self.config, self.tcp_port = directory, config, 0
        self.child: subprocess.Popen[bytes] | None = None

    def start(self) -> "Gateway":
        status = self.directory / "gateway.json"
        status.unlink(missing_ok=True)
        connector = {"cookie": "wörd", "max_credits": CREDITS, "refill_credits": REFILL}
        source = {
            "port": PORT, "path": "0/sources/0", "name": "feed", "host": "127.0.0.1", "tcp_port": self.tcp_port,
            "framing": "connector", "connector": connector, "max_message_bytes": MOST,
        }  # fmt: skip
        path = configured(self.directory, {"sources": [source], "fsync_interval_ms": 5} | self.config)
        with (self.directory / "log").open("ab") as log:
            self.child = subprocess.Popen([sys.executable, PART, "gateway", path], stderr=log)
        self.wait(lambda: self.status().get("state") in ("listening", "failed"), "the gateway to listen")
        self.tcp_port = self.status()["sources"][0]["tcp_port"]
        return self

    def wait(self, holds: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            assert time.monotonic() < deadline, f"waited for {what}; {self.status()}"
            time.sleep(0.01)

    def status(self) -> dict[str, Any]:
        try:
            value: dict[str, Any] = json.loads((self.directory / "gateway.json").read_bytes())
        except FileNotFoundError:
            return {}
        return value

    def end(self, number: int = signal.SIGKILL) -> None:
        if self.child is not None:
            self.child.send_signal(number)
            self.child.wait(DEADLINE_S)
            self.child = None

    def messages(self) -> list[tuple[bytes, bytes, int]]:
        reader = JournalReader(self.directory / "journal")
        found = []
        for data in reader.read(0, reader.end().offset):
            for header, at, _ in split_frames(data):
                assert (header.port, header.encoding) == (PORT, 0)
                frame = read_frame(data, at)
                keys = [frame.keys[index] for index in frame.key_indexes]
                found += list(zip(keys, frame.values(), frame.times(), strict=True))
        return found

    def payloads(self) -> list[bytes]:
        return [payload for _, payload, _ in self.messages()]

    def commit(self) -> None:
        reader = JournalReader(self.directory / "journal")
        reader.commit(reader.end().offset)

    def findings(self) -> list[str]:
        return [f"{finding['code']} {finding['message']}" for finding in self.status()["diagnostics"]]

    def wait_for_finding(self, text: str) -> None:
        self.wait(lambda: any(text in finding for finding in self.findings()), f"the finding {text!r}")


class Peer:
    """A connector that says what a test wants."""

    def __init__(self, gateway: Gateway) -> None:
        self.socket = socket.create_connection(("127.0.0.1", gateway.tcp_port), timeout=DEADLINE_S)
        self.received = bytearray()
        self.frames: list[protocol.ReceivedFrame] = []

    def send(self, *frames: bytes) -> None:
        self.socket.sendall(b"".join(frames))

    def read(self) -> protocol.ReceivedFrame:
        while not self.frames:
            data = self.socket.recv(65536)
            assert data, "the gateway closed the connection"
            self.received += data
            self.frames += protocol.cut(self.received)
        return self.frames.pop(0)

    def hello(self, instance: str = "one", cookie: str = "wörd", version: str = "0.0.1") -> protocol.ReceivedFrame:
        self.send(protocol.hello(version, cookie, "program", instance))
        return self.read()

    def notify(self, stream: int = 1, point: int = 0) -> protocol.ReceivedFrame:
        self.send(protocol.notify(stream, f"stream {stream}", point))
        return self.read()

    def write(self, *ids: int, stream: int = 1, key: bytes = b"", time_ns: int = 0) -> None:
        self.send(*(protocol.message(stream, number, time_ns, key, b"%d" % number) for number in ids))

    def is_closed(self) -> bool:
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
