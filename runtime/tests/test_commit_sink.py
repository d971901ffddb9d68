"""The egress and a sink that takes transactions, as processes: exactly once over deaths of both at named points."""

import contextlib
import json
import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.part import PART, configured
from wallaroo.experimental import protocol, transaction
from wallaroo.experimental.transaction import Order
from wallaroo.message.frame import encode_frame
from wallaroo_runtime.egress.connector_sink import CommittingSink
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.position import SinkPosition, begin_position, read_position, write_position
from wallaroo_runtime.storage.outbox.staging import StagingWriter

pytestmark = pytest.mark.slow
SINK = Path(__file__).parents[2] / "tests" / "connector" / "sqlite_sink.py"
DEADLINE_S = 60.0
PORT = 3
COOKIE = "wörd"
APPLICATION = f"""
import wallaroo
from wallaroo import experimental


def application_setup(args):
    sink = experimental.SinkConnectorConfig("out", encode, decode, {{port}}, cookie="{COOKIE}")
    config = wallaroo.GenSourceConfig("numbers", Numbers())
    return wallaroo.build_application("app", wallaroo.source("line", config).to_sink(sink))


class Numbers:
    def initial_value(self):
        return 0

    def apply(self, number):
        return number + 1


@experimental.octet_message_encoder
def encode(number):
    return str(number)


@experimental.octet_message_decoder
def decode(bs):
    return bs.decode()
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Delivery:
    """An outbox, the egress over it, and the sink."""

    def __init__(self, root: Path) -> None:
        self.root, self.port, self.batch, self.sent = root, free_port(), 0, [""][:0]
        self.app = root / f"delivery_{root.name}.py"
        self.app.write_text(APPLICATION.format(port=self.port), encoding="utf-8")
        self.outbox = Outbox(root / "outbox", root / "dead-letters", root / "staging")
        self.egress: subprocess.Popen[bytes] | None = None
        self.sink: subprocess.Popen[bytes] | None = None
        self.deaths: list[str] = []

    def start_egress(self, cookie: str | None = COOKIE, **environment: str) -> None:
        sink = {"port": PORT, "name": "out", "host": "127.0.0.1", "tcp_port": self.port, "cookie": cookie}
        self.egress = self._start([PART, "egress", configured(self.root, {"sinks": [sink]})], environment)

    def start_sink(self, **environment: str) -> None:
        arguments = ["--application-module", str(self.app), "--connector", "out", "--out-file", str(self.file)]
        self.sink = self._start([str(SINK), *arguments], environment)

    def _start(self, arguments: list[str], environment: dict[str, str]) -> "subprocess.Popen[bytes]":
        with (self.root / "log").open("ab") as log:
            return subprocess.Popen([sys.executable, *arguments], stderr=log, env=os.environ | environment)

    @property
    def file(self) -> Path:
        return self.root / "out.sqlite"

    def publish(self, count: int = 50, *more: str) -> None:
        """Publish a micro-batch of the next numbers."""
        values = [str(len(self.sent) + number) for number in range(count)] + list(more)
        writer = StagingWriter(self.root / "staging", "q", self.batch, 0, self.batch)
        for at in range(0, len(values), 20):
            writer.write(PORT, encode_frame([value.encode() for value in values[at : at + 20]], port=PORT))
        self.outbox.publish("q", self.batch, writer.finish())
        self.batch += 1
        self.sent += values

    def rows(self) -> list[str]:
        if not self.file.exists():
            return []
        with contextlib.closing(sqlite3.connect(self.file)) as database, contextlib.suppress(sqlite3.OperationalError):
            return [text for (text,) in database.execute("SELECT text FROM result ORDER BY number")]
        return []

    def status(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads((self.root / "egress.json").read_bytes())
        return value

    def wait(self, holds: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            assert time.monotonic() < deadline, f"waited for {what}; {len(self.rows())} rows; {self.log()}"
            self.revive()
            time.sleep(0.01)

    def revive(self) -> None:
        """Start again what died at its point."""
        if self.egress is not None and self.egress.poll() is not None:
            self.deaths.append("egress")
            self.start_egress()
        if self.sink is not None and self.sink.poll() is not None:
            self.deaths.append("sink")
            self.start_sink()

    def log(self) -> str:
        return (self.root / "log").read_text()[-2000:]

    def findings(self) -> str:
        try:
            return "\n".join(f"{each['code']} {each['message']}" for each in self.status()["diagnostics"])
        except FileNotFoundError:
            return ""

    def close(self) -> None:
        for process in (self.egress, self.sink):
            if process is not None:
                process.kill()
                process.wait(DEADLINE_S)


@pytest.fixture
def delivery(tmp_path: Path) -> Iterator[Delivery]:
    made = Delivery(tmp_path)
    yield made
    made.close()


POINTS = [
    ("egress", "egress.before_send:7"), ("egress", "egress.prepared:3"), ("egress", "egress.decided:3"),
    ("egress", "egress.before_position:4"), ("sink", "sink.before_prepare:3"), ("sink", "sink.after_prepare:3"),
    ("sink", "sink.before_commit:3"), ("sink", "sink.after_commit:3"),
]  # fmt: skip


@pytest.mark.parametrize(("who", "point"), POINTS)
def test_each_message_is_there_once_over_a_death(delivery: Delivery, who: str, point: str) -> None:
    fault = {"WALLAROO_FAULT": point}
    delivery.start_sink(**(fault if who == "sink" else {}))
    delivery.start_egress(**(fault if who == "egress" else {}))
    for _ in range(12):
        delivery.publish()
        delivery.wait(lambda: len(delivery.rows()) >= len(delivery.sent) - 50, "most rows")
    delivery.wait(lambda: len(delivery.rows()) >= len(delivery.sent), "all rows")
    assert delivery.deaths == [who]
    assert delivery.rows() == delivery.sent
    delivery.wait(lambda: not list((delivery.root / "outbox").glob("*.frames")), "delivered files to be removed")
    delivery.wait(lambda: delivery.status()["sinks"][0]["messages"] == len(delivery.sent), "the status")
    assert delivery.status()["sinks"][0]["pending_messages"] == 0


def test_what_the_sink_does_not_prepare_is_sent_again(delivery: Delivery) -> None:
    delivery.start_sink()
    delivery.start_egress()
    delivery.publish(10)
    delivery.wait(lambda: len(delivery.rows()) == 10, "10 rows")
    delivery.publish(5, "odd")
    delivery.wait(lambda: delivery.rows() == delivery.sent, "all rows")
    delivery.wait(lambda: "did not prepare 6 messages" in delivery.findings(), "the refusal")
    assert delivery.findings().splitlines()[-1] == (
        f'R693 sink "out": its connector at 127.0.0.1:{delivery.port} cannot be delivered to; '
        "it did not prepare 6 messages; it is tried again"
    )


def test_a_sink_that_lost_what_it_had_is_refused(delivery: Delivery) -> None:
    delivery.start_sink()
    delivery.start_egress()
    delivery.publish(10)
    delivery.wait(lambda: len(delivery.rows()) == 10, "10 rows")
    sink = delivery.sink
    assert sink is not None
    delivery.sink = None
    sink.kill()
    sink.wait(DEADLINE_S)
    delivery.file.unlink()
    delivery.start_sink()
    delivery.wait(lambda: "it has the output up to byte 0, the outbox goes on at byte 10" in delivery.findings(), "it")


def test_offsets_begin_where_the_sink_got_its_cookie(delivery: Delivery) -> None:
    with socket.create_server(("127.0.0.1", delivery.port)) as listener:
        listener.settimeout(DEADLINE_S)
        delivery.publish(10)
        delivery.start_egress(cookie=None)
        connection, _ = listener.accept()
        with connection, connection.makefile("rb") as received:
            assert received.read(10) == b"0123456789"
            egress = delivery.egress
            assert egress is not None
            delivery.egress = None
            egress.terminate()
            assert egress.wait(DEADLINE_S) == 0
    before, delivery.sent = delivery.sent, []
    assert len(before) == 10
    delivery.start_sink()
    delivery.start_egress()
    delivery.publish(5)
    delivery.wait(lambda: delivery.rows() == delivery.sent, "rows of what came since")


def test_another_cookie_is_refused(delivery: Delivery) -> None:
    delivery.start_sink()
    delivery.start_egress(cookie="other")
    delivery.wait(lambda: "the cookie is not the sink's" in delivery.findings(), "the refusal")


def test_an_egress_that_is_told_to_end_delivers_first(delivery: Delivery) -> None:
    delivery.start_egress()
    delivery.publish(2000)
    delivery.start_sink()
    delivery.wait(lambda: len(delivery.rows()) > 0, "rows")
    egress = delivery.egress
    assert egress is not None
    delivery.egress = None
    egress.terminate()
    assert egress.wait(DEADLINE_S) == 0
    assert delivery.rows() == delivery.sent


class Peer:
    """A sink that says what a test wants."""

    def __init__(self, listener: socket.socket) -> None:
        self.socket, _ = listener.accept()
        self.socket.settimeout(DEADLINE_S)
        self.received = bytearray()
        self.frames: list[protocol.ReceivedFrame] = []

    def read(self) -> protocol.ReceivedFrame:
        while not self.frames:
            data = self.socket.recv(65536)
            assert data, "the egress closed the connection"
            self.received += data
            self.frames += protocol.cut(self.received)
        return self.frames.pop(0)

    def order(self) -> Order:
        frame = self.read()
        assert (frame.tag, frame.positions[0][0]) == (protocol.MESSAGE, transaction.CONTROL)
        return transaction.read(frame.payload)

    def greet(self, point: int, *prepared: str) -> str:
        """Answer until the stream of output is open; returns the name of the egress."""
        hello = self.read()
        assert (hello.tag, hello.texts[:3]) == (protocol.HELLO, ("0.0.1", COOKIE, "wallaroo"))
        self.socket.sendall(protocol.ok(1) + protocol.framed(protocol.ACK, bytes(8)))
        asked = self.order()
        assert asked.tag == transaction.LIST_UNCOMMITTED
        names = tuple(name.format(sender=hello.texts[3]) for name in prepared)
        self.socket.sendall(transaction.framed(Order(transaction.REPLY_UNCOMMITTED, names, number=asked.number)))
        self.decided = [(order.ids[0], order.is_commit) for order in (self.order() for _ in names)]
        notify = self.read()
        assert (notify.tag, notify.texts, notify.positions[0][0]) == (protocol.NOTIFY, ("out",), transaction.OUTPUT)
        self.point = notify.positions[0][1]
        self.socket.sendall(protocol.notify_ack(transaction.OUTPUT, point, is_accepted=True))
        return hello.texts[3]


def test_the_protocol_as_a_sink_sees_it(delivery: Delivery) -> None:
    with socket.create_server(("127.0.0.1", delivery.port)) as listener:
        listener.settimeout(DEADLINE_S)
        delivery.publish(3)
        delivery.start_egress()
        peer = Peer(listener)
        sender = peer.greet(protocol.NEVER, "{sender}:1", "somebody:0")
        # Nothing is decided yet, and what others have prepared is not this outbox's.
        assert peer.decided == [(f"{sender}:1", False), ("somebody:0", False)]
        messages = [peer.read() for _ in range(3)]
        assert [(each.positions, each.payload) for each in messages] == [
            (((1, 0),), b"0"), (((1, 1),), b"1"), (((1, 2),), b"2")
        ]  # fmt: skip
        first = peer.order()
        assert first == Order(transaction.PHASE_1, (f"{sender}:3",), ((1, 0, 3),))
        peer.socket.sendall(transaction.framed(Order(transaction.REPLY, first.ids, is_commit=True)))
        assert peer.order() == Order(transaction.PHASE_2, first.ids, is_commit=True)
        peer.socket.sendall(protocol.framed(protocol.RESTART, b""))
        peer.socket.close()
        again = Peer(listener)
        assert again.greet(3, "{sender}:3") == sender
        assert (again.decided, again.point) == ([(f"{sender}:3", True)], 3)
        delivery.publish(1)
        assert again.read().positions == ((1, 3),)
        again.socket.close()


def test_an_output_keeps_its_first_name_and_where_it_begins(tmp_path: Path) -> None:
    """Under another name nothing that is prepared would be committed."""
    write_position(tmp_path, 3, SinkPosition(1, 0, 0, 5, 50), durable=True)
    for name in ("out aa", "out bb"):
        sink = CommittingSink(pb.Sink(port=3, name="out", host="127.0.0.1", tcp_port=1), tmp_path, lambda _: None)
        sink._name_output(name)
        assert read_position(tmp_path, 3) == SinkPosition(1, 0, 0, 5, 50, "out aa", 50)
    begin_position(tmp_path, 3)
    assert read_position(tmp_path, 3).sender == "out aa", "the driver begins with what is there"
    position = tmp_path / "position-3"
    position.write_bytes(position.read_bytes()[:-3])
    with pytest.raises(RunError, match="R698 .*position-3 is damaged; it does not fit its checksum"):
        CommittingSink(pb.Sink(port=3, name="out", host="127.0.0.1", tcp_port=1), tmp_path, lambda _: None)
