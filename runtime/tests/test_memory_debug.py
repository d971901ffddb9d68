"""`breakpoint()` and what else a program does with the terminal in `wallaroo run --engine memory`."""

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from support.patient_reading import read_patiently
from wallaroo.worker.host.debugger import NoTerminalError, refuse_breakpoints
from wallaroo_runtime.case.record_input import RecordInput
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.console.breakpoint import breakpoints

PROGRAM = """
import wallaroo

def application_setup(args):
    (in_host, in_port), *_ = wallaroo.tcp_parse_input_addrs(args)
    (out_host, out_port), *_ = wallaroo.tcp_parse_output_addrs(args)
    lines = wallaroo.source("lines", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    return wallaroo.build_application("Stops", lines.to(stop).to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode)))

@wallaroo.line_decoder
def decode(bs):
    return bs.decode()

@wallaroo.computation("stop")
def stop(data):
    breakpoint()
    return data.upper()

@wallaroo.line_encoder
def encode(line):
    return line
"""  # noqa: E501
WALLAROO = str(Path(sys.executable).with_name("wallaroo"))
PROMPT = b"(Pdb) "
RUN = [WALLAROO, "run"]
MEMORY = ["--engine", "memory", "--in", "127.0.0.1:0", "--out", "127.0.0.1:9"]
SLEEP = b"p __import__('time').sleep(600)\n"
TYPED = {
    "c, then Ctrl-C at the next message": [b"c\n", b"\x03"],
    "a step, then q": [b"n\n", b"q\n"],
    "Ctrl-C in a command": [SLEEP + b"\x03"],
}
pytestmark = pytest.mark.slow


class Person:
    """Looks at a terminal, in which a command runs, and types."""

    def __init__(self, command: list[str]) -> None:
        self.process, self._terminal = pty.fork()
        if not self.process:
            os.execv(command[0], command)
        self.shown = b""
        self.again: Callable[[], object] | None = None  # what is repeated until something is shown

    def wait(self, text: bytes) -> None:
        """Wait until a text is shown that was not before."""
        before = self.shown.count(text)
        while self.shown.count(text) == before:
            self.shown += (block := os.read(self._terminal, 4096))
            assert block, self.shown

    def type(self, keys: bytes) -> None:
        """Type; Ctrl-C once what is before it was shown."""
        self.again = partial(os.write, self._terminal, b"\x03") if keys.endswith(b"\x03") else None
        text, _, rest = keys.partition(b"\x03")
        if text and text != keys:
            os.write(self._terminal, text)
            self.wait(text.rstrip())
        os.write(self._terminal, b"\x03" + rest if text != keys else keys)

    def ended(self) -> int:
        """Wait for the end; return the exit code."""
        with suppress(OSError):  # EIO: it has ended
            while block := read_patiently(self._terminal, self.again):
                self.shown += block
        _, status = os.waitpid(self.process, 0)
        os.close(self._terminal)
        return os.waitstatus_to_exitcode(status)


@pytest.fixture
def app(tmp_path: Path) -> str:
    (path := tmp_path / "app.py").write_text(PROGRAM)
    return str(path)


def send(shown: bytes, lines: bytes) -> socket.socket:
    found = re.search(rb"listens at 127\.0\.0\.1:([0-9]+)", shown)
    assert found, shown
    connection = socket.create_connection(("127.0.0.1", int(found[1])))
    connection.sendall(lines)
    return connection


@pytest.mark.parametrize("name", TYPED)
def test_who_leaves_the_debugger_ends_the_run(name: str, app: str) -> None:
    person = Person([*RUN, app, *MEMORY])
    person.wait(b"initialized")
    with send(person.shown, b"one\ntwo\nthree\n"):
        for keys in TYPED[name]:
            person.wait(PROMPT)
            person.type(keys)
        assert person.ended() == 130, person.shown
    assert person.shown.count(PROMPT) == len(TYPED[name]), person.shown
    assert person.shown.count(b"broken off at a breakpoint\r\nstopped: in ") == 1
    assert b"R740" not in person.shown and b"R741" not in person.shown
    assert b"dead letters 0" in person.shown, person.shown  # the message at the prompt has not failed


