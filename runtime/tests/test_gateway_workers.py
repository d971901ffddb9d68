"""Workers at a remote gateway: they cut and make messages, from the archive that the driver runs."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from support.run import wait_until
from support.service import Place, code_of, serving
from wallaroo.frame import split_frames
from wallaroo_runtime.archive.archive import Archive, read_archive
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.gateway_workers import HostedWorkers
from wallaroo_runtime.program.pack import PackOptions, pack
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.client import Client
from wallaroo_runtime.service.store import PROTOCOL_VERSION
from wallaroo_runtime.storage.remote_journal import RemoteJournal
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


def request(archive: str, worker: str = "main") -> pb.AttachJournalRequest:
    """Return what a driver of the program asks for."""
    return pb.AttachJournalRequest(
        driver=pb.Driver(protocol_version=PROTOCOL_VERSION, id="d", application="Pairs", checkpoint="c"),
        sources=[
            pb.Source(
                port=1, path="0/sources/0", name="pairs", host="127.0.0.1", framing="worker", max_message_bytes=1000,
                header_bytes=1, worker=worker,
            )
        ],
        generators=[pb.Generator(port=2, path="1/sources/0", name="numbers", worker=worker)],
        archive=archive, fsync="never", backlog_bytes=1 << 20,
    )  # fmt: skip


def attached(place: Place, archive: str) -> tuple[RemoteJournal, tuple[str, int]]:
    """Attach; returns the journal, and where the source listens."""
    reply = Client(place.service, 10.0).call("Attach", request(archive))
    service = place.service.attached(reply.epoch, reply.store)

    def addresses() -> list[str]:
        status = json.loads(Client(service).call("Status", pb.StatusRequest(epoch=service.epoch)).document)
        return [source["address"] for source in status.get("sources", ())]

    wait_until(lambda: bool(addresses()), lambda: "the source to listen", 30)
    host, _, port = addresses()[0].rpartition(":")
    return RemoteJournal(service), (host, int(port))


def counted(journal: RemoteJournal) -> dict[int, int]:
    """Return how many messages of each port are in the journal."""
    found: dict[int, int] = {}
    for data in journal.read(0, journal.end().offset):
        for header, _, _ in split_frames(data):
            found[header.port] = found.get(header.port, 0) + header.count
    return found


def test_messages_are_cut_and_made_beside_the_gateway(archive: Archive, workers: HostedWorkers, tmp_path: Path) -> None:
    data = b"\x02abcd" + b"\x00" + b"\x01xy"
    with serving("gateway", tmp_path / "data", workers=workers) as place:
        journal, address = attached(place, archive.digest)
        with socket.create_connection(address, timeout=30) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b""
        wait_until(lambda: counted(journal) == {1: 3, 2: 100}, lambda: f"all messages, have {counted(journal)}", 30)
    # Started again it goes on at once, and makes nothing twice.
    with serving("gateway", tmp_path / "data", workers=workers) as place:
        journal, address = attached(place, archive.digest)
        with socket.create_connection(address, timeout=30) as connection:
            connection.sendall(data)
        wait_until(lambda: counted(journal) == {1: 6, 2: 100}, lambda: f"all messages, have {counted(journal)}", 30)


def test_only_the_archive_that_the_driver_runs_is_asked(
    archive: Archive, workers: HostedWorkers, tmp_path: Path
) -> None:
    with serving("gateway", tmp_path / "one") as place:
        assert code_of(lambda: Client(place.service, 1.0).call("Attach", request(archive.digest))) == "R647"
    with serving("gateway", tmp_path / "two", workers=workers) as place:
        client = Client(place.service, 1.0)
        for other, expected in (("0" * 64, "0" * 64), ("", "a program that is not packed")):
            with pytest.raises(RunError) as caught:
                client.call("Attach", request(other))
            text, fix = str(caught.value).splitlines()
            assert text.startswith("R680 the gateway at 127.0.0.1:")
            assert text.endswith(f" has archive {archive.digest}; the driver runs {expected}")
            assert fix == "  fix: start the gateway again with --archive and the archive that is run"
        assert code_of(lambda: client.call("Attach", request(archive.digest, worker="other"))) == "R648"
        attached(place, archive.digest)
    workers.digest = "1" * 64  # another archive: it waits for the driver that runs it
    with serving("gateway", tmp_path / "two", workers=workers) as place:
        assert json.loads(Client(place.service).call("Status", pb.StatusRequest()).document) == {}


def test_an_archive_that_cannot_be_used_is_told_at_the_start(
    archive: Archive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["gateway", "--journal", str(tmp_path), "--listen", "127.0.0.1:0", "--archive"]
    assert main([*command, str(tmp_path / "none.tar.gz")]) == 2
    assert capsys.readouterr().err.startswith(f"R616 {tmp_path}/none.tar.gz cannot be read; ")
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(archive.path.read_bytes()[:-100])
    assert main([*command, str(broken)]) == 1
    assert capsys.readouterr().err.startswith(f"R655 {broken} is not the archive of an application, or was changed ")
