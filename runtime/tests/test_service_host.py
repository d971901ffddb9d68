"""Which driver a service works for, and when what runs begins again: drawn attachments, compared with a reference."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo_runtime.errors import RUN, RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import ATTACHMENT_FILE, PROTOCOL_VERSION
from wallaroo_runtime.service.host import Host
from wallaroo_runtime.service.server import serve_until
from wallaroo_runtime.service.status import StatusFile

RESTART = None
Sink = tuple[int, str, str | None]
SINKS = st.lists(st.tuples(st.integers(0, 9), st.text(max_size=3), st.none() | st.text(max_size=3)), max_size=2)
ATTACHMENTS = st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.booleans(), st.integers(0, 1 << 63), SINKS)


class Part:
    """Runs until stopped."""

    def __init__(self, directory: Path) -> None:
        self.status = StatusFile(directory / "part.json")
        self._stopped = threading.Event()

    def run(self) -> None:
        self._stopped.wait()

    def stop(self) -> None:
        self._stopped.set()


class FailingPart(Part):
    """Cannot go on."""

    def __init__(self, directory: Path, error: Exception) -> None:
        super().__init__(directory)
        self._error = error

    def run(self) -> None:
        raise self._error


class Service(Host):
    """Remembers with what its parts were made, and how often its data was removed."""

    request = pb.AttachOutboxRequest
    fails_with: Exception | None = None

    def __init__(self, directory: Path, checkpoint: Path | None) -> None:
        super().__init__("egress", directory, "here", checkpoint)
        self.made: list[pb.AttachOutboxRequest] = []
        self.resume()

    def id(self) -> str:
        return f"{len(list(self.data.glob('cleared-*'))):016x}"

    def clear(self) -> None:
        (self.data / f"cleared-{self.id()}").touch()

    def answer(self, server: grpc.Server) -> None:
        raise NotImplementedError

    def make(self, config: pb.AttachOutboxRequest) -> Part:
        self.made.append(config)
        return Part(self.data) if self.fails_with is None else FailingPart(self.data, self.fails_with)

    def end(self) -> None:
        self.close()
        os.close(self.lock_file)


def wanted(backlog_bytes: int, sinks: list[Sink]) -> pb.AttachOutboxRequest:
    request = pb.AttachOutboxRequest(backlog_bytes=backlog_bytes)
    for port, name, cookie in sinks:
        request.sinks.add(port=port, name=name, host="h", tcp_port=1, cookie=cookie)
    return request


class Reference:
    """What a service should do."""

    def __init__(self, *, is_local: bool) -> None:
        self.is_local, self.epoch, self.cleared, self.starts = is_local, 0, 0, 0
        self.driver = self.checkpoint = ""
        self.running: pb.AttachOutboxRequest | None = None
        self.latest: pb.AttachOutboxRequest | None = None

    def restart(self) -> None:
        self.running = None if self.is_local else self.latest
        self.starts = int(self.running is not None)

    def attach(self, driver: str, checkpoint: str, fresh: bool, request: pb.AttachOutboxRequest) -> bool:
        """Return whether the driver is served."""
        is_other = self.checkpoint not in ("", checkpoint)
        if is_other and not fresh:
            return False
        self.epoch += self.driver != driver
        self.cleared += is_other
        self.starts += is_other or self.running != request
        self.driver, self.checkpoint, self.running, self.latest = driver, checkpoint, request, request
        return True


@settings(deadline=None, max_examples=40)
@given(st.booleans(), st.lists(st.just(RESTART) | ATTACHMENTS, max_size=8))
def test_a_service_works_for_the_latest_driver_alone(is_local: bool, events: list) -> None:  # type: ignore[type-arg]
    reference = Reference(is_local=is_local)
    with TemporaryDirectory() as folder:
        directory, checkpoint = Path(folder) / "service", Path(folder) if is_local else None
        host = Service(directory, checkpoint)
        for event in events:
            if event is RESTART:
                host.end()
                host = Service(directory, checkpoint)
                reference.restart()
            else:
                attach(host, reference, *event)
                if reference.driver:  # what has sources and sinks has their secrets
                    kept = json.loads((directory / ATTACHMENT_FILE).read_bytes())["config"]
                    assert ("sinks" in kept) != is_local
            assert len(host.made) == reference.starts
            assert (host.made[-1] if host.made else None) == reference.running
            assert host.store.attachment.epoch == reference.epoch
        host.end()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("error", [OSError("no"), RunError.of("R698", what="x", reason="y"), KeyError("ours")])
def test_a_service_that_cannot_go_on_ends(tmp_path: Path, error: Exception) -> None:
    host = Service(tmp_path / "service", None)
    host.fails_with = error
    attach(host, Reference(is_local=False), "a", "x", False, 0, [])
    assert serve_until(lambda seconds: False, host, grpc.server(ThreadPoolExecutor(1))) == RUN
    with pytest.raises(RunError, match="it ends"):
        host.attach(wanted(0, []))
    host.end()


class LatePart(Part):
    """Ends some time after it was stopped."""

    def __init__(self, directory: Path, may_end: threading.Event) -> None:
        super().__init__(directory)
        self._may_end = may_end

    def run(self) -> None:
        super().run()
        self._may_end.wait()


def test_no_second_part_works_before_the_first_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wallaroo_runtime.service.host.STOP_S", 0.01)
    host, may_end, late = Service(tmp_path / "service", None), threading.Event(), Reference(is_local=False)
    with monkeypatch.context() as patch:
        patch.setattr(host, "make", lambda config: LatePart(host.data, may_end))
        attach(host, late, "a", "x", False, 0, [])
    for _ in range(2):
        with pytest.raises(
            RunError, match="R610 the egress at here is in use by an earlier driver, whose work has not"
        ):
            attach(host, late, "b", "x", False, 1, [])
        assert not host.made
    may_end.set()
    monkeypatch.setattr("wallaroo_runtime.service.host.STOP_S", 60)
    attach(host, late, "b", "x", False, 1, [])
    assert len(host.made) == 1
    host.end()


def attach(
    host: Service,
    reference: Reference,
    driver: str,
    checkpoint: str,
    fresh: bool,
    backlog_bytes: int,
    sinks: list[Sink],
) -> None:
    request = wanted(backlog_bytes, sinks)
    who = pb.Driver(protocol_version=PROTOCOL_VERSION, id=driver, application="app", checkpoint=checkpoint, fresh=fresh)
    sent = pb.AttachOutboxRequest(driver=who)
    sent.MergeFrom(request)
    if not reference.attach(driver, checkpoint, fresh, request):
        with pytest.raises(RunError, match="R649"):
            host.attach(sent)
        return
    reply = host.attach(sent)
    assert (reply.epoch, reply.store) == (reference.epoch, f"{reference.cleared:016x}")
    assert reply.directory == (str(host.data) if host.is_local else "")
