"""Connectors' programs send to a running application, and take its output: one's own, and those of the SDK for UDP."""

import contextlib
import select
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from support.case import Case
from support.kafka import free_port
from support.run import WAIT_S, Run, wait_until

pytestmark = [pytest.mark.jvm, pytest.mark.connector]


@pytest.mark.parametrize("language", ["python", "go"])
def test_celsius_through_connectors(language: str, tmp_path: Path) -> None:
    case = Case("celsius_connectors")
    expected = case.expected(language)
    temperatures = (case.folder / "input.txt").read_text().splitlines()
    by_file, by_datagram = temperatures[::2], temperatures[1::2]
    (tmp_path / "input.txt").write_text("\n".join(by_file))
    take = free_port()
    app = ["--application-module", case.app("python"), "--take-port", take]
    with contextlib.ExitStack() as stack:
        out, feed = (
            stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2)
        )  # fmt: skip
        out.bind(("127.0.0.1", 0))

        def started(name: str, connector: str, port: int) -> "subprocess.Popen[str]":
            at = [f"--{connector}-host", "127.0.0.1", f"--{connector}-port", port]
            command = [Path(sys.executable).with_name(name), *app, "--connector", connector, *at]
            program = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True)
            stack.enter_context(program)
            stack.callback(program.kill)
            assert program.stdout is not None
            assert select.select([program.stdout], [], [], WAIT_S)[0], f"{name} said nothing"
            assert program.stdout.readline(), f"{name} ended"
            return program

        sink = started("udp_sink", "fahrenheit", out.getsockname()[1])
        ports = ["--feed-port", free_port(), "--take-port", take]
        app += ports[:2]
        run = stack.enter_context(Run(case.app(language), None, tmp_path / "checkpoint", *ports, source=""))
        run.ready()
        own = [sys.executable, case.folder / "feed.py", *app, "--connector", "celsius"]
        command = list(map(str, [*own, "--celsius-file", tmp_path / "input.txt"]))
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=WAIT_S)
        assert done.returncode == 0, done.stderr
        port = free_port()
        source = started("udp_source", "celsius", port)
        for line in by_datagram:
            feed.sendto(struct.pack(">f", float(line)), ("127.0.0.1", port))
        got: list[str] = []

        def arrived() -> bool:
            while select.select([out], [], [], 0)[0]:
                got.append(out.recv(65536).decode())
            return len(got) >= len(expected)

        run.wait_while_alive(arrived, lambda: f"{len(expected)} datagrams, have {len(got)}")
        for program in (source, sink):
            program.terminate()
            wait_until(lambda program=program: program.poll() is not None, lambda: "the end of a program")
            assert program.returncode == 0
        assert run.stop() == 0, run.said()
        assert case.arranged(got) == case.arranged(expected)
        assert run.last("dead_letters") == case.setting("dead_letters")
