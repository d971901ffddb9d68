"""Gateway and egress as processes of a run: started, found again, watched, ended; and when an idle run is over."""

import contextlib
import json
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from support.peer import egress, kill, service_of
from support.peer import gateway as gateway_of
from support.run import wait_until
from wallaroo.message.frame import TICK_PORT, split_frames
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.durable.record import write_record
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.configuration import gateway_request
from wallaroo_runtime.peer.local import LocalPeer, stop_left_behind
from wallaroo_runtime.peer.remote import driver_identity
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.run.end_condition import Activity, IdleWatch
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.client import ServiceClient, close_channel
from wallaroo_runtime.service.driver import DRIVER_FILE, announce, read_note
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.service.local import READY
from wallaroo_runtime.spark.machine.master import shuffle_partitions
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.system.stop import SIGNALS
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology, Window
from wallaroo_runtime.topology.override import override

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"


def word_count(port: int = 0) -> Topology:
    document = json.loads((VALID / "word_count.json").read_bytes())
    return override(load_document(document), f"127.0.0.1:{port}", "127.0.0.1:1")


def gateway(checkpoint: Path, port: int = 0, driver: str = "") -> LocalPeer:
    return gateway_of(checkpoint, word_count(port), driver=driver)


def journal_of(endpoint: Service) -> str:
    """Ask a service as a task does; returns the id of its journal."""
    request = pb.ReadRequest(epoch=endpoint.epoch, journal=endpoint.store)
    call = ServiceClient(endpoint).stub.Follow(request, timeout=60, wait_for_ready=True)
    journal = str(next(call).journal)
    call.cancel()
    return journal


def listens(peer: LocalPeer) -> bool:
    ((_, address),) = peer.addresses()
    host, _, port = address.rpartition(":")
    with contextlib.suppress(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=5).close()
        return True
    return False


@pytest.mark.slow
def test_gateway_is_started_found_again_and_ended(checkpoint: Path) -> None:
    first = gateway(checkpoint)
    status = first.status()
    assert [source["name"] for source in status["sources"]] == ["Split and Count"]
    with socket.create_connection(("127.0.0.1", status["sources"][0]["tcp_port"]), timeout=5) as connection:
        again = gateway(checkpoint, driver="another")
        assert again.status()["pid"] == status["pid"]
        assert again.service.store == first.service.store
        connection.sendall(b"\0\0\0\1x")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b"", "senders notice nothing of another driver"
    assert again.end().messages == 1
    again.stop()
    assert not first.is_alive()
    assert not again.is_alive()
    assert again.status()["state"] == "stopped"


