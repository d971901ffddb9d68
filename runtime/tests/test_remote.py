"""Gateway and egress as services: who may call them, what survives, and what garbage does."""

import json
import socket
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import pytest

from support.remote_journal import RemoteJournal
from support.remote_staging import RemoteStaging
from support.run import wait_until
from support.service import (
    SINK,
    TOKEN,
    Place,
    certified,
    close_channels,
    code_of,
    listening,
    serving,
    wait_until_listening,
)
from wallaroo.message.frame import (
    DEAD_LETTER_PORT,
    TICK_PORT,
    encode_frame,
    split_frames,
)
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.service import GatewayHost
from wallaroo_runtime.peer.standalone import ServiceOptions, listen_of
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import PROTOCOL_VERSION
from wallaroo_runtime.service.client import ServiceClient, channel_to
from wallaroo_runtime.service.credential import Listen, make_token, read_token
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.service.server import serve
from wallaroo_runtime.storage.journal.head import Position
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.outbox.log import LogReader
from wallaroo_runtime.storage.outbox.staging import StagedFile
from wallaroo_runtime.storage.remote_outbox import RemoteOutbox


def send(address: str, payloads: list[bytes]) -> None:
    """Send messages and wait for the gateway's EOF."""
    name, _, port = address.rpartition(":")
    with socket.create_connection((name, int(port)), timeout=30) as connection:
        connection.sendall(b"".join(len(payload).to_bytes(4, "big") + payload for payload in payloads))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


def source_of(place: Place) -> str:
    """Return where the gateway listens for its source."""
    status = json.loads(
        ServiceClient(place.service).call("Status", pb.StatusRequest(epoch=place.service.epoch)).document
    )
    return str(status["sources"][0]["address"])


def stage(service: Service, batch: int, frames: dict[int, list[bytes]], task: int = 0) -> list[StagedFile]:
    """Stage frames as one attempt."""
    staging = RemoteStaging(service, "q", batch, 0, task, patience_s=5.0)
    for port, mine in frames.items():
        for frame in mine:
            staging.write(port, frame)
    return staging.finish()


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    payloads = [b"x" * size for size in (0, 1, 70_000, 3 << 20)] + [b"small"] * 1000
    with serving("gateway", tmp_path) as place:
        listening(place)
        send(source_of(place), payloads)
        journal = RemoteJournal(place.service)
        end = journal.end()
        assert end.messages == len(payloads)
        whole = b"".join(journal.read(0, end.offset))
        assert len(whole) == end.offset
        parts = pairwise([0, *journal.split(0, end.offset, 3)])
        assert b"".join(data for first, last in parts for data in journal.read(first, last)) == whole
        first = journal.limit(Position(0, 0, end.journal_id), 1)
        assert 0 < first.offset <= end.offset
        assert b"".join(journal.read(0, first.offset)) == whole[: first.offset]
        assert journal.limit(first, 1 << 30) == end
        journal.commit(end.offset)
        assert (tmp_path / "journal" / "committed").read_text().split()[0] == f"{end.offset}"


