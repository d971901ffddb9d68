"""The monitor: its numbers against a simple reference, and what its server answers to whom."""

import http.client
import json
import re
import socket
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.counted import counted
from support.manifest import put_manifest
from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.monitor import server as server_module
from wallaroo_runtime.monitor.access import has_token, is_own_name, parse_address
from wallaroo_runtime.monitor.board import Board, Sample
from wallaroo_runtime.monitor.delivery import Latencies
from wallaroo_runtime.monitor.rate import LONG_S, NOW_S, Rates
from wallaroo_runtime.monitor.server import MonitorServer
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.run.flow import since
from wallaroo_runtime.service.histogram import Histogram
from wallaroo_runtime.spark.batch_report import BatchReport
from wallaroo_runtime.topology.load import load

WORD_COUNT = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid" / "word_count.json"
NUMBERS = {
    "state": "running",
    "messages_in": 12,
    "messages_processed": 7,
    "messages_out": 5,
    "dead_letters": 1,
    "batches": 2,
    "lag": 5,
    "waiting": 3,
    "run": {"messages_in": 7, "messages_out": 5, "dead_letters": 1, "visits": 0, "visited_keys": 0},
}
SINK = {"port": 2, "name": "out", "address": "127.0.0.1:1", "state": "connected", "messages": 5, "bytes": 50}
EGRESS = {"sinks": [{**SINK, "pending_messages": 3, "pending_bytes": 30}]}
GATEWAY = {
    "state": "listening",
    "sources": [{"name": "in", "address": "127.0.0.1:2"}],
    "connections": 1,
    "messages": 12,
    "end": 400,
    "backlog_bytes": 90,
    "reads": True,
}


@pytest.fixture
def board(tmp_path: Path) -> Board:
    topology = load(WORD_COUNT.read_bytes())
    plan = compile_topology(topology, shuffle_partitions=2)
    put_manifest(tmp_path)
    board = Board(topology, plan, tmp_path)
    steps = {"0/sources/0": counted(7, 6, 1), "0/steps/0": counted(6, 18), "0/steps/1": counted(18, 18, 0, 2)}
    steps["0/sinks/0"] = counted(18, 18)
    stage = next(stage for stage in plan.stages if stage.has_state)
    report = BatchReport(0, 1000, 1200, steps, Counter({900: 7}), {(stage.id, 0): (4, 100), (stage.id, 3): (5, 60)})
    board.begin({"sinks": []})
    board.tell_batch(report)
    for refused in (1, 2, 0, 2):  # an egress that was started again knows less at first
        board.look({"sinks": [EGRESS["sinks"][0] | {"port": plan.ports["0/sinks/0"], "refused": refused}]})
    board.warn(Diagnostic.of("R614", path="journal", effect="it waits"))
    board.update("running", Sample(NUMBERS, [GATEWAY], EGRESS, {"batchId": 3, "durationMs": {"addBatch": 150}}))
    return board


@pytest.fixture
def server(board: Board) -> Iterator[MonitorServer]:
    server = MonitorServer(board, "127.0.0.1:0")
    server.start()
    yield server
    server.stop()


def ask(
    server: MonitorServer, path: str, *, token: str | None = None, method: str = "GET", **headers: str
) -> tuple[int, str, Any]:
    """Return status, content type and body of an answer; `token=""` sends none."""
    address = urlsplit(server.url)
    sent = dict(headers) if token == "" else {"Authorization": f"Bearer {token or server.token}", **headers}
    with closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)) as connection:
        connection.request(method, path, headers=sent)
        reply = connection.getresponse()
        body = reply.read()
    kind = reply.headers["Content-Type"]
    return reply.status, kind, json.loads(body) if kind == "application/json" and body else body


