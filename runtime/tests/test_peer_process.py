"""Gateway and egress as processes of a run: started, found again, watched, ended; and when an idle run is over."""

import json
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wallaroo.frame import TICK_PORT, split_frames
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.configuration import egress_of, gateway_of, stop_left_behind, tick_interval_ms
from wallaroo_runtime.peer.process import Process
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.run.idle import Activity, IdleWatch
from wallaroo_runtime.spark.master import shuffle_partitions
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology, Window
from wallaroo_runtime.topology.override import override

VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"


def word_count(port: int = 0) -> Topology:
    document = json.loads((VALID / "word_count.json").read_bytes())
    return override(load_document(document), f"127.0.0.1:{port}", "127.0.0.1:1")


def gateway(checkpoint: Path, port: int = 0) -> Process:
    topology = word_count(port)
    return gateway_of(topology, compile_topology(topology, shuffle_partitions=1), checkpoint, {})


@pytest.mark.slow
def test_gateway_is_started_found_again_and_ended(checkpoint: Path) -> None:
    first = gateway(checkpoint)
    assert first.start() is False
    status = first.wait_ready()
    (source,) = status["sources"]
    assert source["name"] == "Split and Count"
    host, _, port = source["address"].rpartition(":")
    socket.create_connection((host, int(port)), timeout=5).close()
    again = gateway(checkpoint)
    assert again.start() is True
    assert again.wait_ready()["pid"] == status["pid"]
    again.stop()
    assert not first.is_alive()
    assert not again.is_alive()
    assert again.status()["state"] == "stopped"


@pytest.mark.slow
def test_a_gateway_with_another_configuration_is_replaced(checkpoint: Path) -> None:
    first = gateway(checkpoint)
    first.start()
    pid = first.wait_ready()["pid"]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    other = gateway(checkpoint, port)
    assert other.start() is False
    assert other.wait_ready()["pid"] != pid
    assert not first.is_alive()
    other.stop()


@pytest.mark.slow
def test_a_port_in_use(checkpoint: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = gateway(checkpoint, port)
        process.start()
        with pytest.raises(RunError) as caught:
            process.wait_ready()
    assert str(caught.value) == (
        f'R601 source "Split and Count" cannot listen at 127.0.0.1:{port}; Address already in use\n'
        "  fix: stop the program that uses it, or give another address with --in; ports below 1024 are for root"
    )


@pytest.mark.slow
def test_an_egress_that_is_killed(checkpoint: Path, wait_until: Callable[..., None]) -> None:
    topology = word_count()
    process = egress_of(topology, compile_topology(topology, shuffle_partitions=1), checkpoint)
    process.start()
    os.kill(process.wait_ready()["pid"], signal.SIGKILL)
    wait_until(lambda: not process.is_alive(), "the egress to end")
    (finding,) = process.failure().diagnostics
    assert finding.code == "R617"
    assert finding.message.startswith("the egress ended unexpectedly; signal 9")
    assert finding.fix == f"look into its log {checkpoint}/logs/egress.log; run again to continue from the checkpoint"


@pytest.mark.slow
def test_the_last_line_of_an_earlier_process_is_not_shown(checkpoint: Path, wait_until: Callable[..., None]) -> None:
    process = gateway(checkpoint)
    process.log.write_text("a line of an earlier run\n")
    process.start()
    os.kill(process.wait_ready()["pid"], signal.SIGKILL)
    wait_until(lambda: not process.is_alive(), "the gateway to end")
    assert process.failure().diagnostics[0].message == "the gateway ended unexpectedly; signal 9"


@pytest.mark.slow
def test_a_process_that_cannot_start(checkpoint: Path) -> None:
    process = Process("gateway", "wallaroo_runtime.gateway", checkpoint, {"journal": 1})
    process.start()
    with pytest.raises(RunError) as caught:
        process.wait_ready()
    (finding,) = caught.value.diagnostics
    assert finding.message.startswith("the gateway ended unexpectedly; exit code 2; fix: start the gateway with")


@pytest.mark.slow
def test_a_status_file_of_a_process_that_is_gone_is_not_believed(checkpoint: Path) -> None:
    (checkpoint / "egress.json").write_text(json.dumps({"pid": os.getpid(), "start_time": 1, "state": "running"}))
    stop_left_behind(checkpoint)
    topology = word_count()
    process = egress_of(topology, compile_topology(topology, shuffle_partitions=1), checkpoint)
    assert process.start() is False
    process.stop()


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
    ],
)
def test_ticks_come_twice_in_the_shortest_slide_or_flush(windows: tuple[Window, ...], expected: int) -> None:
    assert tick_interval_ms(with_windows(word_count(), *windows)) == expected


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
    process = gateway_of(topology, plan, checkpoint, {"main": f"unix:{checkpoint / 'nobody.sock'}"})
    process.start()
    assert process.wait_ready()["sources"] == []
    journal = JournalReader(checkpoint / "journal")

    def ports() -> list[int]:
        pieces = journal.read(0, journal.end().offset)
        return [header.port for piece in pieces for header, _, _ in split_frames(piece)]

    wait_until(lambda: ports()[:2] == [TICK_PORT, TICK_PORT], "two ticks")
    process.stop()
