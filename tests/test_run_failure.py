"""What ends a run that is not the user code's fault: told once, with its cause, and the next run continues."""

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.case import CASES
from support.host import java_of
from support.life import free_port
from support.run import TESTS, WAIT_S, Receiver, Run, framed, wait_until, wallaroo

pytestmark = [pytest.mark.jvm, pytest.mark.long]
REVERSE = CASES / "reverse" / "app.py"


def emitted(app: Path) -> dict[str, Any]:
    """Return the topology of a program."""
    done = wallaroo("emit", app, "--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def written(folder: Path, document: dict[str, Any]) -> Path:
    """Write a topology to a file."""
    path = folder / "topology.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def finding(run: Run) -> dict[str, Any]:
    """Return the only finding that a run printed at its end."""
    (found,) = [json.loads(line)[0] for line in run.errors if line.startswith('[{"code"')]
    return dict(found)


def test_a_program_that_declares_something_else_is_refused(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    shutil.copy(REVERSE, app)
    topology = written(tmp_path, emitted(app))
    app.write_text(app.read_text(encoding="utf-8").replace('name="reverse"', 'name="backwards"'), encoding="utf-8")
    with Receiver() as receiver, Run(topology, receiver, tmp_path / "c") as run:
        assert run.end(WAIT_S) == 4, run.said()
        told = finding(run)
    assert told["code"] == "W403"
    assert told["message"].startswith('worker "main" hosts another application; its interface hash is sha256:')


def test_a_worker_that_breaks_the_rules_ends_the_run(tmp_path: Path) -> None:
    document = emitted(REVERSE)
    wrong = [sys.executable, str(TESTS / "conformance" / "wrong_worker.py"), "done-first"]
    right = [part.replace("{python}", sys.executable) for part in document["workers"][0]["command"]]
    document["workers"][0]["command"] = [*wrong, *right]
    with Receiver() as receiver:
        with Run(written(tmp_path, document), receiver, tmp_path / "c") as run:
            run.ready().send(framed([b"abc"]))
            assert run.end(WAIT_S) == 4, run.said()
            told = finding(run)
        assert told["code"] == "W410"
        assert told["message"].endswith("field messages_out: 1; the frames of 0/sinks/0 hold 0"), told
        with Run(REVERSE, receiver, tmp_path / "c") as run:
            assert receiver.wait_for_lines(1, run.ready()) == ["cba"]
            assert run.stop() == 0, run.said()


def terminate(processes: Iterable[int]) -> None:
    """Send SIGTERM to each of these processes that is still there: the end of one may end another."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)


def test_signals_for_all_processes_at_once_stop_a_run_in_order(tmp_path: Path) -> None:
    with Receiver() as receiver:
        with Run(REVERSE, receiver, tmp_path / "c") as run:
            run.ready().send(framed([b"abc"]))
            receiver.wait_for_lines(1, run)
            os.killpg(run.process.pid, signal.SIGTERM)  # as a shell, or `timeout`
            assert run.end() == 0, run.said()
        with Run(REVERSE, receiver, tmp_path / "c") as run:
            run.ready().send(framed([b"def"]))
            assert receiver.wait_for_lines(2, run) == ["cba", "fed"]
            # As a service manager does it, and Java first.
            terminate([java_of(run.process.pid), *run.processes(str(tmp_path / "c"))])
            assert run.end() == 0, run.said()


def test_the_death_of_the_java_virtual_machine_is_told_and_survived(tmp_path: Path) -> None:
    with Receiver() as receiver:
        with Run(REVERSE, receiver, tmp_path / "c") as run:
            run.ready().send(framed([b"abc"]))
            receiver.wait_for_lines(1, run)
            os.kill(java_of(run.process.pid), signal.SIGKILL)
            assert run.end(WAIT_S) == 1, run.said()
            told = finding(run)
        assert told["code"] == "R617"
        assert told["message"] == "the Spark process ended unexpectedly; the Java virtual machine is gone"
        with Run(REVERSE, receiver, tmp_path / "c") as run:
            run.ready().send(framed([b"def"]))
            assert receiver.wait_for_lines(2, run) == ["cba", "fed"]
            assert run.stop() == 0, run.said()


class Away(NamedTuple):
    """A receiver that is not there."""

    address: str


def outages(run: Run) -> int:
    """Count the findings of a run that a sink cannot be reached."""
    return sum('"R613"' in line for line in run.errors)


def test_an_outage_that_is_over_is_not_told_to_the_next_run(tmp_path: Path) -> None:
    """The egress outlives a driver that is killed: what it has reported to that one may be long over."""
    place = ("127.0.0.1", free_port(random.randrange(1 << 32)))
    away = Away("{}:{}".format(*place))
    with Run(REVERSE, away, tmp_path / "c") as run:
        run.ready().send(framed([b"abc"]))
        run.wait_for("messages_processed", 1)
        run.wait_while_alive(lambda: outages(run) == 1, lambda: "R613")
        run.process.kill()
    with Run(REVERSE, away, tmp_path / "c") as run:  # it lasts
        run.ready().wait_while_alive(lambda: outages(run) == 1, lambda: "R613")
        run.process.kill()
    with Receiver(socket.create_server(place)) as receiver:
        wait_until(lambda: receiver.lines() == ["cba"], lambda: "what the egress has")
        with Run(REVERSE, receiver, tmp_path / "c") as run:
            run.ready().send(framed([b"def"]))
            assert receiver.wait_for_lines(2, run) == ["cba", "fed"]
            assert run.stop() == 0, run.said()
            assert outages(run) == 0, run.said()
