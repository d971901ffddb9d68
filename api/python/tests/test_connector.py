"""Connectors: declarations, the programs at the other end, the protocol with acknowledgements, over real sockets."""

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import wallaroo
from wallaroo import WallarooParameterError, experimental
from wallaroo.experimental import protocol
from wallaroo.frame import FRAMED, FrameHeader, write_frame
from wallaroo.topology import topology
from wallaroo.worker.stage import Stage

SECONDS = 20
APPLICATION = """
import wallaroo
from wallaroo import experimental


def application_setup(args):
    ab = wallaroo.ApplicationBuilder("celsius")
    ab.source_connector("feed", encoder=encode, decoder=decode, port={feed})
    ab.sink_connector("out", encoder=encode, decoder=decode, port={out})
    return ab.new_pipeline("line", "feed").to_sink("out").build()


@experimental.stream_message_encoder
def encode(data):
    return None if data == "nothing" else data


@experimental.stream_message_decoder
def decode(bs):
    return bs.decode()
"""


@experimental.stream_message_encoder
def encode(data: Any) -> Any:
    return data


@experimental.stream_message_decoder
def decode(bs: bytes) -> str:
    return bs.decode()


@experimental.stream_message_decoder(event_time=True)
def timed(bs: bytes) -> str:
    return bs.decode()


@experimental.octet_message_decoder
def octets(bs: bytes) -> bytes:
    return bs


@wallaroo.computation("pass")
def same(data: Any) -> Any:
    return data


def line_of(app: wallaroo.Application) -> dict[str, Any]:
    line: dict[str, Any] = topology(app, "/nowhere", "app.py", [])["pipelines"][0]
    return line


def test_connectors_of_the_builder_are_tcp() -> None:
    ab = wallaroo.ApplicationBuilder("app").source_connector("first", encode, decode)
    ab.source_connector("feed", encode, decode).sink_connector("out", encode, decode)
    app = ab.new_pipeline("line", "feed").to(same).to_sink("out").build()
    line = line_of(app)
    assert {name: line["sources"][0][name] for name in ("name", "kind", "host", "port", "framing")} == {
        "name": "feed", "kind": "tcp", "host": "127.0.0.1", "port": 7101, "framing": {"kind": "u32le"}
    }  # fmt: skip
    assert [line["sinks"][0][name] for name in ("name", "kind", "port")] == ["out", "tcp", 7200]
    assert list(app.connectors) == ["first", "feed", "out"]


