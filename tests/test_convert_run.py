"""One checkpoint in both modes: drawn stretches of messages, some with a kill, give what one run gives."""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.case import Case
from support.run import Receiver, Run, finish, framed, wallaroo
from support.state import STATE, by_letter, totals
from test_realtime_run import APPS, WORDS, lines, process_of_java, wrong
from wallaroo_runtime.checkpoint.manifest import mode_of, read_manifest

pytestmark = [pytest.mark.jvm, pytest.mark.long]
MODES = ("microbatch", "realtime")
BAD = b"\xff"  # Go takes it for a text


class Life:
    """A checkpoint over several runs, and all that was sent to it.

    Args:
        language: Of the word count.
        path: The checkpoint.
        source: Draws.
        fault: Where the first conversion is killed.
    """

    def __init__(self, language: str, path: Path, source: random.Random, fault: str) -> None:
        self.language, self.path, self._source, self._fault = language, path, source, fault
        self.receiver, self.sent, self.bad = Receiver(), Counter[str](), 0

    def _drawn(self) -> bytes:
        words = self._source.choices(WORDS, k=self._source.randint(1, 400))
        self.sent.update(words)
        texts = [word.encode() for word in words]
        if self.language == "python":
            self.bad += (bad := self._source.randint(0, 3))
            texts += [BAD] * bad
        self._source.shuffle(texts)
        return framed(texts)

    def run(self, mode: str, *options: object) -> Run:
        """Start a run."""
        return Run(APPS[self.language], self.receiver, self.path, "--mode", mode, *options)

    def stretch(self, mode: str, *, is_killed: bool) -> None:
        """Let a run take messages; one that is killed may leave some of them in the journal."""
        with self.run(mode) as run:
            connection = run.ready().connect()
            connection.sendall(self._drawn())
            if is_killed:
                time.sleep(self._source.uniform(0, 3))
                java = process_of_java(run)
                os.kill(run.process.pid, signal.SIGKILL)
                os.kill(java, signal.SIGKILL)
                connection.sendall(self._drawn())  # the gateway takes them
            finish(connection)
            connection.close()
            if not is_killed:
                self.wait(run)
                assert run.stop() == 0, run.said()

    def wait(self, run: Run) -> None:
        """Wait until all that was sent is out."""
        count = self.sent.total()
        run.wait_while_alive(lambda: len(lines(self.receiver)) >= count, lambda: f"{count} lines")
        run.wait_for("messages_processed", count + self.bad)

    def _convert(self, mode: str) -> subprocess.CompletedProcess[str]:
        environment = {"WALLAROO_FAULT": f"convert.{self._fault}:1"} if self._fault else {}
        return wallaroo("state", "convert", self.path, "--to", mode, "--json", env=os.environ | environment)

    def convert(self, before: str, mode: str) -> dict[str, Any]:
        """Convert, after another run of before where that is asked for."""
        done = self._convert(mode)
        if done.returncode > 0:
            assert f"--mode {before} --stop-when-idle 5" in done.stdout + done.stderr
            with self.run(before, "--stop-when-idle", 2) as run:
                assert run.end() == 0, run.said()
            done = self._convert(mode)
        if done.returncode < 0:
            now = before if self._fault == "before_switch" else mode
            assert mode_of(read_manifest(self.path)) == now
            self._fault = ""
            done = self._convert(mode)
        assert done.returncode == 0, done.stdout + done.stderr
        assert len([*self.path.glob("spark*")]) == 1
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def check(self) -> None:
        """Compare lines and dead letters with what was sent: each total of each word once, in order."""
        assert wrong(lines(self.receiver), self.sent) == []
        listed = wallaroo("dead-letters", "ls", self.path, "--json", "--limit", 1_000_000).stdout.splitlines()
        letters = [json.loads(line) for line in listed]
        for name in ("position", "id"):
            assert len({letter[name] for letter in letters}) == len(letters) == self.bad

    def check_states(self) -> None:
        """Compare the states with what was sent."""
        done = wallaroo("state", "dump", self.path, STATE, "--json")
        assert done.returncode == 0, done.stderr
        found = [json.loads(line) for line in done.stdout.splitlines()]
        assert {row["key"]: totals(row["value"]) for row in found} == by_letter(self.sent)


@pytest.mark.parametrize(("language", "seed", "fault"), [("go", 3, "before_switch"), ("python", 5, "after_switch")])
def test_stretches_in_both_modes_give_what_one_run_gives(language: str, seed: int, fault: str, tmp_path: Path) -> None:
    source = random.Random(seed)
    life = Life(language, tmp_path / "checkpoint", source, fault)
    mode = source.choice(MODES)
    with life.receiver:
        for _ in range(2):
            life.stretch(mode, is_killed=source.random() < 0.5)
            other = MODES[1 - MODES.index(mode)]
            life.convert(mode, other)
            mode = other
        life.stretch(mode, is_killed=False)
        life.check()
        life.check_states()


@pytest.mark.parametrize(
    ("name", "language", "modes"), [("mixed_language", "python", MODES), ("alerts_windowed", "go", MODES[::-1])]
)
def test_a_case_cut_in_two_gives_the_expected_output(
    name: str, language: str, modes: tuple[str, str], tmp_path: Path
) -> None:
    """Levels in two languages; windows that are open meanwhile, and their ticks."""
    case, path = Case(name), tmp_path / "checkpoint"
    (messages,), expected = case.inputs(), case.expected(language)
    half = len(messages) // 2
    with Receiver() as receiver:
        for mode, part in zip(modes, (messages[:half], messages[half:]), strict=True):
            with Run(case.app(language), receiver, path, *case.setting("options", []), "--mode", mode) as run:
                run.ready().send(framed(part))
                run.wait_for("messages_processed", len(part) if mode == modes[0] else len(messages))
                if mode == modes[1]:
                    run.wait_while_alive(
                        lambda: len(case.lines(receiver.data())) >= len(expected), lambda: f"{len(expected)} lines"
                    )
                assert run.stop() == 0, run.said()
            if mode == modes[0]:
                done = wallaroo("state", "convert", path, "--to", modes[1])
                assert done.returncode == 0, done.stderr
        assert case.arranged(case.lines(receiver.data())) == case.arranged(expected)
