"""The lag in seconds, against the times at which messages arrived."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.manifest import put_manifest
from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.cli.status import lines
from wallaroo_runtime.monitor.board import Board, Sample
from wallaroo_runtime.monitor.metrics import render
from wallaroo_runtime.monitor.rate import MAX_SAMPLES, Lag
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.topology.load import load

WORD_COUNT = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid" / "word_count.json"


@given(
    st.lists(st.tuples(st.floats(0, 30), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40),
    st.sampled_from([4, MAX_SAMPLES]),
)
def test_the_lag_is_how_long_the_oldest_message_waits(steps: list[tuple[float, int, int]], most: int) -> None:
    lag, now, processed = Lag(), 0.0, 0
    arrived: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wallaroo_runtime.monitor.rate.MAX_SAMPLES", most)
        for pause, more, done in steps:
            now, arrived, processed = now + pause, arrived + [now + pause] * more, processed + done
            processed = min(processed, len(arrived))
            found = lag.add(now, len(arrived), processed)
            expected = now - arrived[processed] if processed < len(arrived) else 0.0
            assert found == pytest.approx(expected, abs=0.06) if most == MAX_SAMPLES else found <= expected + 0.06
            assert (found > 0.06) <= (expected > 0)
            assert len(lag._samples) <= max(most, 1)


def test_a_lag_that_is_not_known_is_not_0(tmp_path: Path) -> None:
    put_manifest(tmp_path)
    topology = load(WORD_COUNT.read_bytes())
    board = Board(topology, compile_topology(topology, shuffle_partitions=2), tmp_path)
    document = board.read()
    assert document["lag"] == {"messages": None, "seconds": None, "waiting_for_sinks": 0}
    body, _ = render(document, {}, "")
    assert b"wallaroo_up" in body and b"wallaroo_lag" not in body
    assert "now: lag not known yet  waiting for sinks 0" in list(lines(document))


@pytest.mark.parametrize("lag", [None, 7])
def test_messages_of_earlier_runs_are_in_no_rate(
    lag: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_manifest(tmp_path)
    topology, clock = load(WORD_COUNT.read_bytes()), [0.0]
    monkeypatch.setattr("wallaroo_runtime.monitor.board.time.monotonic", lambda: clock[0])
    board = Board(topology, compile_topology(topology, shuffle_partitions=2), tmp_path)
    for numbers in [{}, {}, *({"messages_processed": 5000 + more, "lag": lag} for more in (0, 0, 20))]:
        clock[0] += 1
        board.update("running", Sample(numbers))
        document = board.read()
    assert document["rate"] == {"now": 10.0, "five_minutes": 10.0}
    assert document["lag"]["messages"] == lag


def test_sinks_of_one_name_have_series_of_their_own(tmp_path: Path) -> None:
    put_manifest(tmp_path)
    topology = load((WORD_COUNT.parent / "outputs.json").read_bytes())
    plan = compile_topology(topology, shuffle_partitions=2)
    board = Board(topology, plan, tmp_path)
    ports = [plan.ports[sink.path] for sink in topology.sinks()]
    states = ["connected", "unreachable"]
    egress = {"sinks": [{"port": port, "name": "o", "state": state} for port, state in zip(ports, states, strict=True)]}
    board.update("running", Sample({}, egress=egress))
    body, _ = render(board.read(), {}, "")
    found = [line for line in body.decode().splitlines() if line.startswith("wallaroo_sink_")]
    series = [line.rpartition(" ")[0] for line in found]
    assert len(set(series)) == len(series) == 6
    application = topology.name
    assert f'wallaroo_sink_reachable{{application="{application}",path="0/sinks/1",sink="o"}} 0.0' in found


@given(st.lists(st.sampled_from(["", "kafka", "connectors", "spark"]), min_size=2, max_size=2), st.integers(1, 2))
def test_status_and_metrics_name_the_sources_that_are_away_now(drawn: list[str], gateways: int) -> None:
    topology = load((WORD_COUNT.parent / "records.json").read_bytes())
    plan = compile_topology(topology, shuffle_partitions=2)
    board, sources = Board(topology, plan, Path("checkpoint")), [*topology.sources()]
    statuses: list[dict[str, list[dict[str, Any]]]] = [{"kafka": [], "connectors": []} for _ in range(gateways)]
    outages, texts = dict[str, Diagnostic](), list[str]()
    for number, (source, place) in enumerate(zip(sources, drawn, strict=False)):
        outage = Diagnostic.of("R791", source=source.name, brokers="h:1", reason="gone")
        name, status = {"name": source.name, "port": plan.ports[source.path]}, statuses[number % gateways]
        status["kafka"].append({**name, "outage": outage.to_json() if place == "kafka" else None})
        status["connectors"].append({**name, "connected": 0 if place == "connectors" else 2})
        outages |= {source.path: outage} if place == "spark" else {}
        no_connector = f'source "{source.name}": no connector is connected now'
        texts.append(no_connector if place == "connectors" else outage.message if place else "")
    board.update("running", Sample({}, statuses, outages=outages))
    document = board.read()
    assert [line for line in lines(document) if line.startswith('source "')] == [text for text in texts if text]
    body = render(document, {}, "")[0].decode()
    found = dict(re.findall(r'wallaroo_source_reachable\{.*path="(.*?)".*\} (.*)', body))
    expected = {source.path: "0.0" if text else "1.0" for source, text in zip(sources, texts, strict=False)}
    assert {path: found[path] for path in expected} == expected and set(found) == {s.path for s in topology.sources()}


@given(st.lists(st.tuples(st.sampled_from(["connected", "unreachable", "stopped"]), st.integers(0, 9)), max_size=3))
def test_status_names_the_sinks_that_cannot_be_reached_now(drawn: list[tuple[str, int]]) -> None:
    """The findings also have outages that are over, and only the last ones are shown."""
    topology = load(WORD_COUNT.read_bytes())
    board = Board(topology, compile_topology(topology, shuffle_partitions=2), Path("checkpoint"))
    sinks = [
        {"port": port, "name": f"s{port}", "address": "Kafka at h:1", "state": state, "pending_messages": waiting}
        for port, (state, waiting) in enumerate(drawn)
    ]
    board.update("running", Sample({}, egress={"sinks": sinks}))
    assert [line for line in lines(board.read()) if line.startswith('sink "')] == [
        f'sink "s{port}" cannot be reached now at Kafka at h:1; {waiting} message{"" if waiting == 1 else "s"} waiting'
        for port, (state, waiting) in enumerate(drawn)
        if state == "unreachable"
    ]
