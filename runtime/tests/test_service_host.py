"""Which driver a service works for, and when what runs begins again: drawn attachments, compared with a reference."""

import os
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.host import Host
from wallaroo_runtime.service.status import StatusFile

RESTART = None
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


class Service(Host):
    """Remembers with what its parts were made, and how often its data was removed."""

    request = pb.AttachOutboxRequest

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
        return Part(self.data)

    def end(self) -> None:
        self.close()
        os.close(self.lock_file)


def wanted(resend_bytes: int, sinks: list[tuple[int, str, str | None]]) -> pb.AttachOutboxRequest:
    request = pb.AttachOutboxRequest(resend_bytes=resend_bytes)
    for port, name, cookie in sinks:
        request.sinks.add(port=port, name=name, host="h", tcp_port=1, cookie=cookie)
    return request


@settings(deadline=None, max_examples=40)
@given(st.booleans(), st.lists(st.just(RESTART) | ATTACHMENTS, max_size=8))
def test_a_service_works_for_the_latest_driver_alone(is_local: bool, events: list) -> None:  # type: ignore[type-arg]
    with TemporaryDirectory() as folder:
        directory, checkpoint = Path(folder) / "service", Path(folder) if is_local else None
        host = Service(directory, checkpoint)
        epoch, latest, cleared, starts = 0, ("", ""), 0, 0
        running: pb.AttachOutboxRequest | None = None
        config: pb.AttachOutboxRequest | None = None
        for event in events:
            if event is RESTART:
                host.end()
                host = Service(directory, checkpoint)
                running = None if is_local else config
                starts = int(running is not None)
            else:
                driver, name, fresh, resend_bytes, sinks = event
                request = wanted(resend_bytes, sinks)
                who = pb.Driver(protocol_version=1, id=driver, application="app", checkpoint=name, fresh=fresh)
                sent = pb.AttachOutboxRequest(driver=who)
                sent.MergeFrom(request)
                is_other = latest[1] not in ("", name)
                if is_other and not fresh:
                    with pytest.raises(RunError, match="R649"):
                        host.attach(sent)
                else:
                    epoch += latest[0] != driver
                    cleared += is_other
                    starts += is_other or running != request
                    latest, running, config = (driver, name), request, request
                    reply = host.attach(sent)
                    assert (reply.epoch, reply.store) == (epoch, f"{cleared:016x}")
                    assert reply.directory == (folder if is_local else "")
            assert len(host.made) == starts
            assert (host.made[-1] if host.made else None) == running
            assert host.store.attachment.epoch == epoch
        host.end()