def test_configs_of_all_versions() -> None:
    def built(source: Any, sink: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        app = wallaroo.build_application("app", wallaroo.source("line", source).to(same).to_sink(sink))
        line = line_of(app)
        return line["sources"][0], line["sinks"][0]

    first = built(
        experimental.SourceConnectorConfig("h", "7100", decode), experimental.SinkConnectorConfig("g", 7200, encode)
    )
    assert [(part["name"], part["host"], part["port"]) for part in first] == [("line", "h", 7100), ("app", "g", 7200)]
    second = built(
        experimental.SourceConnectorConfig("feed", encode, decode, 7100, host="h"),
        experimental.SinkConnectorConfig("out", encode, decode, port=7200, host="g"),
    )
    assert [(part["name"], part["host"], part["port"]) for part in second] == [("feed", "h", 7100), ("out", "g", 7200)]
    third, _ = built(
        experimental.SourceConnectorConfig(
            "feed", encode, octets, 7100, cookie="word", max_credits=10, refill_credits=4
        ),
        wallaroo.TCPSinkConfig("g", 7200, encode),
    )
    assert {name: value for name, value in third.items() if name not in ("path", "codec", "worker")} == {
        "name": "feed", "kind": "connector", "host": "127.0.0.1", "port": 7100, "cookie": "word", "max_credits": 10,
        "refill_credits": 4, "max_message_bytes": 16777216,
    }  # fmt: skip


def test_only_a_decoder_that_says_so_gives_times(kit: Any) -> None:
    assert (timed.decode(bytes(8) + b"a"), timed.event_time(struct.pack("<q", 5) + b"a")) == ("a", 5)
    assert not hasattr(decode, "event_time")
    with pytest.raises(experimental.StreamDecoderError, match="a frame has 3 bytes; at least 8 are a time"):
        decode.decode(b"abc")


def test_the_worker_reads_and_writes_frames_of_streams(kit: Any) -> None:
    ab = (
        wallaroo.ApplicationBuilder("app").source_connector("feed", encode, timed).sink_connector("out", encode, decode)
    )
    app = ab.new_pipeline("line", "feed").to(same).to_sink("out").build()
    data = encode.encode("abc", event_time=9) + encode.encode("d")
    outputs = Stage(app, kit.stage_of(app, "0/sources/0")).run(
        0, write_frame(FrameHeader(0, 2, 0, 0, FRAMED, 5), [data])
    )
    assert not kit.letters(outputs)
    assert [value for _, value in kit.sunk(outputs)] == [encode.encode("abc"), encode.encode("d")]


def test_names_that_no_connector_has() -> None:
    ab = wallaroo.ApplicationBuilder("app").source_connector("feed", encode, decode)
    with pytest.raises(WallarooParameterError) as caught:
        ab.new_pipeline("line", "food").to_sink("feed").build()
    assert [f"{finding.code} {finding.message}" for finding in caught.value.diagnostics] == [
        'T233 connector "feed" is not declared; there are none',
        'T233 connector "food" is not declared; there are feed',
    ]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def arguments(tmp_path: Path, connector: str, **ports: int) -> list[str]:
    app = tmp_path / f"connector_app_{tmp_path.name}.py"
    app.write_text(APPLICATION.format(**{"feed": 1, "out": 2} | ports), encoding="utf-8")
    return ["--application-module", str(app), "--connector", connector, f"--{connector}-topic", "t", "--in", "h:1"]


def test_a_source_connector_sends_frames(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        connector = experimental.SourceConnector(
            arguments(tmp_path, "feed", feed=server.getsockname()[1]), ["topic"], ["group"]
        )
        assert (connector.params.topic, connector.params.group) == ("t", None)
        with pytest.raises(experimental.UnexpectedSocketError, match="no connection"):
            connector.write("early")
        connector.connect()
        connection, _ = server.accept()
        with connection:
            connection.settimeout(SECONDS)
            for message, time in (("abc", 0), ("nothing", 0), ("é", 7)):
                connector.write(message, event_time=time)
            closing = threading.Thread(target=connector.close)
            closing.start()
            with connection.makefile("rb") as received:
                data = received.read()
        closing.join(SECONDS)
    assert not closing.is_alive()
    assert data == struct.pack("<Iq", 11, 0) + b"abc" + struct.pack("<Iq", 10, 7) + "é".encode()


def test_a_source_connector_waits_for_the_application(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        connector = experimental.SourceConnector(arguments(tmp_path, "feed", feed=server.getsockname()[1]), ["topic"])
        with pytest.raises(ConnectionRefusedError):
            connector.connect(timeout=0)
        waited: list[float] = []

        def listen_at_the_second(seconds: float) -> None:
            waited.append(seconds)
            if len(waited) > 1:
                server.listen()

        monkeypatch.setattr("time.sleep", listen_at_the_second)
        connector.connect()
        server.settimeout(SECONDS)
        connection, _ = server.accept()
        with connection:
            connector.write("abc")
            assert connection.recv(100) == encode.encode("abc")
        connector.close()
    assert len(waited) == 2


def test_a_sink_connector_reads_frames_also_after_a_restart(tmp_path: Path) -> None:
    port = free_port()
    connector = experimental.SinkConnector(arguments(tmp_path, "out", out=port), required_params=["topic"])
    connector.listen()
    try:
        with pytest.raises(TimeoutError):
            connector.read(timeout=0.01)
        with socket.create_connection(("127.0.0.1", port)) as sender:
            frame = encode.encode("whole")
            sender.sendall(frame + frame[:-1])
            assert connector.read(SECONDS) == "whole"
        with socket.create_connection(("127.0.0.1", port)) as sender:
            sender.sendall(frame)
            assert connector.read(SECONDS) == "whole"
    finally:
        connector.close()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], "T207 connector: parameter --application-module --connector is missing"),
        (["--application-module", "m", "--connector", "feed"], "T207 connector: parameter --feed-topic is missing"),
    ],
)
def test_arguments_that_are_missing(args: list[str], expected: str) -> None:
    with pytest.raises(WallarooParameterError) as caught:
        experimental.parse_connector_args(args, ["topic"])
    (finding,) = caught.value.diagnostics
    assert f"{finding.code} {finding.message}".startswith(expected)


def test_a_connector_that_the_application_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(WallarooParameterError, match='T233 connector "other" is not declared; there are feed, out'):
        experimental.SourceConnector(arguments(tmp_path, "other"), ["topic"])


class Application:
    """The side of the application: reads a connector's frames, answers as a test says."""

    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._connection: socket.socket | None = None

    def accept(self) -> None:
        self.close()
        self._connection, _ = self._server.accept()
        self._connection.settimeout(SECONDS)
        self._file = self._connection.makefile("rb")

    def read(self) -> tuple[int, bytes]:
        size = int.from_bytes(self._file.read(4), "big")
        body = self._file.read(size)
        return body[0], body[1:]

    def send(self, tag: int, fields: bytes) -> None:
        assert self._connection is not None
        self._connection.sendall(protocol.framed(tag, fields))

    def begin(self, credits: int, points: dict[str, int]) -> dict[str, int]:
        """Greet a connector, and open its streams; returns their numbers."""
        self.accept()
        assert self.read()[0] == protocol.HELLO
        self.send(protocol.OK, struct.pack(">I", credits))
        numbers = {}
        for _ in points:
            tag, fields = self.read()
            number, size = struct.unpack_from(">QH", fields)
            name = fields[10 : 10 + size].decode()
            assert tag == protocol.NOTIFY
            numbers[name] = number
            self.send(protocol.NOTIFY_ACK, struct.pack(">BQQ", 1, number, points[name]))
        return numbers

    def message(self) -> tuple[int, int, bytes]:
        """Return stream, message id and payload of a message."""
        tag, fields = self.read()
        assert tag == protocol.MESSAGE
        stream, point, _, size = struct.unpack_from(">QQqH", fields)
        return stream, point, fields[26 + size :]

    def acknowledge(self, credits: int, *positions: tuple[int, int]) -> None:
        pairs = b"".join(struct.pack(">QQ", *each) for each in positions)
        self.send(protocol.ACK, struct.pack(">II", credits, len(positions)) + pairs)

    def close(self) -> None:
        if self._connection is not None:
            self._file.close()
            self._connection.close()


