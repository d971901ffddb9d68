"""`wallaroo send` in this process and `wallaroo receive` as one of its own, against plain sockets."""

import contextlib
import io
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from wallaroo_runtime.cli.main import main

DEADLINE_S = 90
MAIN = "import sys; from wallaroo_runtime.cli.main import main; sys.exit(main())"


def start(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", MAIN, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


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


def run(*arguments: str, stdin: bytes = b"") -> tuple[int, str]:
    """Run a command in this process; returns its exit code and what it said."""
    errors = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(errors):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(arguments)
    return code, errors.getvalue()


def send(*arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
    source = Source()
    code, errors = run("send", "--host", source.address, *arguments, stdin=stdin)
    source.join(DEADLINE_S)
    return code, source.data, errors


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
        (("--framing", "u16le"), b"\x01\x00a\x00\x00\x01\x00b"),
        (("--framing", "newline", "--messages", "4", "--repeat", "9"), b"a\n\nb\na\n"),
        (("--framing", "newline", "--rate", "1000"), b"a\n\nb\n"),
    ],
)
def test_send_options(options: tuple[str, ...], expected: bytes) -> None:
    code, data, errors = send("--file", "-", *options, stdin=b"a\n\nb")
    assert (code, data) == (0, expected), errors


# The words after `sender` in the READMEs of Wallaroo's examples, but for the address.
SENDER = {
    "--file {lines} --batch-size 5 --interval 100_000 --messages 7 --ponythreads=1 --ponynoblock --repeat --no-write": (
        b"\x00\x00\x00\x02ab\x00\x00\x00\x00" * 3 + b"\x00\x00\x00\x02ab"
    ),
    "--messages 3 --binary --batch-size 300 --repeat --no-write --msg-size 6 --ponythreads=1 --file {fixed}": (
        b"\x00\x00\x00\x02ab\x00\x00\x00\x02cd\x00\x00\x00\x02ab"
    ),
    "--file={fixed},{fixed} -m 10000000000 --batch-size=20 --interval=1_000 --binary --variable-size --no-write": (
        b"\x00\x00\x00\x02ab\x00\x00\x00\x02cd" * 2
    ),
    "--messages 3 --ponythreads=1 --ponynoblock": b"\x00\x00\x00\x011\x00\x00\x00\x012\x00\x00\x00\x013",
    "--binary --msg-size 12 --u64 --messages 2 --vary-by 1 --partition 0": (
        b"\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x02"
    ),
    "--messages 1 --u64 --start-from 100 --ponythreads 1": b"\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x65",
}


@pytest.mark.parametrize("line", SENDER)
def test_command_lines_of_wallaroos_sender(line: str, tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"ab\n\n")
    (tmp_path / "fixed").write_bytes(b"\x00\x00\x00\x02ab\x00\x00\x00\x02cd")
    code, data, errors = send(*line.format(lines=tmp_path / "lines", fixed=tmp_path / "fixed").split())
    assert (code, data) == (0, SENDER[line]), errors
    assert errors.startswith("note: no effect here: --")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--file", "-", "--repeat"), "--repeat says not how often"),
        (("--file", "-", "--binary"), "--binary does not say where messages end"),
        (
            ("--file", "-", "--binary", "--msg-size", "3"),
            "the last message of - ends 1 bytes after the end of the file",
        ),
        (("--framing", "none"), "there is nothing to send"),
        ((), "there is no end to the numbers"),
        (("--binary", "--u64", "-m", "1", "-g", "8"), "a number has 12 bytes with its length, and --msg-size is 8"),
        (("--file", "-", "--ponynoblok"), "--ponynoblok is not an option of wallaroo send"),
    ],
)
def test_send_options_that_do_not_fit(options: tuple[str, ...], said: str) -> None:
    code, errors = run("send", "--host", "127.0.0.1:1", *options, stdin=b"abcde")
    assert (code, errors.partition("\n")[0]) == (2, f"R608 {said}")


def test_send_in_batches_takes_its_time() -> None:
    begin = time.monotonic()
    code, data, errors = send("--messages", "6", "--batch-size", "2", "--interval", "100_000_000")
    assert (code, len(data)) == (0, 30), errors
    assert time.monotonic() - begin >= 0.3


def test_send_to_nobody_and_of_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    assert run("send", "--host", f"127.0.0.1:{port}", "--file", __file__) == (
        1,
        f"R618 no connection to 127.0.0.1:{port}; Connection refused\n"
        "  fix: start the application and wait until it reports that it is initialized; if it runs, its console says "
        "why "
        "it closed the connection (e.g. R606: --framing differs from the source's framing); then send again\n",
    )
    assert run("send", "--host", f"127.0.0.1:{port}", "--file", "no/such") == (
        2,
        "R616 no/such cannot be read; No such file or directory\n  fix: correct the path or its "
        "permissions, or give another path\n",
    )


def test_send_refuses_a_line_that_does_not_fit() -> None:
    code, _, errors = send("--file", "-", "--framing", "u8", stdin=b"x" * 256)
    assert code == 2
    assert "R608 a line of 256 bytes does not fit framing u8" in errors


def test_send_refuses_a_bad_address() -> None:
    code, errors = run("send", "--host", "localhost", "--file", "-")
    assert code == 2
    assert errors.startswith('T211 --host address "localhost" is not usable; it has no port')


def listening(process: subprocess.Popen[bytes]) -> tuple[str, int]:
    assert process.stderr is not None
    line = process.stderr.readline().decode()
    assert line.startswith("listening at "), line
    host, _, port = line.removeprefix("listening at ").strip().rpartition(":")
    return host, int(port)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_receive_as_wallaroos_receiver_is_started() -> None:
    process = start(
        "receive", "--ponythreads=1", "--ponynoblock", "--listen", "127.0.0.1:0", "--no-write", "--expect", "1"
    )
    assert process.stderr is not None
    assert process.stderr.readline() == b"note: no effect here: --ponythreads, --ponynoblock\n"
    with socket.create_connection(listening(process)) as connection:
        connection.sendall(b"word => 1\n")
        output, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, output, errors) == (0, b"", b"received 1 lines\n")


@pytest.mark.slow
def test_receive_takes_the_short_options_of_wallaroos_receiver() -> None:
    process = start("receive", "-l", "127.0.0.1:0", "-f", "-n", "--expect", "1")
    with socket.create_connection(listening(process)) as connection:
        connection.sendall(b"\x00\x00\x00\x02ab")
        output, errors = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, output, errors) == (0, b"", b"received 1 messages\n")


def test_receive_refuses_a_used_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run("receive", "--listen", f"127.0.0.1:{port}") == (
            2,
            f"R714 receive cannot listen at 127.0.0.1:{port}; Address already in use\n"
            "  fix: stop the program that uses the address, or give another HOST:PORT of this machine (`ip addr`) "
            "with --listen; ports below 1024 are for root\n",
        )


@pytest.mark.slow
def test_receive_stops_when_idle() -> None:
    begin = time.monotonic()
    process = start("receive", "--listen", "127.0.0.1:0", "--stop-when-idle", "0.5")
    listening(process)
    process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert time.monotonic() - begin < DEADLINE_S


@pytest.mark.slow
def test_receive_tells_an_address_that_send_takes() -> None:
    process = start("receive", "--listen", "[::1]:0", "--stop-when-idle", "0")
    assert listening(process)[0] == "[::1]"
    process.communicate(timeout=DEADLINE_S)