@pytest.mark.slow
@pytest.mark.parametrize("number", [*SIGNALS, None])
def test_a_gateway_without_room_says_what_it_loses_although_no_file_takes_it(
    checkpoint: Path, number: signal.Signals | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """`number`: the signal that ends it; None: its driver does."""
    peer = gateway(checkpoint)
    status = peer.status()
    (checkpoint / "gateway.json").unlink()
    (checkpoint / "gateway.json").mkdir()  # as a full disk, it takes no status
    resource.prlimit(status["pid"], resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
    address = ("127.0.0.1", status["sources"][0]["tcp_port"])
    refused: list[str] = []

    def send() -> None:
        arguments = ["send", "--host", "{}:{}".format(*address), "--file", str(checkpoint / "lines")]
        assert main(arguments) == 1
        refused.append(capsys.readouterr().err)

    (checkpoint / "lines").write_text("line\n" * 200)
    sender = Thread(target=send)
    sender.start()
    wait_until(lambda: said(peer) == ["R614"], lambda: f"R614, have {peer.status()}", 60)
    if number is None:
        peer.stop()
    else:
        os.kill(status["pid"], number)
        wait_until(lambda: not peer.is_alive() or not peer.status(), lambda: "its end", 60)
    assert said(peer) == ["R614", "R800"]
    assert peer.status()["diagnostics"][-1]["message"] == (
        f"the gateway has ended, and 200 messages that it had read could not be written to {checkpoint}/journal; they "
        "are lost unless they are sent again: their senders got a reset instead of the end of the stream"
    )
    sender.join(60)
    assert refused[0].startswith(
        "R618 no connection to {}:{}; it was closed after 200 messages were sent".format(*address)
    )
    failure = peer.failure()
    assert failure is not None
    assert [finding.code for finding in failure.diagnostics] == ["R614", "R800"]


@pytest.mark.slow
def test_an_egress_without_room_says_how_it_goes_although_no_file_takes_it(checkpoint: Path) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as receiver:
        topology = override(word_count(), "127.0.0.1:0", "127.0.0.1:{1}".format(*receiver.getsockname()))
        peer = egress(checkpoint, topology)
        (checkpoint / "egress.json").unlink(missing_ok=True)
        (checkpoint / "egress.json").mkdir()
        status = peer.status()
        assert (status["state"], len(status["sinks"])) == ("running", 1), status
        peer.stop()


def said(peer: LocalPeer) -> list[str]:
    return [finding["code"] for finding in peer.status().get("diagnostics", ())]


@pytest.mark.slow
def test_a_gateway_gets_another_configuration(checkpoint: Path) -> None:
    first = gateway(checkpoint)
    pid, before = first.status()["pid"], first.addresses()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    other = gateway(checkpoint, port, driver="another")
    assert other.addresses() == [("Split and Count", f"127.0.0.1:{port}")] != before
    assert listens(other)
    assert other.status()["pid"] == pid
    epochs = json.loads((checkpoint / "gateway" / "attachment.json").read_bytes())["epoch"]
    assert epochs == 2
    other.stop()
    assert not listens(other)
    assert not first.is_alive()


@pytest.mark.slow
def test_a_process_that_answers_nobody_is_replaced(checkpoint: Path) -> None:
    first = gateway(checkpoint)
    pid = first.status()["pid"]
    (checkpoint / "gateway" / "socket").unlink()
    other = gateway(checkpoint, driver="another")
    assert not first.is_alive()
    assert other.status()["pid"] != pid
    other.stop()


@pytest.mark.slow
def test_a_process_that_cannot_serve_this_driver_is_replaced(checkpoint: Path) -> None:
    first = gateway(checkpoint)
    pid = first.status()["pid"]
    request = gateway_request(word_count(), compile_topology(word_count(), shuffle_partitions=1), [])
    request.driver.CopyFrom(driver_identity("app", "that of another release", "", fresh=False))
    other = LocalPeer("gateway", checkpoint)
    other.launch()
    with pytest.raises(RunError) as caught:
        other.attach(request)
    assert caught.value.diagnostics[0].code == "R649"
    assert not first.is_alive()
    assert other.status()["pid"] != pid
    other.stop()


@pytest.mark.slow
def test_the_path_of_a_checkpoint_may_be_long_and_nobody_else_reaches_the_socket(tmp_path: Path) -> None:
    checkpoint = tmp_path.joinpath(*("a directory with a long name" for _ in range(8)))
    (checkpoint / "logs").mkdir(parents=True)
    announce(checkpoint)
    assert len(str(checkpoint / "gateway" / "socket")) > 200
    peer = gateway(checkpoint)
    endpoint = service_of(peer, tmp_path / "e")
    assert listens(peer)
    assert journal_of(endpoint) == endpoint.store
    kill(peer)
    notes: list[str] = []
    peer.check(notes.append)
    assert listens(peer)
    assert journal_of(endpoint) == endpoint.store
    close_channel(endpoint)
    assert (checkpoint / "gateway" / "socket").is_socket()
    assert stat.S_IMODE((checkpoint / "gateway").stat().st_mode) == 0o700
    peer.stop()
    assert not (checkpoint / "gateway" / "socket").exists()


@pytest.mark.slow
def test_a_port_in_use(checkpoint: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RunError) as caught:
            gateway(checkpoint, port)
    assert str(caught.value) == (
        f'R714 source "Split and Count" cannot listen at 127.0.0.1:{port}; Address already in use\n'
        "  fix: stop the program that uses the address, or give another HOST:PORT of this machine (`ip addr`) "
        "with --in; ports below 1024 are for root"
    )


@pytest.mark.slow
def test_an_egress_that_is_killed(checkpoint: Path) -> None:
    peer = egress(checkpoint, word_count())
    kill(peer)
    assert not peer.is_alive()
    (finding,) = peer.ending().diagnostics
    assert finding.code == "R617"
    assert finding.message.startswith("the egress ended unexpectedly; signal 9")
    assert (
        finding.fix
        == f"look into its log {checkpoint}/logs/egress.log; run it again: an application continues from its checkpoint"
    )


@pytest.mark.slow
def test_a_process_that_was_killed_has_no_last_line(checkpoint: Path) -> None:
    (checkpoint / "logs" / "gateway.log").write_text("a line of an earlier run\n")
    peer = gateway(checkpoint)
    with (checkpoint / "logs" / "gateway.log").open("a") as log:
        log.write("fix: the remedy of an outage that has ended\n")
    kill(peer)
    assert peer.ending().diagnostics[0].message == "the gateway ended unexpectedly; signal 9"


@pytest.mark.slow
def test_a_process_that_cannot_start_says_why(checkpoint: Path) -> None:
    gateway(checkpoint).stop()
    (checkpoint / "gateway" / "attachment.json").write_text("{")
    with pytest.raises(RunError) as caught:
        gateway(checkpoint)
    assert caught.value.diagnostics[0].code == "R698"
    (checkpoint / "gateway" / "attachment.json").unlink()
    (checkpoint / "gateway" / "attachment.json").mkdir()
    (checkpoint / "gateway" / "lock").unlink()
    (checkpoint / "gateway" / "lock").symlink_to("nowhere")
    with pytest.raises(RunError) as caught:
        gateway(checkpoint)
    assert caught.value.diagnostics[0].message.startswith("the gateway ended unexpectedly; exit code 1; OSError")


@pytest.mark.slow
def test_a_socket_that_cannot_be_made(checkpoint: Path) -> None:
    (checkpoint / "gateway" / "socket").mkdir(parents=True)
    with pytest.raises(RunError) as caught:
        gateway(checkpoint)
    (finding,) = caught.value.diagnostics
    reason = f"the gateway cannot listen at {checkpoint}/gateway/socket; Address already in use"
    assert finding.code == "R715"
    assert finding.message == f"{checkpoint} cannot be used as a checkpoint; {reason}"


@pytest.mark.slow
def test_a_status_file_of_a_process_that_is_gone_is_not_believed(checkpoint: Path) -> None:
    (checkpoint / "egress.json").write_text(json.dumps({"pid": os.getpid(), "start_time": 1, "state": "running"}))
    stop_left_behind(checkpoint)
    peer = egress(checkpoint, word_count())
    assert peer.status()["pid"] != os.getpid()
    peer.stop()


@pytest.mark.slow
def test_a_process_ends_when_its_driver_is_gone(checkpoint: Path) -> None:
    program = """if True:
        import sys
        from wallaroo_runtime.gateway.service import GatewayHost
        from wallaroo_runtime.service import local
        local.LINGER_S = 1
        sys.exit(local.run_local("gateway", sys.argv[1:], GatewayHost))
    """
    read, write = os.pipe()
    child = subprocess.Popen([sys.executable, "-c", program, str(checkpoint), str(write)], pass_fds=[write])
    os.close(write)
    with os.fdopen(read, "rb") as ready:
        assert ready.read() == READY
    peer = gateway(checkpoint)
    assert (peer.status()["pid"], peer.status()["state"]) == (child.pid, "listening")
    path = checkpoint / DRIVER_FILE
    write_record(path, replace(read_note(path), start_time=1))
    assert child.wait(90) == 0
    assert peer.status()["state"] == "stopped"


def test_idle_needs_silence_everything_processed_and_everything_delivered() -> None:
    watch = IdleWatch(3, now=0)
    assert not watch.is_over(Activity(0, 0, True), 2)
    assert watch.is_over(Activity(0, 0, True), 3)
    assert not watch.is_over(Activity(10, 0, True), 4)
    assert not watch.is_over(Activity(10, 0, True), 8)
    assert not watch.is_over(Activity(10, 10, False), 9)
    assert watch.is_over(Activity(10, 10, True), 9)
    assert not watch.is_over(Activity(10, 5, True), 9)
    assert watch.is_over(Activity(10, 5, True, is_held=True), 9), "nothing happens before a sink can be reached"
    assert not watch.is_over(Activity(10, 5, False, is_held=True), 9), "a sink is slow, not away"


def test_addresses_go_to_the_named_ones_first_and_change_nothing_else() -> None:
    document: dict[str, Any] = json.loads((VALID / "shared_state.json").read_bytes())
    before = load_document(document)
    last = list(before.sources())[-1]
    after = override(before, f"10.0.0.1:1,{last.name}@[::1]:2", "")
    first, *_, end = after.sources()
    assert (first.host, first.port, end.host, end.port) == ("10.0.0.1", 1, "::1", 2)
    assert list(after.sinks()) == list(before.sinks())
    assert after.workers == before.workers
    assert load_document(document) == before


def test_shuffle_partitions_of_a_master() -> None:
    assert shuffle_partitions("local[*]") == len(os.sched_getaffinity(0))
    assert [shuffle_partitions(master) for master in ("local", "local[3]", "local[5,2]", "spark://h:1")] == [
        1,
        3,
        5,
        16,
    ]  # noqa: E501


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ((), 0),
        ((Window("range", range_ms=9000, slide_ms=3000),), 1000),
        ((Window("range", range_ms=9000, slide_ms=3000), Window("count", count=3, flush_ms=700)), 350),
        ((Window("range", range_ms=1, slide_ms=1),), 100),
        ((Window("session", gap_ms=800, delay_ms=5000),), 400),
    ],
)
def test_ticks_come_twice_in_the_shortest_slide_or_flush(windows: tuple[Window, ...], expected: int) -> None:
    assert with_windows(word_count(), *windows).tick_ms() == expected


