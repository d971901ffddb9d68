"""`wallaroo run --debug`: breakpoint() stops in the terminal; in an ordinary run it says what to do."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.kafka import free_port
from wallaroo.worker.debugger import NoTerminalError, refuse_breakpoints
from wallaroo_runtime.cli.main import main

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


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--json"], "--json: the terminal is the debugger's"),
        (["--attach", "main=unix:///w"], "--attach: the worker is started here"),
        (["--master", "yarn"], "--master: workers of a cluster have no terminal"),
        (["--engine", "memory"], "--engine memory: breakpoint() stops there without it"),
    ],
)
def test_options_that_do_not_go_with_it(options: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "app.py", "--debug", *options]) == 2
    assert f"--debug does not go with {reason}" in capsys.readouterr().err


def test_a_port_that_another_program_uses(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["run", "app.py", "--debug-port", str(port)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"R608 debugpy cannot listen at 127.0.0.1:{port}; Address already in use\n")
    assert "fix: stop the program that uses it, or give another port" in said


@pytest.mark.slow
def test_debugpy_is_looked_for_in_the_interpreter_of_the_worker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = interpreter(tmp_path, f'exec {sys.executable} -S "$@"')  # without what is installed
    assert main(["run", "app.py", "--debug-port", str(free_port()), "--worker-python", python]) == 2
    said = capsys.readouterr().err
    assert said.startswith("R608 --debug-port needs debugpy\n")
    assert f"fix: `{python} -m pip install debugpy`" in said


@pytest.mark.slow
@pytest.mark.parametrize("is_port_given", [False, True])
def test_the_worker_has_the_interpreter_of_the_run(
    is_port_given: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    app = tmp_path / "ends_app.py"
    app.write_text(PROGRAM)
    python = interpreter(tmp_path, f'[ "$1" = -c ] && exec {sys.executable} "$@"; echo "worker: $@" >&2; exit 7')
    options = ["--debug-port", str(free_port())] if is_port_given else ["--debug"]
    command = ["run", str(app), *options, "--worker-python", python]
    command += ["--checkpoint", str(tmp_path / "checkpoint"), "--in", "127.0.0.1:0", "--out", "127.0.0.1:9"]
    assert main(command) == 4
    out, said = capfd.readouterr()
    assert "debug: worker" not in out, "it was started with another interpreter"
    assert f"worker: {'-X frozen_modules=off -m debugpy' if is_port_given else '-m wallaroo'}" in said
    assert "W401 " in said and "it exited with status 7" in said


@pytest.mark.slow
def test_an_interpreter_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = tmp_path / "ends_app.py"
    app.write_text(PROGRAM)
    command = ["run", str(app), "--debug-port", str(free_port()), "--worker-python", "/no/python"]
    command += ["--checkpoint", str(tmp_path / "checkpoint"), "--in", "127.0.0.1:0", "--out", "127.0.0.1:9"]
    assert main(command) == 4
    assert "W432 --worker-python /no/python cannot run workers; No such file or directory" in capsys.readouterr().err


def interpreter(folder: Path, script: str) -> str:
    (path := folder / "python").write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return str(path)


@pytest.mark.slow
def test_a_worker_that_does_not_start(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    app = tmp_path / "twice_app.py"
    app.write_text(PROGRAM + "\nimport os\nif os.environ['WALLAROO_MODE'] == 'worker':\n    1 / 0\n")
    assert main(["run", str(app), "--debug", "--in", "127.0.0.1:0", "--out", "127.0.0.1:9"]) in (3, 4)
    out, said = capfd.readouterr()
    assert "ZeroDivisionError" in said
    assert "fix: " in said
    assert out.splitlines() == [f"reading {app}", 'starting worker "main" in this terminal']


@pytest.mark.jvm
def test_a_breakpoint_stops_in_the_terminal(tmp_path: Path) -> None:
    app = tmp_path / "stops_app.py"
    app.write_text(PROGRAM)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        command = [WALLAROO, "run", app, "--debug", "--in", "127.0.0.1:0", "--out", address]
        command += ["--checkpoint", tmp_path / "checkpoint"]
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        ) as run:
            assert run.stdin and run.stdout
            said = b""
            while b"initialized" not in said:
                said += (line := run.stdout.readline())
                assert line, said
            (source,) = [line for line in said.splitlines() if b"listens at" in line]
            with socket.create_connection(("127.0.0.1", int(source.partition(b" (")[0].rpartition(b":")[2]))) as sender:
                sender.sendall(b"hello\n")
            while b"(Pdb) " not in said:
                said += (block := os.read(run.stdout.fileno(), 4096))
                assert block, said
            run.stdin.write(b"p data + '!'\nc\n")
            run.stdin.flush()
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(300)
                assert connection.recv(100) == b"HELLO\n"
            os.killpg(run.pid, signal.SIGINT)
            said += run.communicate(timeout=300)[0]
    assert run.returncode == 0, said
    assert b"'hello!'" in said
    assert b'debug: worker "main" is process ' in said
    phases = [b"reading /", b"starting worker ", b"starting Spark", b"starting the query", b"stopping: "]
    assert [said.count(phase) for phase in phases] == [1] * len(phases), said
    assert b"stopped: in 1  out 1 " in said
    assert b"dead letters 0" in said
    log = (tmp_path / "checkpoint" / "logs" / "spark.log").read_text()
    assert log.startswith("--- run began 20") and log.count("\n--- run stops 20") == 1, log
