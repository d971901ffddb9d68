"""Messages that are lines: the gateway, the engine in memory, and the way through a Python worker."""

import re
import socket
import struct
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wallaroo
from support.gateway_process import Process, finish, is_reset
from support.memory_server import Receiver, connected, ran
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo.message.frame import read_frame, split_frames
from wallaroo.testing import run
from wallaroo_runtime.gateway.framing import KINDS, NEWLINE, Cut, fixed_cutter, framer, misfit
from wallaroo_runtime.storage.journal.reader import JournalReader

PROGRAM = """
import json
import wallaroo

def application_setup(args):
    (in_host, in_port), *_ = wallaroo.tcp_parse_input_addrs(args)
    (out_host, out_port), *_ = wallaroo.tcp_parse_output_addrs(args)
    orders = wallaroo.source("orders", wallaroo.TCPSourceConfig(in_host, in_port, order))
    return wallaroo.build_application("Orders", orders.to(double).to_sink(wallaroo.TCPSinkConfig(out_host, out_port, total)))

@wallaroo.line_decoder
def order(bs):
    return json.loads(bs) if bs else None

@wallaroo.computation("double")
def double(data):
    return data["amount"] * 2

@wallaroo.line_encoder
def total(amount):
    return json.dumps({"total": amount})
"""  # noqa: E501
LINES = st.lists(st.text("ab\r\n\r\n", max_size=6).map(str.encode) | st.binary(max_size=6), max_size=6).map(b"\n".join)


def reference(data: bytes) -> list[bytes]:
    """Return the messages of a whole stream, byte by byte."""
    lines, line = [], bytearray()
    for byte in data:
        if byte == 10:
            lines.append(bytes(line[:-1]) if line.endswith(b"\r") else bytes(line))
            line.clear()
        else:
            line.append(byte)
    return [*lines, bytes(line.removesuffix(b"\r"))] if line else lines


@given(LINES, st.lists(st.integers(0, 40)), st.integers(0, 8))
def test_lines_are_found_wherever_pieces_end(data: bytes, cuts: list[int], limit: int) -> None:
    cutter, tail, found, too_large = fixed_cutter(NEWLINE, limit), b"", b"", 0
    ends = sorted({*(cut for cut in cuts if cut < len(data)), len(data)})
    for start, end in zip([0, *ends], ends, strict=False):
        tail += data[start:end]
        cut = cutter(tail + b"\n\n", len(tail))
        assert tail[: cut.end].count(b"\n") == cut.count
        found, tail, too_large = found + tail[: cut.end], tail[cut.end :], cut.too_large
        if too_large:
            break
    *whole, last = data.split(b"\n")
    allowed = list(takewhile(lambda line: len(line) <= limit, whole))
    assert found == b"".join(line + b"\n" for line in allowed)
    assert (too_large > limit) == (len(allowed) < len(whole) or len(last) > limit)
    assert too_large or found + tail == data


@given(st.sampled_from(KINDS), st.lists(st.binary(max_size=300), max_size=5))
def test_cutting_gives_back_what_was_framed(kind: str, payloads: list[bytes]) -> None:
    kept = [payload for payload in payloads if not misfit(kind, payload)]
    assert kind in (NEWLINE, "u8") or kept == payloads
    wire = b"".join(map(framer(kind), kept))
    assert fixed_cutter(kind, 1000)(wire, len(wire)) == Cut(len(kept), len(wire))
    if kind == NEWLINE:
        assert reference(wire) == kept


def echo(args: list[str]) -> Any:
    """Declare an application that writes each line again."""

    class Bytes:
        framing = "newline"

        def decode(self, bs: bytes) -> bytes:
            return bs

    source = wallaroo.source("lines", wallaroo.TCPSourceConfig("127.0.0.1", 0, Bytes()))
    sink = wallaroo.TCPSinkConfig("127.0.0.1", 9, wallaroo.LineEncoder(lambda line: line))
    return wallaroo.build_application("Echo", source.to_sink(sink))


@settings(max_examples=15, deadline=None)
@given(LINES)
def test_the_worker_reads_the_lines_of_a_stream(data: bytes) -> None:
    wire = data if data.endswith(b"\n") or not data else data + b"\n"
    with run(echo) as app:
        source = app._engine.source("lines")
        if wire:
            app._engine.receive(source, wire, wire.count(b"\n"))
        assert app.output() == [line + b"\n" for line in reference(data)]
        assert not app.dead_letters