def with_windows(topology: Topology, *windows: Window) -> Topology:
    (pipeline, *_), step = topology.pipelines, next(topology.steps())
    steps = (*pipeline.steps, *(replace(step, kind="window", window=window) for window in windows))
    return replace(topology, pipelines=(replace(pipeline, steps=steps),))


@pytest.mark.slow
def test_without_tcp_sources_the_gateway_still_writes_ticks(checkpoint: Path, wait_until: Callable[..., None]) -> None:
    document = json.loads((VALID / "word_count.json").read_bytes())
    (pipeline,) = document["pipelines"]
    part = {"codec": "native", "worker": "main"}
    kafka = {"topic": "in", "brokers": ["127.0.0.1:1"], "start": "start", "options": {}, "max_message_bytes": 100}
    pipeline["sources"] = [
        {"path": "0/sources/0", "name": "records", "kind": "kafka", **kafka, **part},
        {"path": "0/sources/1", "name": "numbers", "kind": "generator", **part},
    ]
    pipeline["steps"][0]["inputs"] = ["0/sources/0", "0/sources/1"]
    topology = with_windows(load_document(document), Window("range", range_ms=200, slide_ms=200))
    plan = compile_topology(load_document(document), shuffle_partitions=1)
    # The worker never answers: time passes all the same.
    peer = gateway_of(checkpoint, topology, plan, {"main": f"unix:{checkpoint / 'nobody.sock'}"})
    assert peer.status()["sources"] == []
    journal = JournalReader(checkpoint / "journal")

    def ports() -> list[int]:
        pieces = journal.read(0, journal.end().offset)
        return [header.port for piece in pieces for header, _, _ in split_frames(piece)]

    wait_until(lambda: ports()[:2] == [TICK_PORT, TICK_PORT], "two ticks")
    peer.stop()