def test_the_document_has_the_numbers_of_the_run(server: MonitorServer) -> None:
    status, _, found = ask(server, "/api/v1/status")
    assert (status, found["application"], found["state"]) == (200, "Word Count Application", "running")
    assert found["total"] == {"messages_in": 12, "messages_out": 5, "dead_letters": 1}
    assert found["run"]["messages_in"] == 7
    assert found["lag"] == {"messages": 5, "seconds": 0, "waiting_for_sinks": 3}
    parts = {part["path"]: part for part in found["parts"]}
    assert [parts["0/steps/0"][name] for name in ("messages_in", "messages_out", "dead_letters")] == [6, 18, 0]
    assert [parts["0/sinks/0"][name] for name in ("messages_in", "messages_out", "dead_letters")] == [18, 16, 2]
    assert [part["dropped_late"] for part in found["parts"]] == [0, 0, 2, 0]
    assert [part["column"] for part in found["parts"]] == [0, 1, 2, 3]
    edges = {(edge["from"], edge["to"]): edge for edge in found["edges"]}
    assert edges["0/steps/0", "0/steps/1"]["messages"] == 18
    assert [edge["shuffles"] for edge in edges.values()] == [False, True, False]
    (state,) = found["states"]
    assert (state["names"], state["keys"], state["bytes"], state["buckets_seen"]) == (["word totals"], 9, 160, 2)
    assert found["latency_ms"]["wait"]["run"]["max"] == 100
    assert found["latency_ms"]["compute"]["run"]["p50"] == 200
    assert found["batch"] == {"number": 3, "time": "", "phases_ms": {"addBatch": 150}, "state_memory_bytes": 0}
    assert [(finding["code"], bool(finding["fix"])) for finding in found["findings"]] == [("R614", True)]
    assert found["gateways"][0]["lag_bytes"] == 90
    assert found["sinks"][0]["pending_messages"] == 3


def test_the_document_has_the_fields_that_its_page_names(server: MonitorServer) -> None:
    page = (Path(__file__).parents[2] / "docs" / "monitor.md").read_text(encoding="utf-8")
    table = page.partition("### The document of a run")[2].partition("## Metrics")[0].splitlines()
    rows = [line.split("|") for line in table if line.startswith("|")]
    described = {name: {*re.findall(r"`(\w+)`", row[2])} for row in rows for name in re.findall(r"`(\w+)`", row[1])}
    document = ask(server, "/api/v1/status")[2]
    assert set(document) == set(described) and all(document[name] for name in ("findings", "gateways", "sinks"))
    optional = {"pointer", "file", "line", "traceback"}
    for name, value in document.items():
        items = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
        assert not value or {*optional, *(key for each in items for key in each)} == described[name] | optional, name
    plain = {path for path in re.findall(r"^\| `(/[\w/-]*)[`?]", page, re.MULTILINE) if path == path.lower()}
    assert ask(server, "/nothing")[2]["message"].endswith("; it has " + ", ".join(sorted(plain)))
    for path in plain - {"/api/v1/events"}:  # that one goes on
        assert ask(server, path)[0] == (503 if path == "/api/v1/state" else 200), path  # no query runs


