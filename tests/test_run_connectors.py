"""A connector's program sends to a running application, and the frames of its sink connector come out."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from case import Case, payloads
from run import WAIT_S, Receiver, Run

pytestmark = pytest.mark.jvm


def test_celsius_through_connectors(tmp_path: Path) -> None:
    case = Case("celsius_connectors")
    expected = case.expected("python")
    with Receiver() as receiver, ExitStack() as stack:
        ports = ["--feed-port", "0", "--take-port", receiver.address.rpartition(":")[2]]
        run = stack.enter_context(Run(case.app("python"), receiver, tmp_path / "checkpoint", *ports, source=""))
        run.ready()
        ((host, port),) = run.addresses()
        feed = [
            sys.executable, case.folder / "feed.py", "--application-module", case.app("python"),
            "--connector", "celsius", "--celsius-file", case.folder / "input.txt",
            "--celsius-host", host, "--celsius-port", str(port),
        ]  # fmt: skip
        done = subprocess.run(feed, capture_output=True, text=True, check=False, timeout=WAIT_S)
        assert done.returncode == 0, done.stderr
        run.wait_while_alive(
            lambda: len(payloads(receiver.data())) >= len(expected), lambda: f"{len(expected)} frames of the sink"
        )
        assert run.stop() == 0, run.said()
        assert case.arranged(payloads(receiver.data())) == case.arranged(expected)
        assert run.last("dead_letters") == case.setting("dead_letters")
