"""The connector protocol as a source connector speaks it, over real sockets."""

import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wallaroo import experimental
from wallaroo.experimental import protocol

SECONDS = 90


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

    def ended(self) -> bool:
        """Wait for the end of the connector's side."""
        return self._file.read(1) == b""

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


class Numbers(experimental.BaseSource):
    """A source as Wallaroo's programs write it: its name is bytes, its key is one for all messages."""

    name = b"numbers"
    key = b"k"
    at = 0

    def __next__(self) -> tuple[bytes, int]:
        if self.at == 2:
            raise StopIteration
        self.at += 1
        return b"%d" % self.at, self.at

    def reset(self, pos: int = 0) -> None:
        self.at = pos

    def point_of_ref(self) -> int:
        return self.at


def test_a_source_has_a_key_for_its_messages_and_a_name_of_its_own(peer: Any) -> None:
    application, port = peer
    connector = experimental.MultiSourceConnector("0.0.1", "word", "program", "one", "127.0.0.1", port)
    connector.add_source(Numbers())
    with pytest.raises(ValueError, match="there is a source 'numbers' already"):
        connector.add_source(Numbers())
    connector.start()
    number = application.begin(10, {"numbers": 0})["numbers"]
    assert number == connector.get_id(b"numbers")
    tag, fields = application.read()
    assert (tag, fields[24:29]) == (protocol.MESSAGE, b"\0\1k1")
    application.message()
    application.acknowledge(0, (number, 2))
    assert application.read()[0] == protocol.EOS_MESSAGE
    connector.wait_until_finished(SECONDS)


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


class Unreadable(experimental.AtLeastOnceSourceConnector):
    """Sends the lines of a file that is not there."""

    def send_next(self) -> bool:
        Path("/nonexistent/lines").read_bytes()
        return True


def test_an_error_of_the_subclass_ends_the_connector(peer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    application, port = peer
    thrown = list[object]()
    monkeypatch.setattr(threading, "excepthook", lambda args: thrown.append(args.exc_value))
    connector = Unreadable("0.0.1", "word", "program", "one", "127.0.0.1", port)
    connector.start()
    application.begin(1, {})
    connector.wait_until_finished(SECONDS)
    assert isinstance(connector.failure, FileNotFoundError)
    assert thrown == [connector.failure]
    assert application.ended()
