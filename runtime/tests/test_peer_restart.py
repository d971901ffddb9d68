"""Gateway and egress that end by themselves: started again, announced, and not for ever."""

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from support.peer import gateway as gateway_of
from support.peer import kill
from support.run import wait_until
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer import local
from wallaroo_runtime.peer.local import LocalPeer
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.override import override

pytestmark = pytest.mark.slow
VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"


def started(checkpoint: Path, port: int = 0) -> LocalPeer:
    document = json.loads((VALID / "word_count.json").read_bytes())
    return gateway_of(checkpoint, override(load_document(document), f"127.0.0.1:{port}", "127.0.0.1:1"))


def test_a_killed_gateway_is_started_again_and_announced(checkpoint: Path) -> None:
    gateway, notes = started(checkpoint), list[str]()
    gateway.check(notes.append)
    assert notes == []
    before = kill(gateway)
    gateway.check(notes.append)
    assert gateway.is_alive()
    assert gateway.status()["pid"] != before
    assert notes[0] == "the gateway ended unexpectedly; signal 9; it was started again"
    ((_, address),) = gateway.addresses()
    assert notes[1:] == [f'source "Split and Count" now listens at {address}']
    host, _, port = address.rpartition(":")
    socket.create_connection((host, int(port)), timeout=5).close()
    gateway.stop()
    assert not gateway.is_alive()


def test_a_peer_that_a_signal_ended_in_order_waits_for_that_to_its_driver(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = started(checkpoint)
    os.kill(peer.status()["pid"], signal.SIGTERM)
    wait_until(lambda: not peer.is_alive(), lambda: "its end", 60)
    notes: list[str] = []
    monkeypatch.setattr(local, "SIGNAL_S", 60)
    peer.check(notes.append)
    assert (notes, peer.is_alive()) == ([], False), "the driver may be about to stop"
    monkeypatch.setattr(local, "SIGNAL_S", 0)
    peer.check(notes.append)
    assert peer.is_alive()
    assert notes[0].startswith("the gateway ended unexpectedly; exit code 0")
    peer.stop()


def test_a_gateway_that_ends_again_and_again_ends_the_run(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "RESTART_LIMIT", 2)
    gateway, notes = started(checkpoint), list[str]()
    for _ in range(2):
        kill(gateway)
        gateway.check(notes.append)
    kill(gateway)
    with pytest.raises(RunError) as caught:
        gateway.check(notes.append)
    assert caught.value.diagnostics[0].code == "R617"
    assert caught.value.diagnostics[0].message == "the gateway ended unexpectedly; signal 9"


def test_a_gateway_that_says_why_it_cannot_go_on_is_not_started_again(checkpoint: Path) -> None:
    gateway, notes = started(checkpoint), list[str]()
    status = gateway.status()
    kill(gateway)
    finding = {"code": "R698", "message": "journal J is damaged at offset 7; gone", "fix": "restore it"}
    (checkpoint / "gateway.json").write_text(json.dumps({**status, "state": "failed", "diagnostics": [finding]}))
    with pytest.raises(RunError) as caught:
        gateway.check(notes.append)
    assert caught.value.diagnostics[0].code == "R698"
    assert notes == []
