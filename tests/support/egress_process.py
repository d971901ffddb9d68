"""An egress as a process of its own, and what it sends."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.part import PART, configured
from wallaroo.message.frame import encode_frame
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.staging import StagingWriter

DEADLINE_S = 60.0


class Egress:
    """An egress over an outbox; its sinks have ports 3, 4, ..."""

    def __init__(self, root: Path, *tcp_ports: int) -> None:
        self.root = root
        self.outbox = Outbox(root / "outbox", root / "dead-letters", root / "staging", compact_bytes=2000)
        self.batch = 0
        sinks = [
            {"port": 3 + index, "name": f"sink {index}", "host": "127.0.0.1", "tcp_port": port}
            for index, port in enumerate(tcp_ports)
        ]
        self.config: dict[str, Any] = {"sinks": sinks}

    def start(self) -> "Egress":
        path = configured(self.root, self.config)
        (self.root / "egress.json").unlink(missing_ok=True)
        with (self.root / "log").open("ab") as log:
            self.child = subprocess.Popen([sys.executable, PART, "egress", path], stderr=log)
        return self

    def publish(self, *values: bytes, port: int = 3, frames: int = 1) -> None:
        writer = StagingWriter(self.root / "staging", "q", self.batch, 0, self.batch)
        for number in range(frames):
            writer.write(port, encode_frame(values[number::frames], port=port))
        self.outbox.publish("q", self.batch, writer.finish())
        self.batch += 1

    def status(self) -> dict[str, Any]:
        try:
            value: dict[str, Any] = json.loads((self.root / "egress.json").read_bytes())
        except FileNotFoundError:
            return {"sinks": []}
        return value

    def sink(self, index: int = 0) -> dict[str, Any]:
        return {"state": ""} | (self.status().get("sinks") or [{}] * 9)[index]

    def wait(self, holds: Callable[[], object], seconds: float = DEADLINE_S) -> None:
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, f"waited {seconds} s; {self.status()}; {self.log()}"
            time.sleep(0.005)

    def log(self) -> str:
        return (self.root / "log").read_text()

    def stop(self) -> int:
        self.child.terminate()
        return self.child.wait(DEADLINE_S)

    def kill(self) -> None:
        self.child.kill()
        self.child.wait(DEADLINE_S)

    def files(self) -> list[str]:
        return [path.name for path in (self.root / "outbox").glob("*.frames")]


def numbers(start: int, end: int) -> list[bytes]:
    return [b"%07d\n" % number for number in range(start, end)]
