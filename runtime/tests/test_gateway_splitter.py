"""The gateway with a framing that only the user's decoder knows."""

import json
import socket
import threading
from pathlib import Path
from unittest import mock

import pytest

from support.part import journal_request
from wallaroo.message.frame import read_frame, split_frames
from wallaroo_runtime.gateway.gateway import Gateway
from wallaroo_runtime.gateway.intake import Intake
from wallaroo_runtime.gateway.service import worker_maker, worker_splitter
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.worker.idempotent_call import WorkerSplitter

DEADLINE_S = 90.0
SOURCE = {
    "path": "0/sources/0", "name": "lines", "host": "127.0.0.1", "framing": "worker", "header_bytes": 2,
    "max_message_bytes": 50,
}  # fmt: skip


def finish(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b""


def is_reset(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) != b""
    except ConnectionResetError:
        return True


class Lines:
    """A splitter as a decoder with a text header of 2 digits would make; slow, and wrong when told so."""

    def split(self, data: bytes) -> tuple[list[int], int]:
        lengths: list[int] = []
        at = 0
        while at + 2 <= len(data):
            if data[at : at + 2] == b"!!":
                return [len(data) + 1], 0
            end = at + 2 + int(data[at : at + 2])
            if end > len(data):
                return lengths, end - at
            lengths.append(end - at)
            at = end
        return lengths, 0


def test_framing_that_only_the_worker_knows(tmp_path: Path) -> None:
    gateway = Gateway(tmp_path, journal_request(sources=[SOURCE]), lambda _: Lines(), worker_maker)
    thread = threading.Thread(target=gateway.run)
    thread.start()
    try:
        address = gateway.addresses()[0]
        with socket.create_connection(address, timeout=DEADLINE_S) as connection:
            for byte in b"02hi00" + b"11hello world":
                connection.sendall(bytes((byte,)))
            finish(connection)
        with socket.create_connection(address, timeout=DEADLINE_S) as connection:
            connection.sendall(b"02ok99")
            assert is_reset(connection)
        with socket.create_connection(address, timeout=DEADLINE_S) as connection:
            connection.sendall(b"!!")
            assert is_reset(connection)
    finally:
        gateway.stop()
        thread.join(DEADLINE_S)
    reader = JournalReader(tmp_path / "journal")
    end = reader.end()
    assert b"".join(read_frame(p, at).data for p in reader.read(0, end.offset) for _, at, _ in split_frames(p)) == (
        b"02hi0011hello world02ok"
    )
    assert end.messages == 4
    codes = [finding["code"] for finding in json.loads((tmp_path / "gateway.json").read_bytes())["diagnostics"]]
    assert codes == ["R606", "W410"]


class Patient:
    """A splitter that answers when the test lets it."""

    def __init__(self) -> None:
        self.is_asked, self.may_answer = threading.Event(), threading.Event()

    def split(self, data: bytes) -> tuple[list[int], int]:
        self.is_asked.set()
        assert self.may_answer.wait(DEADLINE_S)
        return [], 1 << 20


@pytest.mark.parametrize("reads_at_the_answer", [True, False])
def test_a_peer_whose_bytes_wait_for_the_worker_is_not_late_when_reading_resumes(
    tmp_path: Path, reads_at_the_answer: bool
) -> None:
    source, now = SOURCE | {"max_message_bytes": 1 << 20}, 1000.0
    worker = Patient()
    gateway = Gateway(tmp_path, journal_request(sources=[source]), lambda _: worker, worker_maker)
    with (
        mock.patch("wallaroo_runtime.gateway.gateway.time.monotonic", lambda: now),
        mock.patch.object(Intake, "accepts", new_callable=mock.PropertyMock, return_value=True) as accepts,
        socket.create_connection(gateway.addresses()[0], timeout=DEADLINE_S) as peer,
        mock.patch.object(gateway, "_stopping", False),
    ):
        peer.sendall(bytes(100_000))
        while not worker.is_asked.is_set():
            gateway._regulate()
            gateway._serve(0.1)
        for accepts.return_value in (False, True):
            gateway._regulate()
            now += 1000.0
            gateway._tick(now)
        accepts.return_value = reads_at_the_answer
        gateway._regulate()
        worker.may_answer.set()
        while not (connection := next(iter(gateway._connections))).wanted:
            gateway._serve(0.1)
        if not reads_at_the_answer:
            now += 1000.0
        gateway._tick(now)
        assert not gateway.status.diagnostics
        accepts.return_value = True
        gateway._regulate()
        assert connection.pace.behind_s(now) <= 0
        now += 1000.0
        gateway._tick(now)
    assert [finding.code for finding in gateway.status.diagnostics] == ["R607"]
    gateway._close(None)


def test_the_process_finds_the_splitter_of_the_worker() -> None:
    splitter = worker_splitter(pb.Source(**SOURCE, target="unix:/nowhere"))
    assert isinstance(splitter, WorkerSplitter)
    splitter.close()