def test_a_gateway_elsewhere_writes_ticks(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as place:
        place.service = place.attach(tick_ms=20)
        journal = RemoteJournal(place.service)
        wait_until(lambda: journal.end().offset >= 80, lambda: "two ticks")
        headers = [header for data in journal.read(0, 80) for header, _, _ in split_frames(data)]
        assert journal.limit(Position(0, 5, journal.end().journal_id), 40).messages == 5
    assert [(header.port, header.sequence) for header in headers] == [(TICK_PORT, 0), (TICK_PORT, 1)]


def test_a_gateway_that_starts_again_listens_at_once_and_keeps_its_data(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as place:
        listening(place)
        send(source_of(place), [b"one", b"two"])
        before, end = place.service, RemoteJournal(place.service).end()
    with serving("gateway", tmp_path) as place:
        place.service = replace(before, address=place.service.address)
        wait_until_listening(place)
        send(source_of(place), [b"three"])
        journal = RemoteJournal(place.service, end.journal_id)
        assert journal.end().messages == 3
        assert b"one" in b"".join(journal.read(0, end.offset))


def test_an_attachment_that_cannot_listen_leaves_the_gateway_as_it_was(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as place, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for _ in range(2):  # the second attempt met the first one's lock of the journal
            assert code_of(lambda: place.attach("d1", tcp_port=port)) == "R714"
        listening(place)
        send(source_of(place), [b"one"])
        epoch = place.service.epoch
        assert code_of(lambda: place.attach("d2", tcp_port=port)) == "R714"
        wait_until_listening(place)  # it serves the first driver
        send(source_of(place), [b"two"])
        assert RemoteJournal(place.service).end().messages == 2
        assert place.attach("d2").epoch == epoch + 1


@pytest.mark.parametrize("kind", ["gateway", "egress"])
def test_only_the_right_token_is_served(tmp_path: Path, kind: str) -> None:
    with serving(kind, tmp_path) as place:
        service = place.attach()
        for token in ("", "wrong", TOKEN[:-1], TOKEN + "x"):
            client = ServiceClient(replace(service, token=token), 1.0)
            assert code_of(lambda client=client: client.call("Status", pb.StatusRequest(epoch=1))) == "R641"  # type: ignore[misc]
        stub = ServiceClient(service).stub
        with pytest.raises(grpc.RpcError) as caught:
            stub.Status(pb.StatusRequest(epoch=1))
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("kind", ["gateway", "egress"])
def test_an_older_driver_is_refused(tmp_path: Path, kind: str) -> None:
    with serving(kind, tmp_path) as place:
        first = place.attach("d1")
        assert place.attach("d1").epoch == first.epoch, "a call that is repeated is the same driver's"
        second = place.attach("d2")
        assert second.epoch > first.epoch
        assert code_of(lambda: ServiceClient(first).call("Status", pb.StatusRequest(epoch=first.epoch))) == "R644"
        assert code_of(lambda: ServiceClient(first).call("Status", pb.StatusRequest(epoch=99))) == "R648"
        if kind == "gateway":
            assert code_of(lambda: RemoteJournal(first).end()) == "R644"
        else:
            assert code_of(lambda: RemoteOutbox(first).publish("q", 1, [])) == "R644"
            assert code_of(lambda: stage(first, 1, {SINK: [encode_frame([b"a"], port=SINK)]})) == "R644"


@pytest.mark.parametrize("kind", ["gateway", "egress"])
def test_data_of_another_checkpoint_is_left_alone(tmp_path: Path, kind: str) -> None:
    with serving(kind, tmp_path) as place:
        first = place.attach("d1", "c1")
        assert code_of(lambda: place.attach("d2", "c2")) == "R649"
        assert code_of(lambda: place.attach("d2", "c1", store="0123456789abcdef")) == "R643"
        assert place.attach("d2", "c1", store=first.store).store == first.store
        assert place.attach("d3", "c3", fresh=True).store != first.store


def test_what_cannot_be_an_attachment_is_refused(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as place:
        driver = pb.Driver(protocol_version=PROTOCOL_VERSION, id="d", application="a", checkpoint="c")
        source = pb.Source(port=1, path="p", name="in", host="127.0.0.1", framing="worker", max_message_bytes=9)

        def attach(**values: Any) -> str:
            request = pb.AttachJournalRequest(
                **{"driver": driver, "fsync": "never", "backlog_bytes": 9, "sources": [], **values}
            )
            return code_of(lambda: ServiceClient(place.service, 1.0).call("Attach", request))

        assert attach(sources=[source]) == "R647"
        source.framing = "u32be"
        assert attach(sources=[source] * 1001) == "R648"
        assert attach(sources=[source], fsync="perhaps") == "R648"
        assert attach(sources=[source], driver=pb.Driver(protocol_version=1, id="d", checkpoint="c")) == "R648"


def test_ranges_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with serving("gateway", tmp_path) as place:
        listening(place)
        send(source_of(place), [b"message"])
        journal = RemoteJournal(place.service)
        end = journal.end().offset
        assert code_of(lambda: list(journal.read(0, end + 1))) == "R698"
        assert code_of(lambda: list(journal.read(3, end))) == "R698"
        assert code_of(lambda: journal.commit(end + 1)) == "R698"
        assert code_of(lambda: RemoteJournal(place.service, 1).end()) == "R698"
        assert (
            code_of(lambda: ServiceClient(place.service).call("Limit", pb.LimitRequest(epoch=1, journal="zz")))
            == "R648"
        )


def test_a_huge_message_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with serving("egress", tmp_path) as place:
        service = place.attach()
        requests = [
            pb.StageRequest(attempt=pb.Attempt(epoch=service.epoch, query="q")),
            pb.StageRequest(port=SINK, chunk=pb.Chunk(data=bytes(2_500_000))),
        ]
        with channel_to(service) as _, pytest.raises(grpc.RpcError) as caught:
            raw = grpc.insecure_channel(service.address, options=[("grpc.max_send_message_length", 10_000_000)])
            with raw:
                call = raw.stream_unary(
                    "/wallaroo.service.v1.OutboxService/Stage",
                    request_serializer=pb.StageRequest.SerializeToString,
                    response_deserializer=pb.StageReply.FromString,
                )
                call(iter(requests), metadata=(("authorization", f"Bearer {TOKEN}"),), timeout=30)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert not list(tmp_path.rglob("*.frames"))


def staged_raw(service: Service, *chunks: pb.StageRequest, query: str = "q", is_whole: bool = True) -> Any:
    """Call Stage with exactly these messages after the first one, and before the last."""
    client = ServiceClient(service)
    first = pb.StageRequest(attempt=pb.Attempt(epoch=service.epoch, query=query))
    try:
        last = [pb.StageRequest(is_last=True)] if is_whole else []
        return client.stub.Stage(iter((first, *chunks, *last)), metadata=client.metadata, timeout=30)
    except grpc.RpcError as error:
        raise client.failure(error) from error


def test_garbage_is_not_staged(tmp_path: Path) -> None:
    frame = encode_frame([b"message"], port=SINK)
    broken = frame[:-1] + bytes([frame[-1] ^ 1])
    with serving("egress", tmp_path) as place:
        service = place.attach()

        def refused(*chunks: pb.StageRequest, query: str = "q") -> bool:
            return code_of(lambda: staged_raw(service, *chunks, query=query)) == "R648"

        assert refused(pb.StageRequest(port=SINK, chunk=pb.Chunk(data=b"garbage" * 100)))
        assert refused(pb.StageRequest(port=SINK, chunk=pb.Chunk(data=broken)))
        assert refused(pb.StageRequest(port=SINK, chunk=pb.Chunk(data=frame[:20])))
        assert refused(pb.StageRequest(port=SINK, chunk=pb.Chunk(data=frame[:20], is_continued=True)))
        assert refused(pb.StageRequest(port=SINK, chunk=pb.Chunk(is_continued=True)))
        assert refused(pb.StageRequest(port=SINK + 1, chunk=pb.Chunk(data=frame)))
        assert refused(query="../q")
        whole = pb.StageRequest(port=SINK, chunk=pb.Chunk(data=frame))
        # What a server sees of a stream that was cancelled may be an end.
        assert code_of(lambda: staged_raw(service, whole, is_whole=False)) == "R648"
        assert not list(tmp_path.rglob("*.frames"))
        file = pb.StagedFile(port=SINK, name="../../token", bytes=1)
        request = pb.PublishRequest(epoch=service.epoch, query="q", files=[file])
        assert code_of(lambda: ServiceClient(service).call("Publish", request)) == "R648"


def test_output_is_published_once_and_survives_a_restart(tmp_path: Path) -> None:
    large = encode_frame([b"y" * (3 << 20)], port=SINK)
    small = [encode_frame([b"a", b"b"], port=SINK), encode_frame([b"c"], port=SINK)]
    letter = encode_frame([b"letter"], port=DEAD_LETTER_PORT)
    with serving("egress", tmp_path) as place:
        service = place.attach()
        files = stage(service, 4, {SINK: [*small, large], DEAD_LETTER_PORT: [letter]})
        assert [(file.port, file.messages) for file in files] == [(SINK, 4), (DEAD_LETTER_PORT, 1)]
        assert b"".join(RemoteOutbox(service).read_staged(files[1])) == letter
    with serving("egress", tmp_path) as place:
        service = replace(service, address=place.service.address)
        outbox = RemoteOutbox(service)
        assert outbox.publish("q", 4, files)
        assert not outbox.publish("q", 4, files)
        assert outbox.size() == files[0].bytes
        (record,) = LogReader(tmp_path / "outbox").records()
        assert (tmp_path / "outbox" / record.files[0].name).read_bytes() == b"".join([*small, large])
        assert [path.read_bytes() for path in (tmp_path / "dead-letters").iterdir()] == [letter]
        assert not list((tmp_path / "staging").rglob("*.frames"))


def test_a_driver_that_attaches_learns_the_last_micro_batch(tmp_path: Path) -> None:
    with serving("egress", tmp_path) as place:
        service = place.attach()
        outbox = RemoteOutbox(service)
        assert outbox.publish(
            "q", 0, stage(service, 0, {DEAD_LETTER_PORT: [encode_frame([b"a"], port=DEAD_LETTER_PORT)]}), "p"
        )
        assert outbox.publish("q", 1, [], "plan of 1")
        assert outbox.letters() == 1
    with serving("egress", tmp_path) as place:
        who = pb.Driver(protocol_version=PROTOCOL_VERSION, id="d2", application="app", checkpoint="c1")
        reply = ServiceClient(place.service, 1.0).call("Attach", pb.AttachOutboxRequest(driver=who))
        assert (reply.query, reply.batch, reply.offsets) == ("q", 1, "plan of 1")


def test_a_stream_that_breaks_leaves_nothing(tmp_path: Path) -> None:
    with serving("egress", tmp_path) as place:
        service = place.attach()
        staging = RemoteStaging(service, "q", 1, 0, 0)
        for _ in range(3):
            staging.write(SINK, encode_frame([b"z" * 700_000], port=SINK))
        wait_until(lambda: bool(list(tmp_path.rglob("*.frames"))), lambda: "a staged file")
        staging.abort()
        wait_until(lambda: not list(tmp_path.rglob("*.frames")), lambda: "the staged file to go")
        assert code_of(lambda: RemoteOutbox(service).publish("q", 1, staging.so_far())) == "R698"


def test_a_publication_that_was_cut_short_is_repeated(tmp_path: Path) -> None:
    with serving("egress", tmp_path) as place:
        service = place.attach()
        files = stage(service, 0, {SINK: [encode_frame([b"a"], port=SINK)]})
        # As after a kill between giving the file its name and the record.
        staged = tmp_path / "staging" / str(service.epoch) / files[0].path
        (tmp_path / "outbox" / f"q-0-0-{SINK}.frames").hardlink_to(staged)
    with serving("egress", tmp_path) as place:
        assert RemoteOutbox(replace(service, address=place.service.address)).publish("q", 0, files)
        assert len(list(LogReader(tmp_path / "outbox").records())) == 1


def test_a_service_that_is_away_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    client = ServiceClient(Service("gateway", address, TOKEN, epoch=1), 0.2)
    with pytest.raises(RunError) as caught:
        client.call("Limit", pb.LimitRequest(epoch=1))
    assert f"R642 the gateway at {address} cannot be reached;" in str(caught.value)
    assert "start it with `wallaroo gateway`" in str(caught.value)
    close_channels()


def test_token_files(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token = make_token(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert make_token(path) == read_token(path) == token
    path.chmod(0o640)
    with pytest.raises(RunError) as caught:
        read_token(path)
    assert f"R640 token file {path} cannot be used; its mode is 0640, so that others can use it" in str(caught.value)
    for content in ("", "short", "two words of a token", "ü" * 20):
        path.write_text(content)
        path.chmod(0o600)
        assert code_of(lambda: read_token(path)) == "R640"
    assert code_of(lambda: read_token(tmp_path / "none")) == "R640"
    assert code_of(lambda: read_token(tmp_path)) == "R640"


def test_beyond_loopback_a_token_of_the_operator_is_needed(tmp_path: Path) -> None:
    with pytest.raises(RunError) as caught:
        listen_of("gateway", ServiceOptions(tmp_path, "0.0.0.0:0"))
    text = str(caught.value)
    assert "R645 the gateway would listen without a token at 0.0.0.0:0, which other machines can reach" in text
    assert not (tmp_path / "token").exists()
    make_token(tmp_path / "mine")
    _, findings = listen_of("egress", ServiceOptions(tmp_path, "0.0.0.0:0", tmp_path / "mine"))
    assert [str(finding).split("\n")[0] for finding in findings] == [
        "R651 the egress listens at 0.0.0.0:0 without TLS; token and messages can be read on the network"
    ]
    assert code_of(lambda: listen_of("egress", ServiceOptions(tmp_path, "127.0.0.1:0", certificate=tmp_path))) == "R608"


def test_a_service_that_cannot_listen_leaves_no_socket(tmp_path: Path) -> None:
    listen = Listen(f"unix:{tmp_path / 'socket'}", certificate=b"no PEM", key=b"no PEM")
    assert code_of(lambda: serve("egress", listen, lambda server: None)) == "R714"
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_tls(tmp_path: Path) -> None:
    certificate, key = certified(tmp_path)
    with serving("egress", tmp_path / "e", certificate=certificate.read_bytes(), key=key.read_bytes()) as place:
        plain = ServiceClient(place.service, 0.2)
        assert code_of(lambda: plain.call("Status", pb.StatusRequest(epoch=1))) == "R642"
        close_channels()
        place.service = replace(place.service, authority=certificate.read_text())
        service = place.attach()
        assert RemoteOutbox(service).size() == 0


def test_two_processes_do_not_share_a_directory(tmp_path: Path) -> None:
    JournalWriter(tmp_path / "journal").close()
    with serving("gateway", tmp_path):
        assert code_of(lambda: GatewayHost(tmp_path, "elsewhere")) == "R610"