def test_metrics_in_both_formats(server: MonitorServer) -> None:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
    from prometheus_client.parser import text_string_to_metric_families as parse

    status, kind, body = ask(server, "/metrics")
    assert (status, kind.split(";")[0]) == (200, "text/plain")
    found = {
        (sample.name, sample.labels.get("path", "")): sample.value
        for family in parse(body.decode())
        for sample in family.samples
    }
    assert found["wallaroo_messages_in_total", ""] == 7
    assert found["wallaroo_lag_messages", ""] == 5
    assert found["wallaroo_lag_seconds", ""] == 0
    assert found["wallaroo_journal_lag_bytes", ""] == 90
    assert found["wallaroo_step_messages_out_total", "0/steps/0"] == 18
    assert found["wallaroo_step_dead_letters_total", "0/sources/0"] == 1
    assert found["wallaroo_step_dropped_late_total", "0/steps/1"] == 2
    _, kind, body = ask(server, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert kind.startswith("application/openmetrics-text")
    families = {family.name: family for family in parse_open(body.decode())}
    counts = {
        sample.labels["le"]: sample.value
        for sample in families["wallaroo_latency_seconds"].samples
        if sample.labels.get("stage") == "compute" and "le" in sample.labels
    }
    assert (counts["0.1"], counts["0.25"], counts["+Inf"]) == (0, 7, 7)


def test_only_the_token_opens_it(server: MonitorServer) -> None:
    assert ask(server, "/healthz", token="")[::2] == (200, b"ok\n")
    for path in ("/", "/readyz", "/metrics", "/api/v1/status", "/api/v1/events", "/api/v1/nothing"):
        status, _, body = ask(server, path, token="x")
        assert (status, body["code"]) == (401, "R766"), path
        assert "Bearer TOKEN" in body["fix"]
    status, kind, page = ask(server, server.url.removeprefix(f"http://127.0.0.1:{server.server_address[1]}"), token="")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert b"src=" not in page and b"http://" not in page.replace(b"http://www.w3.org/2000/svg", b"")


def test_names_of_other_sites_do_not_lead_here(server: MonitorServer) -> None:
    status, _, body = ask(server, "/api/v1/status", Host="evil.example:80")
    assert (status, body["code"], body["message"]) == (
        421, "R766", "the monitor refuses the request; its Host is not this server's",
    )  # fmt: skip
    assert ask(server, "/healthz", Host=f"localhost:{server.server_address[1]}")[0] == 200


@pytest.mark.parametrize("target", ["//[", "/%ff%00", "/?" + "&" * 50, "http://[/api", "*"])
def test_odd_targets_are_answered(server: MonitorServer, target: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=60) as connection:
        request = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        connection.sendall(request.encode())
        assert connection.makefile("rb").readline().split()[1] in (b"200", b"404")
    assert capsys.readouterr().err == ""


def test_what_is_not_there_is_named(server: MonitorServer) -> None:
    status, _, body = ask(server, "/api/v1/none")
    assert (status, body["code"]) == (404, "R766")
    assert "/api/v1/status" in body["message"]
    status, _, body = ask(server, "/api/v1/dead-letters?limit=many")
    said = "the monitor refuses the request; the parameter limit is many; expected a number from 1 to 500"
    assert (status, body["code"], body["message"]) == (400, "R766", said)
    assert ask(server, "/api/v1/dead-letters/9-9-9")[2]["code"] == "R720"
    assert ask(server, "/api/v1/status", method="HEAD")[::2] == (200, b"")


def test_dead_letters_the_newest_first(server: MonitorServer, tmp_path: Path) -> None:
    folder = tmp_path / "dead-letters"
    folder.mkdir()
    for batch in range(3):
        letters = [
            pb.DeadLetter(code="C501", step="split", path="0/steps/0", error=f"{batch}.{number}") for number in range(3)
        ]
        data = encode_frame([letter.SerializeToString() for letter in letters], port=65535)
        (folder / f"q-{batch}-0.frames").write_bytes(data)
    _, _, found = ask(server, "/api/v1/dead-letters?limit=4")
    assert [letter["id"] for letter in found["dead_letters"]] == ["2-0-2", "2-0-1", "2-0-0", "1-0-2"]
    assert ask(server, "/api/v1/dead-letters?step=other")[2] == {"dead_letters": []}
    assert ask(server, "/api/v1/dead-letters/1-0-1")[2]["error"] == "1.1"


def test_events_come_with_each_document_until_the_end(board: Board) -> None:
    server = MonitorServer(board, "127.0.0.1:0")
    server.start()
    with closing(http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)) as connection:
        connection.request("GET", f"/api/v1/events?token={server.token}")
        events = connection.getresponse()

        def state() -> str:
            line = events.readline()
            assert line.startswith(b"data: ") and events.readline() == b"\n"
            return str(json.loads(line.removeprefix(b"data: "))["state"])

        assert state() == "running"
        board.update("running", Sample({**NUMBERS, "lag": 0}))
        assert state() == "running"
        server.stop()
        assert state() == "stopped"
        assert events.read() == b""


