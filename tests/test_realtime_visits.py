"""Visits in real-time mode: each key once, at its place among the messages, while processes are killed."""

import contextlib
import json
import os
import random
import signal
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from support.realtime import kill_driver, lines, processes_of_worker
from support.run import MODES, TESTS, WAIT_S, WALLAROO, Receiver, Run, framed, wallaroo
from support.visited.app import VISITS
from support.visits import Event, Reference

pytestmark = [pytest.mark.jvm, pytest.mark.long]
FOLDER = TESTS / "support" / "visited"
APPS = {"python": FOLDER / "app.py", "go": FOLDER}
KEYS = "abcdefghijkl"
STRETCHES, EVENTS = 2, 12


class Life:
    """A checkpoint over several runs, all that was sent to it, and what must come of it.

    Args:
        language: Of the program.
        path: The checkpoint.
        source: Draws.
    """

    def __init__(self, language: str, path: Path, source: random.Random) -> None:
        self.app, self.path, self._source = APPS[language], path, source
        self.receiver, self.reference = Receiver(), Reference()
        self.counts: list[tuple[int, int] | None] = []  # None: nobody waited for it
        self._sent = 0
        self._due: int | None = 0  # lines of all events up to the last kill of a worker and the next one

    def stretch(self, *, is_killed: bool) -> None:
        """Send events to a run while its workers die; at the end the driver may, with what is not done yet."""
        with Run(self.app, self.receiver, self.path, *MODES["realtime"]) as run:
            run.ready()
            for _ in range(EVENTS):
                if self._source.random() < 0.15:
                    self._kill_worker(run)
                if self._source.random() < 0.4:
                    self._visit(run)
                else:
                    self._send(run)
                if self._due is None:
                    self._due = self.reference.count()
            if is_killed:
                self._kill(run)
                return
            self._wait(run)
            assert run.stop() == 0, run.said()

    def _send(self, run: Run) -> None:
        events = [
            (self._source.choice(KEYS), str(self._source.randint(1, 3))) for _ in range(self._source.randint(1, 30))
        ]
        run.send(framed(f"{key}={value}".encode() for key, value in events))  # they are in the journal then
        self._sent += len(events)
        for event in events:
            self.reference.take(event)

    def _visit(self, run: Run) -> None:
        event: Event = (self._source.choice(VISITS), str(self._source.randint(1, 5)))
        waits = self._source.random() < 0.5
        command = ("visit", self.path, event[0], "--metadata", event[1], "--json")
        if not waits:
            done = wallaroo(*command)
        else:
            asked = subprocess.Popen(
                [str(part) for part in (WALLAROO, *command, "--wait")], stdout=subprocess.PIPE, text=True
            )
            if self._source.random() < 0.3:
                self._kill_worker(run)
            done = subprocess.CompletedProcess((), asked.wait(WAIT_S), asked.communicate()[0], run.said())
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        self.reference.take(event)
        self.counts.append((told["keys"], told["failed"]) if waits else None)

    def _kill_worker(self, run: Run) -> None:
        if self._due:
            self._wait_for_lines(run, self._due)  # a message that is in flight at two kills would be skipped
        self._due = None
        workers = sorted(processes_of_worker(run))
        for pid in self._source.sample(workers, min(len(workers), 1)):  # none: the last one has just been killed
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @staticmethod
    def _kill(run: Run) -> None:
        kill_driver(run)
        assert run.end(120) != 0

    def _wait(self, run: Run) -> None:
        self._wait_for_lines(run, self.reference.count())
        run.wait_for("messages_processed", self._sent)

    def _wait_for_lines(self, run: Run, count: int) -> None:
        run.wait_while_alive(
            lambda: len(lines(self.receiver)) >= count, lambda: f"{len(lines(self.receiver))} of {count} lines"
        )

    def check(self) -> None:
        """Compare lines, dead letters and counts with the reference."""
        given: defaultdict[str, list[str]] = defaultdict(list)
        for line in lines(self.receiver):
            given[line[0]].append(line)
        assert given == self.reference.given
        listed = wallaroo("dead-letters", "ls", self.path, "--json", "--limit", 1_000_000).stdout.splitlines()
        assert sorted(json.loads(line)["key"] for line in listed) == sorted(key for key, _ in self.reference.letters)
        expected = zip(self.counts, self.reference.visited, strict=True)
        assert [(told, wanted) for told, wanted in expected if told not in (None, wanted)] == []


@pytest.mark.parametrize(("language", "seed"), [("python", 1), ("go", 2)])
def test_visits_come_once_to_each_key_in_the_order_of_a_reference(language: str, seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    life = Life(language, tmp_path / "checkpoint", source)
    with life.receiver:
        for number in range(STRETCHES):
            life.stretch(is_killed=number < STRETCHES - 1)
        life.check()
