"""The monitor: what it answers to other methods than it has, and its page on a phone."""

import http.client
import json
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.monitor import route
from wallaroo_runtime.monitor import server as server_module
from wallaroo_runtime.monitor.board import Board, Sample
from wallaroo_runtime.monitor.server import MonitorServer
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.topology.load import load

WORD_COUNT = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid" / "word_count.json"
NUMBERS = {"messages_in": 1 << 40, "run": {"messages_in": 1 << 40}}
GATEWAY = {
    "state": "listening",
    "sources": [{"name": "in", "address": "kafka-1.example.internal:9092"}],
    "connections": 1,
    "messages": 1 << 40,
    "end": 1 << 50,
    "backlog_bytes": 1 << 50,
    "reads": False,
}
SINK = {"port": 2, "name": "out", "state": "connected"}


@pytest.fixture
def board(tmp_path: Path) -> Board:
    topology = load(WORD_COUNT.read_bytes())
    board = Board(topology, compile_topology(topology, shuffle_partitions=2), tmp_path)
    board.begin({"sinks": []})
    board.warn(
        Diagnostic.of(
            "R614", path="/home/user/.local/state/wallaroo/word-count-python-1234567890ab/journal", effect="it waits"
        )
    )
    return board


@pytest.fixture
def server(board: Board) -> Iterator[MonitorServer]:
    server = MonitorServer(board, "127.0.0.1:0")
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize("token", [None, ""])
@pytest.mark.parametrize("path", ["/api/v1/status", "/healthz"])
@pytest.mark.parametrize("method", ["POST", "DELETE", "post", "X" * 200])
def test_other_methods_are_refused_as_the_api_refuses(
    server: MonitorServer, method: str, path: str, token: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    address = urlsplit(server.url)
    with closing(http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)) as connection:
        headers = {} if token == "" else {"Authorization": f"Bearer {server.token}"}
        connection.request(method, path, body=b"{}" * 30_000, headers=headers)
        reply = connection.getresponse()
        found = json.loads(reply.read())
    assert (reply.status, reply.headers["Allow"], reply.headers["Content-Type"]) == (
        405,
        "GET, HEAD",
        "application/json",
    )
    assert Diagnostic.from_json(found) == Diagnostic.of("R766", reason=f"it takes GET and HEAD, not {method[:80]}")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("length", ["", "many", "-1", "9" * 5000, "7"])
def test_a_body_that_does_not_come_is_not_waited_for_long(
    board: Board, monkeypatch: pytest.MonkeyPatch, length: str
) -> None:
    monkeypatch.setattr(server_module.Handler, "timeout", 0.2)
    server = MonitorServer(board, "127.0.0.1:0")
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=60) as connection:
            connection.sendall(f"POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode())
            status = connection.makefile("rb").read()[:13]
            # For a body of 7 bytes, the limit of the whole request races with the limit of its next byte.
            assert status == b"HTTP/1.1 405 " or (length == "7" and status == b"")
    finally:
        server.stop()


MEASURE = b"""<script>setInterval(() => document.body.dataset.beyond = Math.max(
  ...[...document.querySelectorAll(".wide:not(#graph)")].map((place) => place.scrollWidth - place.clientWidth)), 50)
</script>"""


@pytest.mark.slow
def test_all_of_the_tables_is_seen_on_a_phone(
    board: Board, server: MonitorServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = route._page()
    monkeypatch.setattr(route, "_page", lambda: page + MEASURE)
    sink = {**SINK, "address": "kafka-1.example.internal:9092", "messages": 1 << 40, "bytes": 1 << 50}
    waiting = {"sinks": [{**sink, "pending_messages": 1 << 40, "pending_bytes": 1 << 50}]}
    numbers = {**NUMBERS, "messages_in": 1 << 41}
    board.update("running", Sample(numbers, [GATEWAY], waiting, {"batchId": 3, "durationMs": {"addBatch": 150}}))
    assert shutil.which("chromium"), "there is no browser: `make browser` says how to install one"
    board.end()  # else the browser waits for further events
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--window-size=390,844", "--virtual-time-budget=3000", "--dump-dom", server.url]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    assert "kafka-1.example.internal:9092" in shown
    assert "; since the checkpoint began: in 2,199,023,255,552, out 0, dead letters 0<" in shown
    assert re.findall('data-beyond="(.*?)"', shown) == ["0"]