def test_too_many_connections_are_closed(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MOST_CONNECTIONS", 1)
    server = MonitorServer(board, "127.0.0.1:0")
    server.start()
    address = ("127.0.0.1", server.server_address[1])
    with socket.create_connection(address, timeout=60) as first:
        first.sendall(f"GET /api/v1/events?token={server.token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert first.recv(15) == b"HTTP/1.1 200 OK"
        with socket.create_connection(address, timeout=60) as second:
            assert second.recv(1) == b""
    server.stop()


@pytest.mark.parametrize("address", ["8080", "host:99999", "nowhere.invalid:0"])
def test_an_address_that_cannot_be_used(board: Board, address: str) -> None:
    with pytest.raises(RunError) as caught:
        MonitorServer(board, address)
    assert caught.value.diagnostics[0].code == "R714"
    assert f"the monitor cannot listen at {address}; " in str(caught.value)


def test_an_address_in_use(board: Board, server: MonitorServer) -> None:
    with pytest.raises(RunError, match="Address already in use"):
        MonitorServer(board, f"127.0.0.1:{server.server_address[1]}")


def test_a_reader_that_says_nothing_is_left(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module.Handler, "timeout", 0.1)
    server = MonitorServer(board, "127.0.0.1:0")
    server.start()
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=60) as silent:
        assert silent.recv(1) == b""
    server.stop()


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10**8), st.integers(1, 5)), min_size=1), st.sampled_from([0.5, 0.9, 0.99, 0.9999])
)
def test_percentiles_are_at_most_three_percent_too_large(values: list[tuple[int, int]], share: float) -> None:
    histogram = Histogram()
    every: list[int] = []
    for value, count in values:
        histogram.add(value, count)
        every += [value] * count
    every.sort()
    exact = next(value for number, value in enumerate(every, 1) if number >= share * len(every))
    assert exact <= histogram.quantile(share) <= exact * 1.03 + 1
    assert (histogram.count, histogram.sum_ms, histogram.max_ms) == (len(every), sum(every), every[-1])


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 20), st.integers(0, 1000)), min_size=1, max_size=60))
def test_rates_are_differences_of_samples(steps: list[tuple[float, int]]) -> None:
    rates, now, total = Rates(), 0.0, 0
    samples: list[tuple[float, int]] = []
    for pause, more in steps:
        now, total = now + pause, total + more
        rates.add(now, {"x": total})
        samples.append((now, total))
    found = rates.of("x")
    for name, span in (("now", NOW_S), ("five_minutes", LONG_S)):
        within = [sample for sample in samples if now - sample[0] <= span]
        possible = [round((total - value) / (now - at), 2) if now > at else 0.0 for at, value in within]
        assert found[name] in possible
    assert rates.of("y") == {"now": 0.0, "five_minutes": 0.0}


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.dictionaries(st.sampled_from([1, 2]), st.integers(1, 9))), max_size=12),
    st.data(),
)
def test_each_message_is_delivered_once_and_not_too_early(batches: list[tuple[int, dict[int, int]]], data: Any) -> None:
    """Sinks take messages in order; a micro-batch is delivered when each sink has taken all of it."""
    latencies = Latencies()
    taken, published = {1: 4, 2: 0}, {1: 6, 2: 0}  # of an earlier run
    refusing = lambda n: {"messages": n - n // 3, "refused": n // 3}  # noqa: E731
    statuses = lambda: [{"port": at, "pending_messages": published[at] - n} | refusing(n) for at, n in taken.items()]  # noqa: E731
    latencies.begin({"sinks": statuses()})
    expected = Counter[int]()
    waiting: list[tuple[BatchReport, dict[int, int]]] = []
    now = 0
    for number, (messages, emitted) in enumerate(batches):
        report = BatchReport(number, now, now, arrived=Counter({now: messages}), emitted=Counter(emitted))
        for port, count in emitted.items():
            published[port] += count
        latencies.publish(report, now / 1000)
        waiting.append((report, {port: published[port] for port in emitted}))
        for _ in range(data.draw(st.integers(0, 2))):
            now += 1
            for port in taken:
                taken[port] = data.draw(st.integers(taken[port], published[port]))
            while waiting and all(taken[port] >= end for port, end in waiting[0][1].items()):
                report, ends = waiting.pop(0)
                expected[now - report.published_ms if ends else 0] += report.arrived.total()
            latencies.look({"sinks": statuses()}, now, now / 1000)
    found = latencies.histograms()["end_to_end"].total
    assert found.count == expected.total()
    assert found.sum_ms == sum(value * count for value, count in expected.items())


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_host_header_is_judged(text: str) -> None:
    if is_own_name(text, "127.0.0.1"):
        name = text.rpartition(":")[0] if not text.endswith("]") and ":" in text else text
        assert name.strip("[]").lower() == "localhost" or set(name) <= set("[]0123456789abcdefABCDEF:.")


@settings(deadline=None)
@given(st.text(alphabet="ab:9[].", max_size=12))
def test_an_address_has_a_host_and_a_port(text: str) -> None:
    found = parse_address(text)
    if found is not None:
        assert found[0] and 0 <= found[1] <= 65535
        assert text.endswith(f":{text.rpartition(':')[2]}")


def test_a_token_in_either_place() -> None:
    assert has_token("t", {"token": ["t"]}, "")
    assert has_token("t", {}, "bearer t")
    assert not has_token("t", {"token": ["t"]}, "Bearer x")
    assert not has_token("t", {}, "Basic t")
    assert not has_token("t", {"token": ["ü"]}, "")


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=7), max_size=6))
def test_findings_that_come_again_are_reported_again(rounds: list[list[str]]) -> None:
    said: list[str] = []
    told: list[str] = []
    for found in rounds:
        known, said = said, [*said, *found]
        told += since(known, said)
    assert told == said


@given(st.integers(1, 9), st.lists(st.integers(0, 9), max_size=9))
def test_findings_of_which_the_first_are_dropped(kept: int, rounds: list[int]) -> None:
    latest: deque[int] = deque(maxlen=kept)
    told: list[int] = []
    number = 0
    for count in rounds:
        known = list(latest)
        latest.extend(range(number, number := number + count))
        told += since(known, list(latest))
        assert told[-len(latest) :] == list(latest) or not latest
    assert told == sorted(set(told))
