"""Readers of the monitor that say little, listen for long, or ask for large numbers."""

import contextlib
import http.client
import socket
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.monitored import monitored, stopped
from wallaroo_runtime.monitor import server as server_module
from wallaroo_runtime.monitor.board import Sample

__all__ = ["stopped"]  # the fixture


def answered(slow: socket.socket) -> bool:
    """Return whether the server has answered or ended the connection; if not, send one more byte."""
    try:
        slow.recv(1)
    except BlockingIOError:
        slow.sendall(b"y")
        return False
    return True


def test_a_reader_that_says_little_at_a_time_is_left(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise other users of the machine could hold all connections for days, without the token."""
    monkeypatch.setattr(server_module.Handler, "timeout", 1.0)
    with (
        monitored(stopped) as server,
        socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=60) as slow,
    ):
        begun = time.monotonic()
        slow.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        slow.setblocking(False)
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - begun < 60 and not answered(slow):
                time.sleep(0.1)
        assert 0.5 <= time.monotonic() - begun < 60


def test_events_go_on_for_longer_than_a_request_may_last(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module.Handler, "timeout", 0.5)
    with (
        monitored(stopped) as server,
        socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=60) as reader,
    ):
        reader.sendall(f"GET /api/v1/events?token={server.token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        events = reader.makefile("rb")
        while not events.readline().startswith(b"data: "):
            pass
        time.sleep(1)
        server.board.update("running", Sample({"run": {"messages_in": 4}}))
        assert events.readline() == b"\n" and events.readline().startswith(b"data: ")


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 5000))
@example(5000)
def test_numbers_of_any_length_are_answered(stopped: Path, length: int) -> None:
    digits = "9" * length
    with monitored(stopped) as server:
        for path, known in (("dead-letters?limit=", (200, 400)), ("dead-letters/1-2-", (404,))):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
            connection.request("GET", f"/api/v1/{path}{digits}", headers={"Authorization": f"Bearer {server.token}"})
            assert connection.getresponse().status in known
            connection.close()
