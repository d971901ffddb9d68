"""A changed application with remote gateway and egress: refused until they hold nothing of the old one."""

import copy
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.remote_journal import RemoteJournal
from support.remote_staging import RemoteStaging
from support.run import wait_until
from support.service import TOKEN, Place, serving
from wallaroo.message.frame import encode_frame
from wallaroo_runtime.checkpoint import lock
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.manifest import MICROBATCH, REALTIME, read_manifest
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.limits import Bounds
from wallaroo_runtime.peer.remote import RemoteOptions
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.run.peers import Peers
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.client import ServiceClient
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.storage.remote_outbox import RemoteOutbox
from wallaroo_runtime.topology.load import load_document

VECTORS = Path(__file__).parents[2] / "topology-schema" / "vectors"
WORD_COUNT = json.loads((VECTORS / "topologies" / "valid" / "word_count.json").read_bytes())
SECOND = "0/sinks/1"


class Deployed:
    """Versions of an application, one after the other.

    Args:
        path: Of the checkpoint.
        remote: Where the services are.
        sinks: TCP ports of its two sinks; the second one is gone in the second version.
        mode: How Spark runs it.

    Attributes:
        change: Applied to each version.
    """

    def __init__(self, path: Path, remote: RemoteOptions, sinks: list[int], mode: str = MICROBATCH) -> None:
        self.path, self.remote, self._sinks, self._mode = path, remote, sinks, mode
        self.change: Callable[[Any], object] = lambda _: None

    def document(self, version: int) -> Any:
        """Return the topology."""
        document = copy.deepcopy(WORD_COUNT)
        pipeline = document["pipelines"][0]
        pipeline["sources"][0] |= {"host": "127.0.0.1", "port": 0, "framing": {"kind": ["u32be", "u16be"][version]}}
        pipeline["sinks"].append({**pipeline["sinks"][0], "path": SECOND, "name": "second"})
        for sink, port in zip(pipeline["sinks"], self._sinks, strict=True):
            sink |= {"host": "127.0.0.1", "port": port}
        del pipeline["sinks"][2 - version :]
        self.change(document)
        return document

    def check(self, version: int) -> Checkpoint:
        """Do what a run does before it attaches; nothing of it lives on."""
        taken = lock.HeldDirectory.take(self.path)
        try:
            topology = load_document(self.document(version))
            return Checkpoint.open(
                taken, topology, shuffle_partitions=2, buckets_per_partition=4, remote=self.remote, mode=self._mode
            )
        finally:
            taken.release()

    def start(self, version: int) -> Peers:
        """Attach, as a run does."""
        checkpoint, topology = self.check(version), load_document(self.document(version))
        plan = compile_topology(
            topology, shuffle_partitions=2, buckets_per_partition=4, ports=checkpoint.manifest.ports
        )
        peers = Peers(topology, plan, checkpoint, self.remote, Bounds(), fresh=False)
        with ExitStack() as stack:
            peers.launch(stack)
            peers.start()
        return peers

    def refused(self, version: int) -> str:
        """Return why a version may not run."""
        with pytest.raises(RunError) as caught:
            self.check(version)
        return str(caught.value)

    def process(self, service: Service) -> None:
        """Let Spark's checkpoint say that all of the journal is processed."""
        end = RemoteJournal(service).end()
        offset = {"journal": f"{end.journal_id:016x}", "offset": end.offset, "sequence": end.messages}
        (self.path / "spark" / "metadata").write_text('{"id":"q"}')
        for folder, text in (("commits", "{}"), ("offsets", "{}\n" + json.dumps(offset))):
            (self.path / "spark" / folder).mkdir(exist_ok=True)
            (self.path / "spark" / folder / "0").write_text(f"v1\n{text}")


def sources_of(gateway: Service) -> list[Any]:
    """Return what a gateway says that it listens for, asked by nobody in particular."""
    reply = ServiceClient(gateway).call("Status", pb.StatusRequest())
    sources: list[Any] = json.loads(reply.document).get("sources", [])
    return sources


def send(address: tuple[str, int], data: bytes) -> None:
    """Send bytes and wait for the gateway's EOF."""
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


def listener_of(gateway: Service) -> tuple[str, int]:
    """Return where the gateway's one source listens; waits for it."""
    wait_until(lambda: bool(sources_of(gateway)), lambda: "the gateway to listen")
    host, _, port = sources_of(gateway)[0]["address"].rpartition(":")
    return host, int(port)


@pytest.fixture
def sinks() -> Iterator[list[socket.socket]]:
    """Give two bound sockets that do not listen yet."""
    made = [socket.socket() for _ in range(2)]
    for each in made:
        each.bind(("127.0.0.1", 0))
    yield made
    for each in made:
        each.close()


def publish(egress: Service, port: int, values: list[bytes]) -> None:
    """Put output for a sink into the outbox."""
    staging = RemoteStaging(egress, "q", 0, 0, 0)
    staging.write(port, encode_frame(values, port=port))
    RemoteOutbox(egress).publish("q", 0, staging.finish())


@contextmanager
def services(folder: Path) -> Iterator[tuple[Place, Place, RemoteOptions]]:
    """Serve a gateway and an egress; gives also the options of a run that uses them."""
    token_file = folder / "token"
    token_file.write_text(TOKEN)
    token_file.chmod(0o600)
    with serving("gateway", folder / "g") as gateway, serving("egress", folder / "e") as egress:
        yield gateway, egress, RemoteOptions({"": gateway.service.address}, egress.service.address, token_file)


