"""An application that runs in memory, over real sockets."""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wallaroo_runtime.cli.main import main

SECONDS = 60.0


PROGRAM = """import wallaroo

class Decoder:
    def header_length(self):
        return 3

    def payload_length(self, header):
        return int(header)

    def decode(self, payload):
        return payload.decode()

@wallaroo.computation("number")
def number(text):
    return int(text) + 1

@wallaroo.encoder
def encode(number):
    return b"%d," % number

def application_setup(args):
    (in_host, in_port), *_ = wallaroo.tcp_parse_input_addrs(args)
    (out_host, out_port), *_ = wallaroo.tcp_parse_output_addrs(args)
    source = wallaroo.TCPSourceConfig(in_host, in_port, Decoder())
    sink = wallaroo.TCPSinkConfig(out_host, out_port, encode)
    return wallaroo.build_application("Numbers", wallaroo.source("numbers", source).to(number).to_sink(sink))
"""


class Receiver:
    """Takes what the application sends to one sink."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(SECONDS)
        self.data = b""
        self._thread = threading.Thread(target=self._take)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.listener.getsockname()[1]}"

    def _take(self) -> None:
        try:
            accepted, _ = self.listener.accept()
        except OSError:  # closed: nobody came
            return
        with accepted:
            while data := accepted.recv(65536):
                self.data += data

    def wait_for(self, data: bytes) -> None:
        deadline = time.monotonic() + SECONDS
        while data not in self.data:
            assert time.monotonic() < deadline, self.data
            time.sleep(0.01)

    def close(self) -> bytes:
        self._thread.join(SECONDS)
        self.listener.close()
        return self.data


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    with contextlib.suppress(OSError):  # it is closed
        found.listener.shutdown(socket.SHUT_RDWR)
    found.close()


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def connected(address: str) -> socket.socket:
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=SECONDS)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, "nobody listens"
            time.sleep(0.01)


def ran(app: Path, receiver: Receiver, *options: str, client: Callable[[str], None] | None = None) -> int:
    """Run an application until it is idle, with a client in a thread."""
    address = free_address()
    thread = threading.Thread(target=client or (lambda address: None), args=(address,))
    thread.start()
    idle = ("--stop-when-idle", "0.5")
    status = main(["run", str(app), "--engine", "memory", "--in", address, "--out", receiver.address, *idle, *options])
    thread.join(SECONDS)
    return status


@pytest.fixture
def app(tmp_path: Path) -> Path:
    file = tmp_path / "numbers_app.py"
    file.write_text(PROGRAM)
    return file
