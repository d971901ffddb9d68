"""A monitor that answers, and a checkpoint that nobody runs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.manifest import put_manifest
from wallaroo_runtime.monitor.board import Board, Sample
from wallaroo_runtime.monitor.server import MonitorServer
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.service.driver import announce
from wallaroo_runtime.topology.load import load

WORD_COUNT = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid" / "word_count.json"


EGRESS = {"sinks": [{"name": "out", "address": "h:1", "messages": 5, "pending_messages": 2}]}


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkpoint that nobody drives."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "checkpoint"
    (path / "logs").mkdir(parents=True)
    put_manifest(path)
    (path / "gateway.json").write_text(json.dumps({"state": "stopped", "messages": 7}))
    (path / "egress.json").write_text(json.dumps(EGRESS))
    return path


@contextmanager
def monitored(checkpoint: Path) -> Iterator[MonitorServer]:
    """Run the monitor of a checkpoint in this process, which drives it."""
    topology = load(WORD_COUNT.read_bytes())
    board = Board(topology, compile_topology(topology, shuffle_partitions=2), checkpoint)
    board.update("running", Sample({"run": {"messages_in": 3}}))
    server = MonitorServer(board, "127.0.0.1:0")
    announce(checkpoint, monitor=server.url)
    server.start()
    yield server
    server.stop()