@settings(max_examples=10, deadline=None)
@given(st.lists(st.binary(max_size=8).map(lambda data: data.replace(b"\n", b"\r")), max_size=5))
def test_the_test_kit_sends_payloads_as_they_are(payloads: list[bytes]) -> None:
    with run(echo) as app:
        app.send(payloads)
        assert app.output() == [payload + b"\n" for payload in payloads]


def test_a_line_break_in_a_line_is_refused() -> None:
    with run(echo) as app, pytest.raises(DiagnosticError) as caught:
        app.send([b"a\nb"])
    assert str(caught.value) == (
        "R721 source \"lines\" cannot take b'a\\nb'; a line has no line break in it\n"
        "  fix: send what its framing can have"
    )


@pytest.mark.parametrize(
    ("result", "reason"),
    [("a\nb", "there is a line break in the line"), (7, "returns int; expected bytes, str or None")],
)
def test_an_encoder_of_lines_refuses_what_is_none(result: Any, reason: str) -> None:
    def setup(args: list[str]) -> Any:
        source = wallaroo.source("lines", wallaroo.TCPSourceConfig("127.0.0.1", 0, wallaroo.line_decoder(len)))
        sink = wallaroo.TCPSinkConfig("127.0.0.1", 9, wallaroo.line_encoder(lambda data: result))
        return wallaroo.build_application("Bad", source.to_sink(sink))

    with run(setup) as app:
        app.send([b"a"])
        (letter,) = app.dead_letters
        assert letter.code == "C501"
        assert reason in letter.error


def test_an_application_of_json_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wallaroo.endpoint.tcp.MAX_MESSAGE_BYTES", 40)
    app, receiver = tmp_path / "json_lines_app.py", Receiver()
    app.write_text(PROGRAM)

    def client(address: str) -> None:
        with connected(address) as connection:
            connection.sendall(b'{"amount": 1}\n\n{"amount": 2}\r')
            receiver.wait_for(b'{"total": 2}\n')
            connection.sendall(b'\n{"amount": 3}')
            connection.shutdown(socket.SHUT_WR)
            receiver.wait_for(b'{"total": 6}\n')
        with connected(address) as connection:
            connection.sendall(b"x" * 41)
            with pytest.raises(ConnectionResetError):
                connection.recv(1)

    assert ran(app, receiver, client=client) == 0
    assert receiver.close() == b'{"total": 2}\n{"total": 4}\n{"total": 6}\n'
    out, err = capsys.readouterr()
    assert (out, "stopped: in 4  out 3 " in err) == ("", True)
    assert re.search(
        r'^R606 source "orders", connection 127.0.0.1:\d+: a message has more than max_message_bytes, 40; a line ',
        err,
        re.M,
    )


def journaled(directory: Path) -> list[bytes]:
    """Return the bytes of each frame of a journal, and check that frames have whole lines."""
    reader, found = JournalReader(directory / "journal"), []
    for piece in reader.read(0, reader.end().offset):
        for header, at, _ in split_frames(piece):
            data = read_frame(piece, at).data
            assert data.count(b"\n") == header.count
            found.append(bytes(data))
    return found


@pytest.mark.slow
def test_the_gateway_takes_lines(tmp_path: Path) -> None:
    source = {"port": 0, "path": "0/sources/0", "name": "lines", "host": "127.0.0.1", "tcp_port": 0}
    gateway = Process(tmp_path, sources=[{**source, "framing": "newline", "max_message_bytes": 100_000}]).start()
    try:
        gateway.send(b"one\ntwo\r\n\nlast")
        with gateway.connect() as connection:
            connection.sendall(b"first\n" + b"x" * 60_000)
            gateway.wait(lambda: gateway.status()["messages"] == 5)
            connection.sendall(b"y" * 40_000 + b"\n")
            finish(connection)
        with gateway.connect() as connection:
            connection.sendall(b"kept\n" + b"z" * 100_001)
            assert is_reset(connection)
        gateway.wait(lambda: gateway.status()["messages"] == 7)
        with gateway.connect() as cut:
            cut.sendall(b"half a li")
            gateway.wait(lambda: gateway.status()["connections"] == 1)
            cut.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        gateway.wait(lambda: gateway.status()["connections"] == 0)
        log = gateway.log()
    finally:
        gateway.kill()
    data = b"".join(journaled(tmp_path))
    long = b"x" * 60_000 + b"y" * 40_000
    assert data == b"one\ntwo\r\n\nlast\nfirst\n" + long + b"\nkept\n"
    assert re.search(r"R606 source .*lines.* a message has more than max_message_bytes, 100000; a line", log)
    assert "R607" not in log.partition("R606")[0]
