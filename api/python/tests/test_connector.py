"""Connectors: declarations, the programs at the other end, the protocol with acknowledgements, over real sockets."""

import socket
import struct
import threading
from pathlib import Path
from typing import Any

import pytest

import wallaroo
from wallaroo import WallarooParameterError, experimental
from wallaroo.emit.topology import topology
from wallaroo.experimental import protocol
from wallaroo.message.frame import FRAMED, FrameHeader, write_frame
from wallaroo.worker.stage.stage import Stage

SECONDS = 90
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


@pytest.mark.parametrize(("cookie", "kind"), [(None, "stream"), ("word", "octet")])
def test_the_remedy_for_plain_functions_names_the_decorators_of_connectors(cookie: str | None, kind: str) -> None:
    options: dict[str, Any] = {} if cookie is None else {"cookie": cookie}
    source = experimental.SourceConnectorConfig("feed", len, len, 7100, **options)
    sink = experimental.SinkConnectorConfig("out", len, len, 7200, **options)
    with pytest.raises(WallarooParameterError) as caught:
        wallaroo.build_application("app", wallaroo.source("feed", source).to_sink(sink))
    remedies = {finding.fix.rpartition("@wallaroo.")[2] for finding in caught.value.diagnostics}
    assert remedies == {f"experimental.{kind}_message_{end}" for end in ("encoder", "decoder")}


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
    assert connector.listen() == ("127.0.0.1", port)
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
