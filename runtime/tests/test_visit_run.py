"""Visits of a whole run: asked for with the command, across kill and restart, rescale, several at once, with Spark."""

import json
import os
import signal
from pathlib import Path

import pytest

from support.host import java_of
from support.run import MODES, Receiver, Run, framed, wallaroo

pytestmark = pytest.mark.jvm
PROGRAM = """
import wallaroo

def application_setup(args):
    ins, outs = wallaroo.tcp_parse_input_addrs(args)[0], wallaroo.tcp_parse_output_addrs(args)[0]
    return wallaroo.build_application(
        "Visits",
        wallaroo.source("lines", wallaroo.TCPSourceConfig(*ins, decode)).key_by(key).to(count)
        .to_sink(wallaroo.TCPSinkConfig(*outs, encode)))

class Count:
    value = 0

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data):
    return data.decode()

@wallaroo.key_extractor
def key(line):
    return line

@wallaroo.state_computation("count", state=Count)
def count(line, state):
    state.value += 1
    return None

@count.visitor("add")
def add(metadata, key, state):
    state.value += int(metadata)
    return f"{key} {state.value}"

@count.visitor("forget")
def forget(metadata, key, state):
    return wallaroo.Deleted() if key == metadata.decode() else None

@wallaroo.encoder
def encode(line):
    return line + "\\n"
"""


def visit(checkpoint: Path, *arguments: str) -> dict[str, int]:
    done = wallaroo("visit", checkpoint, *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


class Expected:
    """What the keys' states must be, and what visits must have shown of them."""

    def __init__(self, count: int) -> None:
        self.values = {f"k{number}": 1 for number in range(count)}
        self.shown: list[str] = []

    def add(self, number: int) -> None:
        for key in self.values:
            self.values[key] += number
        self.shown += [f"{key} {value}" for key, value in self.values.items()]


def start(program: Path, receiver: Receiver, checkpoint: Path, *options: str) -> Run:
    program.write_text(PROGRAM)
    return Run(program, receiver, checkpoint, *options)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_visits_come_once_to_each_key_although_the_run_is_killed(mode: str, tmp_path: Path) -> None:
    program, checkpoint, expected = tmp_path / "visits.py", tmp_path / "checkpoint", Expected(20)
    with Receiver() as receiver:
        with start(program, receiver, checkpoint, "--mode", mode).ready() as run:
            run.send(framed(key.encode() for key in expected.values))
            unknown = wallaroo("visit", checkpoint, "ad")
            assert unknown.returncode == 1 and "R720" in unknown.stderr and '"add"' in unknown.stderr
            done = visit(checkpoint, "add", "--metadata", "5", "--wait")
            assert (done["keys"], done["failed"]) == (20, 0)
            expected.add(5)
            assert visit(checkpoint, "forget", "--metadata", "k7", "--wait")["keys"] == 20
            del expected.values["k7"]
            for number in (1, 2, 3):
                visit(checkpoint, "add", "--metadata", str(number))
                expected.add(number)
            os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()
        with start(program, receiver, checkpoint, "--mode", mode, "--stop-when-idle", "1") as run:
            count = len(expected.shown)
            run.wait_while_alive(lambda: len(receiver.lines()) >= count, lambda: f"{len(receiver.lines())} lines")
            assert run.end() == 0
        assert sorted(receiver.lines()) == sorted(expected.shown)
        assert run.reports[-1]["messages_in"] == 20  # visits are no messages
        gone = wallaroo("visit", checkpoint, "add")
        assert gone.returncode == 1 and "R733" in gone.stderr


@pytest.mark.long
def test_visits_come_once_to_each_key_after_a_rescale(tmp_path: Path) -> None:
    program, checkpoint, expected = tmp_path / "visits.py", tmp_path / "checkpoint", Expected(20)
    with Receiver() as receiver:
        with start(program, receiver, checkpoint).ready() as run:
            run.send(framed(key.encode() for key in expected.values))
            run.wait_for("messages_processed", 20)
            java = java_of(run.process.pid)
            os.kill(java, signal.SIGSTOP)  # it plans no micro-batch with the visit: a rescale would refuse that
            visit(checkpoint, "add", "--metadata", "5")
            os.kill(java, signal.SIGKILL)
            expected.add(5)
            os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()
        rescaled = wallaroo("state", "rescale", checkpoint, "--partitions", "3", seconds=400)
        assert rescaled.returncode == 0, rescaled.stderr
        with start(program, receiver, checkpoint).ready() as run:
            assert visit(checkpoint, "add", "--metadata", "1", "--wait")["keys"] == 20
            expected.add(1)
            receiver.wait_for_lines(len(expected.shown), run)
            assert run.stop() == 0
        assert sorted(receiver.lines()) == sorted(expected.shown)
