"""Workers next to a gateway: they cut and make messages."""

import json
import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.remote_journal import RemoteJournal
from support.run import wait_until
from support.service import Place, code_of, serving
from wallaroo.message.frame import split_frames
from wallaroo_runtime.archive.archive import Archive, read_archive
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.hosted_workers import HostedWorkers
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.program.pack import PackOptions, pack
from wallaroo_runtime.run.gateway_workers import check_setups
from wallaroo_runtime.run.options import AppOptions, RunOptions
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import PROTOCOL_VERSION
from wallaroo_runtime.service.client import ServiceClient
from wallaroo_runtime.topology.load import load

pytestmark = pytest.mark.slow
PROGRAM = """
import wallaroo

def application_setup(args):
    sink = wallaroo.TCPSinkConfig("127.0.0.1", "7002", encode)
    ab = wallaroo.ApplicationBuilder("Pairs")
    ab.new_pipeline("pairs", wallaroo.TCPSourceConfig("127.0.0.1", "7010", Pairs())).to_sink(sink)
    ab.new_pipeline("numbers", wallaroo.GenSourceConfig("numbers", Numbers)).to_sink(sink)
    return ab.build()

class Pairs:
    def header_length(self):
        return 1

    def payload_length(self, bs):
        return 2 * bs[0]

    def decode(self, bs):
        return bs

class Numbers:
    def initial_value(self):
        return 1

    def apply(self, number):
        return number + 1 if number < 100 else None

@wallaroo.encoder
def encode(data):
    return str(data)
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    folder = tmp_path_factory.mktemp("packed")
    (folder / "app.py").write_text(PROGRAM, encoding="utf-8")
    pack(PackOptions(str(folder / "app.py"), folder / "app.tar.gz"))
    return read_archive(folder / "app.tar.gz")


@pytest.fixture
def workers(archive: Archive, tmp_path: Path) -> Iterator[HostedWorkers]:
    with closing(HostedWorkers(load(archive.topology), tmp_path / "workers", archive)) as workers:
        yield workers


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("in", ""),
        ("a b", "T207 new_pipeline: parameter topic is 'a b'"),
        ("other", 'W403 worker "main"'),
        (None, "T217 application_setup failed; KeyError: 'TOPIC'"),
    ],
)
def test_a_setup_that_depends_on_the_environment_is_told_before_spark_is_there(
    topic: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup = """
import os, wallaroo

class Text:
    def decode(self, value):
        return value
    def encode(self, value):
        return value

def application_setup(args):
    source = wallaroo.KafkaSourceConfig(os.environ["TOPIC"], [("127.0.0.1", 9092)], "Warn", Text)
    app = wallaroo.ApplicationBuilder("app").new_pipeline("in", source)
    return app.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, Text)).build()
"""
    (tmp_path / "app.py").write_text(setup, encoding="utf-8")
    monkeypatch.setenv("TOPIC", "in")
    pack(PackOptions(str(tmp_path / "app.py"), tmp_path / "app.tar.gz"))
    application = load_application(str(tmp_path / "app.tar.gz"), (), "", "")
    monkeypatch.delenv("TOPIC")
    if topic is not None:
        monkeypatch.setenv("TOPIC", topic)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    options = RunOptions(AppOptions(str(tmp_path / "app.tar.gz")))
    if not expected:
        check_setups(options, application)
        return
    with pytest.raises(RunError) as caught:
        check_setups(options, application)
    assert str(caught.value).startswith(expected)
    assert not [*(tmp_path / "temporary").iterdir()]


def request(target: str) -> pb.AttachJournalRequest:
    """Return what a driver of the program asks for."""
    return pb.AttachJournalRequest(
        driver=pb.Driver(protocol_version=PROTOCOL_VERSION, id="d", application="Pairs", checkpoint="c"),
        sources=[
            pb.Source(
                port=1, path="0/sources/0", name="pairs", host="127.0.0.1", framing="worker", max_message_bytes=1000,
                header_bytes=1, worker="main", target=target,
            )
        ],
        generators=[pb.Generator(port=2, path="1/sources/0", name="numbers", worker="main", target=target)],
        fsync="never", backlog_bytes=1 << 20,
    )  # fmt: skip


def attached(place: Place, target: str) -> tuple[RemoteJournal, tuple[str, int]]:
    """Attach; returns the journal, and where the source listens."""
    reply = ServiceClient(place.service, 10.0).call("Attach", request(target))
    service = place.service.attached(reply.epoch, reply.store)

    def addresses() -> list[str]:
        status = json.loads(ServiceClient(service).call("Status", pb.StatusRequest(epoch=service.epoch)).document)
        return [source["address"] for source in status.get("sources", ())]

    wait_until(lambda: bool(addresses()), lambda: "the source to listen")
    host, _, port = addresses()[0].rpartition(":")
    return RemoteJournal(service), (host, int(port))


def counted(journal: RemoteJournal) -> dict[int, int]:
    """Return how many messages of each port are in the journal."""
    found: dict[int, int] = {}
    for data in journal.read(0, journal.end().offset):
        for header, _, _ in split_frames(data):
            found[header.port] = found.get(header.port, 0) + header.count
    return found


def test_messages_are_cut_and_made_beside_the_gateway(workers: HostedWorkers, tmp_path: Path) -> None:
    target = workers.target("main")
    data = b"\x02abcd" + b"\x00" + b"\x01xy"
    with serving("gateway", tmp_path / "data") as place:
        journal, address = attached(place, target)
        with socket.create_connection(address, timeout=30) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
        wait_until(lambda: counted(journal) == {1: 3, 2: 100}, lambda: f"all messages, have {counted(journal)}")
    # Started again it goes on at once, and makes nothing twice.
    with serving("gateway", tmp_path / "data") as place:
        journal, address = attached(place, target)
        with socket.create_connection(address, timeout=30) as connection:
            connection.sendall(data)
        wait_until(lambda: counted(journal) == {1: 6, 2: 100}, lambda: f"all messages, have {counted(journal)}")


def test_a_gateway_without_them_says_so(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as place:
        assert code_of(lambda: ServiceClient(place.service, 1.0).call("Attach", request(""))) == "R647"