def test_a_change_that_needs_a_drain_of_services_elsewhere(tmp_path: Path, sinks: list[socket.socket]) -> None:
    with services(tmp_path) as (gateway, egress, remote):
        deployed = Deployed(tmp_path / "checkpoint", remote, [each.getsockname()[1] for each in sinks])
        peers = deployed.start(0)
        at = listener_of(gateway.service)
        send(at, b"\0\0\0\1a\0\0\0\1b")
        assert deployed.refused(1).startswith(
            "R790 the program was changed, and the last run, with the former program, did not complete its work: "
            "checkpoint "
            f"{deployed.path}: the journal has 2 unprocessed messages; "
        )
        # The one that runs has noticed nothing.
        send(at, b"\0\0\0\1c")
        assert "the journal has 3 unprocessed messages" in deployed.refused(1)
        first = peers.gateways[0].service
        deployed.process(first)
        port = deployed.check(0).manifest.ports.parts[SECOND]
        publish(peers.egress.service, port, [b"x", b"y"])
        assert "its outbox has 2 undelivered messages" in deployed.refused(1)
        sinks[1].listen()
        wait_until(lambda: not waiting(egress, port), lambda: "the output to be delivered")
        send(at, b"\0\0\0\1d")
        assert "the journal has 1 unprocessed message;" in deployed.refused(1)
        deployed.process(first)
        changes = [change.text for change in deployed.check(1).changes]
        assert any("framing of source" in text for text in changes)
        assert sources_of(gateway.service) == [], "messages in the old way might come"
        with pytest.raises(ConnectionRefusedError):
            send(at, b"")
        peers = deployed.start(1)
        send(listener_of(gateway.service), b"\0\1e")
        assert RemoteJournal(peers.gateways[0].service).end().messages == 5


def deliver(egress: Service, port: int, sequence: int) -> None:
    """Let a running micro-batch deliver a result of the message of a sequence."""
    frame = encode_frame([b"x"], port=port, sequence=sequence)
    item = pb.Delivery(number=1, port=port, bucket=0, chunk=pb.Chunk(data=frame))
    requests = [
        pb.DeliverRequest(opening=pb.Attempt(epoch=egress.epoch, query="q", batch=1, partition=0, attempt=1)),
        pb.DeliverRequest(deliveries=pb.Deliveries(items=[item])),
    ]
    client = ServiceClient(egress)
    assert [reply.number for reply in client.stub.Deliver(iter(requests), metadata=client.metadata)][-1] == 1


def test_real_time_results_that_left_services_elsewhere(tmp_path: Path, sinks: list[socket.socket]) -> None:
    with services(tmp_path) as (gateway, egress, remote):
        deployed = Deployed(tmp_path / "c", remote, [each.getsockname()[1] for each in sinks], REALTIME)
        peers = deployed.start(0)
        at = listener_of(gateway.service)
        send(at, b"\0\0\0\1a\0\0\0\1b")

        def code(document: Any) -> None:
            document["workers"][0]["code_hash"] = "sha256:" + "7" * 64

        def moved(document: Any) -> None:
            document["pipelines"][0]["sinks"][0]["inputs"] = ["0/steps/0"]

        former = read_manifest(deployed.path)
        deployed.change = code
        waiting = deployed.check(0)  # a driver in another place may still deliver
        assert waiting.accepted == range(0)
        deliver(peers.egress.service, deployed_port(deployed), 1)
        with pytest.raises(RunError, match="R790 .* the results of the messages at positions 0 to 1"):
            waiting.check_repeated(remote, is_attached=True)
        assert read_manifest(deployed.path) == former, "the next start sees a changed program again"
        for deployed.change in (code, moved):
            assert "R790 " in deployed.refused(0)
            assert read_manifest(deployed.path) == former
        send(at, b"\0\0\0\1c")  # the one that runs has noticed nothing
        deployed.process(peers.gateways[0].service)
        checkpoint = deployed.check(0)
        checkpoint.check_repeated(remote, is_attached=True)
        assert checkpoint.accepted == range(0)


def deployed_port(deployed: Deployed) -> int:
    """Return the port of the first sink."""
    return int(json.loads((deployed.path / "application.json").read_bytes())["ports"]["parts"]["0/sinks/0"])


def waiting(egress: Place, port: int) -> int:
    """Return how many messages wait for a sink."""
    reply = ServiceClient(egress.service).call("Status", pb.StatusRequest(ports=[port]))
    return int(reply.waiting_messages)


def test_another_journal_says_nothing_of_this_checkpoint(tmp_path: Path, sinks: list[socket.socket]) -> None:
    token_file = tmp_path / "token"
    token_file.write_text(TOKEN)
    token_file.chmod(0o600)
    with serving("gateway", tmp_path / "g") as gateway:
        remote = RemoteOptions({"": gateway.service.address}, "", token_file)
        deployed = Deployed(tmp_path / "checkpoint", remote, [each.getsockname()[1] for each in sinks])
        deployed.check(0).record("gateway", "0123456789abcdef")
        assert deployed.refused(1).startswith("R643 checkpoint ")