def test_a_signal_ends_the_prompt(app: str) -> None:
    person = Person([*RUN, app, "--debug", *MEMORY[2:]])
    person.wait(b"initialized")
    with send(person.shown, b"one\n"):
        person.wait(PROMPT)
        person.again = partial(os.kill, person.process, signal.SIGTERM)
        person.again()
        assert person.ended() == 143, person.shown
    assert b"stopped: in " in person.shown


def test_a_breakpoint_of_the_setup_can_be_left(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(PROGRAM.replace("(args):\n", "(args):\n    breakpoint()\n"))
    person = Person([*RUN, str(tmp_path / "app.py"), *MEMORY])
    person.wait(PROMPT)
    person.type(b"q\n")
    assert person.ended() == 130
    assert b"stopped before it was ready" in person.shown and b"BdbQuit" not in person.shown


def ended(options: list[str], app: str, stdin: int) -> tuple[int, str]:
    with subprocess.Popen(
        [*RUN, app, *MEMORY, *options], stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as run:
        assert run.stderr
        said = b""
        while b"initialized" not in said:
            said += (line := run.stderr.readline())
            assert line, said
        with send(said.replace(b'"address": "', b"listens at "), b"one\n"):
            while b"C501" not in said:
                said += (line := run.stderr.readline())
                assert line, said
            run.send_signal(signal.SIGINT)
            said += run.communicate(timeout=300)[1]
    return run.returncode, said.decode()


def test_a_breakpoint_without_a_terminal_says_what_to_do(app: str) -> None:
    status, said = ended([], app, subprocess.DEVNULL)
    assert status == 1 and "R741" in said, "all messages failed"
    assert "C501" in said and "NoTerminalError: breakpoint() has no terminal in this run: use `wallaroo run" in said
    assert "BdbQuit" not in said


def test_json_leaves_no_terminal(app: str) -> None:
    seen, own = pty.openpty()
    try:
        assert "NoTerminalError" in ended(["--json"], app, own)[1]
    finally:
        os.close(seen)
        os.close(own)


def test_who_has_the_terminal_is_asked_for_it() -> None:
    before = sys.breakpointhook
    with breakpoints(has_terminal=False):
        assert sys.breakpointhook is not before
    assert sys.breakpointhook is before


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    os.close(writing)


def test_records_are_not_read_while_a_debugger_is_asked(ends: tuple[int, int]) -> None:
    reading, writing = ends
    records = RecordInput(print, reading)
    os.set_blocking(reading, False)
    for _ in range(100):
        with records.paused():
            os.write(writing, b"p data\n")
            time.sleep(0.001)  # enough for who would take it
            assert os.read(reading, 100) == b"p data\n"
    os.write(writing, b"topic key value\n")
    again = threading.Event()
    taken = None
    while taken is None and not again.wait(0.01):
        taken = records.take()
    assert isinstance(taken, list) and [record.topic for record in taken] == ["topic"]


def test_a_breakpoint_of_an_ordinary_run_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
    refuse_breakpoints()
    with pytest.raises(NoTerminalError, match="use `wallaroo run --debug`, or test it with wallaroo.testing"):
        breakpoint()  # noqa: T100


@pytest.mark.parametrize(("name", "value"), [("WALLAROO_DEBUG", "1"), ("PYTHONBREAKPOINT", "0")])
def test_a_debugger_is_left_alone(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "breakpointhook", sys.__breakpointhook__)
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)
    monkeypatch.setenv(name, value)
    refuse_breakpoints()
    assert sys.breakpointhook is sys.__breakpointhook__


def test_it_is_the_engine_memory(capsys: pytest.CaptureFixture[str]) -> None:
    for options, reason in (
        (("--json",), "--debug does not go with --json: the terminal is the debugger's"),
        (("--mode", "realtime"), "--mode means nothing with --debug"),
    ):
        assert main(["run", "app.py", "--debug", *options]) == 2
        assert reason in capsys.readouterr().err