@pytest.fixture
def peer() -> Iterator[tuple[Application, int]]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        application = Application(server)
        yield application, server.getsockname()[1]
        application.close()


def sender(port: int, *sources: experimental.BaseSource) -> experimental.MultiSourceConnector:
    connector = experimental.MultiSourceConnector("0.0.1", "word", "program", "one", "127.0.0.1", port)
    for source in sources:
        connector.add_source(source)
    connector.start()
    return connector


def file_of(tmp_path: Path, name: str, payloads: list[bytes]) -> experimental.FramedFileReader:
    path = tmp_path / name
    path.write_bytes(b"".join(struct.pack(">I", len(payload)) + payload for payload in payloads))
    return experimental.FramedFileReader(str(path))


def test_messages_wait_for_credits_and_end_when_all_is_acknowledged(peer: Any, tmp_path: Path) -> None:
    application, port = peer
    source = file_of(tmp_path, "a", [b"one", b"two", b"three"])
    connector = sender(port, source)
    number = application.begin(2, {source.name: 0})[source.name]
    assert [application.message() for _ in range(2)] == [(number, 7, b"one"), (number, 14, b"two")]
    application.acknowledge(1, (number, 14))
    assert application.message() == (number, 23, b"three")
    application.acknowledge(1, (number, 23))
    assert application.read() == (protocol.EOS_MESSAGE, struct.pack(">Q", number))
    connector.wait_until_finished(SECONDS)
    source.close()


def test_what_was_not_acknowledged_is_sent_again(peer: Any, tmp_path: Path) -> None:
    application, port = peer
    source = file_of(tmp_path, "a", [b"one", b"two", b"three"])
    connector = sender(port, source)
    number = application.begin(10, {source.name: 0})[source.name]
    assert [application.message()[2] for _ in range(3)] == [b"one", b"two", b"three"]
    application.acknowledge(0, (number, 7))
    application.begin(10, {source.name: 7})
    assert [application.message()[2] for _ in range(2)] == [b"two", b"three"]
    application.send(protocol.RESTART, b"")
    assert application.begin(10, {source.name: 14}) == {source.name: number}
    assert application.message() == (number, 23, b"three")
    application.acknowledge(0, (number, 23))
    assert application.read()[0] == protocol.EOS_MESSAGE
    connector.wait_until_finished(SECONDS)
    source.close()


def test_sources_take_turns(peer: Any, tmp_path: Path) -> None:
    application, port = peer
    first, second = file_of(tmp_path, "a", [b"a1", b"a2"]), file_of(tmp_path, "b", [b"b1"])
    connector = sender(port, first, second)
    numbers = application.begin(10, {first.name: 0, second.name: 0})
    assert sorted(application.message()[2] for _ in range(3)) == [b"a1", b"a2", b"b1"]
    application.acknowledge(0, (numbers[first.name], 12), (numbers[second.name], 6))
    assert {application.read()[1] for _ in range(2)} == {struct.pack(">Q", number) for number in numbers.values()}
    connector.wait_until_finished(SECONDS)
    first.close()
    second.close()


def test_a_refusal_ends_the_connector(peer: Any, tmp_path: Path) -> None:
    application, port = peer
    source = file_of(tmp_path, "a", [b"one"])
    connector = sender(port, source)
    application.accept()
    assert application.read() == (protocol.HELLO, b"\0\x050.0.1\0\x04word\0\x07program\0\x03one")
    application.send(protocol.ERROR, b"\0\x05wrong")
    connector.wait_until_finished(SECONDS)
    assert isinstance(connector.failure, protocol.ProtocolError)
    assert str(connector.failure) == "wrong"
    source.close()


@pytest.mark.parametrize(
    "data", [b"\0\0\0\0", b"\0\0\0\x01\x09", b"\0\0\0\x02\x01\0", struct.pack(">IBII", 9, 6, 1, 2), b"\xff\xff\xff\xff"]
)
def test_frames_that_no_application_sends(data: bytes) -> None:
    with pytest.raises(protocol.ProtocolError):
        list(protocol.cut(bytearray(data)))


def test_a_frame_in_pieces_waits() -> None:
    received = bytearray(protocol.framed(protocol.OK, b"\0\0\0\x07")[:-1])
    assert list(protocol.cut(received)) == []
    received += b"\x07"
    assert [frame.credits for frame in protocol.cut(received)] == [7]
    assert not received
