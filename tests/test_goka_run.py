"""A program for Goka with other import paths, on Spark, against a real broker: killed once, and exact all the same."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from support.kafka import Broker
from support.run import READY, WALLAROO, wait_until, wallaroo

pytestmark = [pytest.mark.jvm, pytest.mark.kafka]
PROGRAM = Path(__file__).parents[1] / "examples" / "goka" / "click_counts"
TOPICS = {"user-clicks", "click-counts-table"}
DEADLINE_S = 400.0
USERS, CLICKS = 50, 4000  # clicks for each half of the run


class Program:
    """The example, which may be started again."""

    def __init__(self, directory: Path, brokers: str, mode: str) -> None:
        self.directory, self.binary = directory, directory / "click_counts"
        runtime = directory / "wallaroo"
        runtime.write_text(f'#!/bin/sh\nexec "{WALLAROO}" "$@" --master "local[2]" --mode {mode}\n')
        runtime.chmod(0o700)
        own = {"BROKERS": brokers, "WALLAROO": str(runtime), "XDG_STATE_HOME": str(directory / "state")}
        self.environment = {**os.environ, **own, "TMPDIR": str(directory)}
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the processor and wait until it processes."""
        known = self.output().count(READY)
        with (self.directory / "output").open("ab") as output:
            self.process = subprocess.Popen(
                [self.binary, "process"], stdout=output, stderr=output, env=self.environment, start_new_session=True
            )
        wait_until(lambda: self.output().count(READY) > known or not self.is_alive(), self.output, DEADLINE_S)
        assert self.is_alive(), self.output()

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def output(self) -> str:
        path = self.directory / "output"
        return path.read_text() if path.exists() else ""

    def end(self, number: int) -> int:
        """End it by a signal; returns its exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(120)

    def children(self) -> list[str]:
        """Return the processes that are left of it, by what is in their command lines and nobody else's."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and (command := _command_of(entry)) and str(self.directory) in command:
                found.append(f"{entry.name} {command}")
        return found


def _command_of(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""  # it has ended


@pytest.fixture(params=["microbatch", pytest.param("realtime", marks=pytest.mark.long)])
def program(request: pytest.FixtureRequest, tmp_path: Path, broker: Broker) -> Iterator[Program]:
    if left := TOPICS & set(broker.cluster.metadata().topics):  # by the other mode
        broker.delete(*left)
    made = Program(tmp_path, broker.address, request.param)
    built = wallaroo("build", PROGRAM, "-o", made.binary, seconds=DEADLINE_S)
    assert built.returncode == 0, built.stderr
    yield made
    if made.is_alive():
        made.end(signal.SIGKILL)
    wait_until(lambda: not made.children(), lambda: f"{made.children()} to end", 120)


def click(broker: Broker, first: int) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "partitioner": "fnv1a"})
    for number in range(first, first + CLICKS):
        producer.produce("user-clicks", b"click", key=f"user-{number % USERS}")
    assert producer.flush(60) == 0


class Counts:
    """The group's table as a reader of committed records sees it: each user's counts, in order."""

    def __init__(self, broker: Broker) -> None:
        settings = {"bootstrap.servers": broker.address, "group.id": "counts", "auto.offset.reset": "earliest"}
        self.consumer = Consumer({**settings, "isolation.level": "read_committed"})
        self.consumer.subscribe(["click-counts-table"])
        self.users: dict[str, list[int]] = {}

    def read(self, total: int, program: Program) -> None:
        """Read until so many clicks were counted."""
        deadline = time.monotonic() + DEADLINE_S
        while sum(map(len, self.users.values())) < total:
            assert time.monotonic() < deadline, program.output()
            assert program.is_alive(), program.output()
            for record in self.consumer.consume(1000, 0.2):
                if record.error() is None:
                    self.users.setdefault(record.key().decode(), []).append(int(record.value()))


def test_click_counts_are_exact_over_a_kill(broker: Broker, program: Program) -> None:
    program.start()
    click(broker, 0)
    counts = Counts(broker)
    try:
        counts.read(CLICKS // 10, program)  # some of them: the rest is on its way
        assert program.end(signal.SIGKILL) == -signal.SIGKILL
        click(broker, CLICKS)
        program.start()
        counts.read(2 * CLICKS, program)
    finally:
        counts.consumer.close()
    expected = list(range(1, 2 * CLICKS // USERS + 1))
    assert counts.users == {f"user-{number}": expected for number in range(USERS)}
    assert program.end(signal.SIGTERM) == 0, program.output()
    assert f"stopped: in {2 * CLICKS:,}  " in program.output()  # of the killed run, too
    assert "R779" not in program.output()
    shutil.rmtree(program.directory / "state")  # as a program of Goka's own comes here: its table is in the topic alone
    program.start()
    assert "R779" in program.output()
    assert "click-counts-table" in program.output().partition("R779")[2]
    assert program.end(signal.SIGTERM) == 0, program.output()
    # Java may still write the archive of its classes, which it does once.
    wait_until(lambda: not program.children(), lambda: f"{program.children()} to end", 120)
