"""`wallaroo send` and `wallaroo receive` as processes, against each other and against plain sockets."""

import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

DEADLINE_S = 20
MAIN = "import sys; from wallaroo_runtime.cli.main import main; sys.exit(main())"


def start(*arguments: str, **options: object) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", MAIN, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)  # type: ignore[call-overload, no-any-return]


class Source(threading.Thread):
    """Takes one connection to its end and then closes, as a gateway does."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.data = b""
        self.start()

    def run(self) -> None:
        connection = self.listener.accept()[0]
        with connection:
            while part := connection.recv(65536):
                self.data += part
        self.listener.close()


def send(*arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
    source = Source()
    process = start("send", "--host", source.address, *arguments, stdin=subprocess.PIPE)
    _, errors = process.communicate(stdin, timeout=DEADLINE_S)
    source.join(DEADLINE_S)
    return process.returncode, source.data, errors.decode()


def test_send_frames_each_line_blank_ones_included(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_bytes(b"My solitude is cheered by that elegant hope.\n\nlast\r\n")
    code, data, errors = send("--file", str(text))
    assert code == 0, errors
    assert data[:48] == b"\x00\x00\x00\x2cMy solitude is cheered by that elegant hope."
    assert data[48:] == struct.pack(">I", 0) + struct.pack(">I", 4) + b"last"
    assert errors.startswith("sent 3 messages, 60 bytes")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--framing", "newline"), b"a\n\nb\n"),
        (("--framing", "none"), b"a\n\nb"),
        (("--framing", "u16le", "--skip-blank"), b"\x01\x00a\x01\x00b"),
        (("--framing", "newline", "--messages", "4", "--repeat", "9"), b"a\n\nb\na\n"),
        (("--framing", "newline", "--rate", "1000"), b"a\n\nb\n"),
    ],
)
def test_send_options(options: tuple[str, ...], expected: bytes) -> None:
    code, data, errors = send("--file", "-", *options, stdin=b"a\n\nb")
    assert (code, data) == (0, expected), errors


def test_send_to_nobody_and_of_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    process = start("send", "--host", f"127.0.0.1:{port}", "--file", __file__)
    _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert errors.decode() == (
        f"R618 no connection to 127.0.0.1:{port}; Connection refused\n"
        "  fix: start the application first; it says when it is initialized\n"
    )
    process = start("send", "--host", f"127.0.0.1:{port}", "--file", "no/such")
    _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 2
    assert errors.decode() == "R616 no/such cannot be read; No such file or directory\n  fix: check the path\n"


def test_send_refuses_a_line_that_does_not_fit() -> None:
    code, _, errors = send("--file", "-", "--framing", "u8", stdin=b"x" * 256)
    assert code == 2
    assert "R608 a line of 256 bytes does not fit framing u8" in errors


def test_send_refuses_a_bad_address() -> None:
    process = start("send", "--host", "localhost", "--file", "-")
    _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 2
    assert errors.decode().startswith('T211 --host address "localhost" is not usable; it has no port')


def listening(process: subprocess.Popen[bytes]) -> tuple[str, int]:
    assert process.stderr is not None
    line = process.stderr.readline().decode()
    assert line.startswith("listening at "), line
    host, _, port = line.removeprefix("listening at ").strip().rpartition(":")
    return host, int(port)


def test_receive_writes_what_the_kernel_took_before_it_stops(tmp_path: Path) -> None:
    output = tmp_path / "output"
    process = start("receive", "--listen", "127.0.0.1:0", "--output", str(output))
    data = b"word => 1\n" * 200_000
    with socket.create_connection(listening(process)) as connection:
        connection.sendall(data)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert output.read_bytes() == data
    assert errors.decode() == "received 200000 lines\n"


def test_receive_framed_shows_messages_that_came_in_pieces_and_drops_a_cut_one() -> None:
    process = start("receive", "--listen", "127.0.0.1:0", "--framed", "--expect", "3")
    address = listening(process)
    with socket.create_connection(address) as connection:
        for byte in b"\x00\x00\x00\x02ab\x00\x00\x00\x00":
            connection.sendall(bytes((byte,)))
        connection.sendall(b"\x00\x00\x00\x09cut")
    with socket.create_connection(address) as connection:
        connection.sendall(b"\x00\x00\x00\x02cd")
        output, _ = process.communicate(timeout=DEADLINE_S)
    assert output == b"ab\n\ncd\n"


def test_receive_refuses_a_used_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start("receive", "--listen", f"127.0.0.1:{port}")
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1
    assert f'R601 source "receive" cannot listen at 127.0.0.1:{port}; Address already in use' in errors.decode()


def test_receive_stops_when_idle() -> None:
    begin = time.monotonic()
    process = start("receive", "--listen", "127.0.0.1:0", "--stop-when-idle", "0.5")
    listening(process)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert time.monotonic() - begin < DEADLINE_S
