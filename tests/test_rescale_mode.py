"""One checkpoint in both modes: drawn stretches of messages, some with a kill, give what one run gives."""

import json
import os
import random
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.realtime import APPS, WORDS, kill_driver, lines, wrong
from support.run import Receiver, Run, finish, framed, wallaroo
from support.state import STATE, by_letter, totals
from wallaroo_runtime.checkpoint.manifest import read_manifest

pytestmark = [pytest.mark.jvm, pytest.mark.long]
# A cluster may have another default file system; a checkpoint that is a path is on this machine all the same.
ELSEWHERE = ("--conf", "spark.hadoop.fs.defaultFS=hdfs://127.0.0.1:1")
MODES = ("microbatch", "realtime")
BAD = b"\xff"  # Go takes it for a text


class Life:
    """A checkpoint over several runs, and all that was sent to it.

    Args:
        language: Of the word count.
        path: The checkpoint.
        source: Draws.
        fault: Where the first change of the mode is killed.
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
        return Run(APPS[self.language], self.receiver, self.path, "--mode", mode, *options, *ELSEWHERE)

    def stretch(self, mode: str, *, is_killed: bool) -> None:
        """Let a run take messages; one that is killed may leave some of them in the journal."""
        with self.run(mode) as run:
            connection = run.ready().connect()
            connection.sendall(self._drawn())
            if is_killed:
                time.sleep(self._source.uniform(0, 3))
                kill_driver(run)
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

    def _change_mode(self, mode: str) -> subprocess.CompletedProcess[str]:
        environment = {"WALLAROO_FAULT": f"rescale.{self._fault}:1"} if self._fault else {}
        return wallaroo("state", "rescale", self.path, "--mode", mode, "--json", env=os.environ | environment)

    def change_mode(self, before: str, mode: str) -> dict[str, Any]:
        """Change the mode, after another run of before where that is asked for."""
        done = self._change_mode(mode)
        if done.returncode > 0:
            assert f"--mode {before} --stop-when-idle 5" in done.stdout + done.stderr
            with self.run(before, "--stop-when-idle", 2) as run:
                assert run.end() == 0, run.said()
            done = self._change_mode(mode)
        if done.returncode < 0:
            now = before if self._fault == "before_switch" else mode
            assert read_manifest(self.path).mode == now
            self._fault = ""
            done = self._change_mode(mode)
        assert done.returncode == 0, done.stdout + done.stderr
        assert len([*self.path.glob("spark*")]) == 1
        told: dict[str, Any] = json.loads(done.stdout)
        return told

    def rescale(self) -> None:
        """Give it other buckets; a process of it is killed at a drawn place, and what runs before or after goes on."""
        before, fault = read_manifest(self.path), self._source.choice(("before_switch", "after_switch"))
        count = 1 + (before.buckets_per_partition + self._source.randint(0, 20)) % 23
        for environment in ({"WALLAROO_FAULT": f"rescale.{fault}:1"}, {}):
            done = wallaroo("state", "rescale", self.path, "--buckets", count, "--json", env=os.environ | environment)
            assert done.returncode == (-9 if environment else 0), done.stdout + done.stderr
            is_done = not environment or fault == "after_switch"
            assert read_manifest(self.path).buckets_per_partition == (
                count if is_done else before.buckets_per_partition
            )
        assert len([*self.path.glob("spark*")]) == 1

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
            life.change_mode(mode, other)
            life.rescale()
            mode = other
        life.stretch(mode, is_killed=False)
        life.check()
        life.check_states()


WINDOWED = """
import wallaroo

def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    numbers = wallaroo.source("Numbers", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    sums = numbers.key_by(remainder).to(wallaroo.range_windows(wallaroo.seconds(8)).over(Sum))
    lines = sums.collect().to(total).to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return wallaroo.build_application("Windowed", lines)

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return int(bs)

@wallaroo.key_extractor
def remainder(number):
    return str(number % 13)

class Sum(wallaroo.Aggregation):
    def initial_accumulator(self):
        return [0]

    def update(self, number, accumulator):
        accumulator[0] += number

    def combine(self, accumulator1, accumulator2):
        return [accumulator1[0] + accumulator2[0]]

    def output(self, key, accumulator):
        return accumulator[0] or None  # a window without messages

class Total:
    def __init__(self):
        self.value = 0

@wallaroo.state_computation("total", state=Total)
def total(number, total):
    total.value += number
    return total.value

@wallaroo.encoder
def encode(number):
    return f"{number}\\n".encode()
"""


def send(run: Run, numbers: list[int], count: int) -> None:
    """Send numbers, and wait until the checkpoint has processed so many messages."""
    run.ready().send(framed(str(number).encode() for number in numbers))
    run.wait_for("messages_processed", count)


def test_windows_that_are_open_and_a_single_state_go_on_in_the_other_mode(tmp_path: Path) -> None:
    """Whenever windows close, the last total is the sum of all numbers."""
    app, path, source = tmp_path / "windowed.py", tmp_path / "checkpoint", random.Random(2)
    app.write_text(WINDOWED, encoding="utf-8")
    numbers = [[source.randint(1, 1000) for _ in range(200)] for _ in range(3)]
    total = str(sum(map(sum, numbers)))
    with Receiver() as receiver:
        for mode, later, part in zip(MODES, MODES[::-1], numbers, strict=False):
            with Run(app, receiver, path, "--mode", mode) as run:
                send(run, part, 200 * (1 + MODES.index(mode)))
                assert run.stop() == 0, run.said()
            done = wallaroo("state", "rescale", path, "--mode", later)
            assert done.returncode == 0, done.stderr
        with Run(app, receiver, path) as run:
            send(run, numbers[-1], 600)
            run.wait_while_alive(lambda: total in receiver.lines(), lambda: total)
            assert run.stop() == 0, run.said()
        found = [int(line) for line in receiver.lines()]
        assert found == sorted(set(found))
        assert found[-1] == int(total)
