"""Dead letters of steps that are replayed while an application runs, across kill and restart, with Spark."""

import json
import os
import signal
from pathlib import Path

import pytest

from support.run import Receiver, Run, framed, wallaroo

pytestmark = pytest.mark.jvm
PROGRAM = """
from pathlib import Path

import wallaroo

def application_setup(args):
    ins, outs = wallaroo.tcp_parse_input_addrs(args)[0], wallaroo.tcp_parse_output_addrs(args)[0]
    return wallaroo.build_application(
        "Again",
        wallaroo.source("lines", wallaroo.TCPSourceConfig(*ins, decode)).to(shout).key_by(key).to(count)
        .to_sink(wallaroo.TCPSinkConfig(*outs, encode)))

def check(step, line):
    if step in line.lower() and not Path(__file__).with_name("corrected").exists():
        raise ValueError(step)

class Count:
    value = 0

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data):
    return data.decode()

@wallaroo.computation("shout")
def shout(line):
    check("shout", line)
    return line.upper()

@wallaroo.key_extractor
def key(line):
    check("key", line)
    return line[0]

@wallaroo.state_computation("count", state=Count)
def count(line, state):
    state.value += 1
    check("count", line)
    return f"{line} {state.value}"

@wallaroo.encoder
def encode(line):
    check("encode", line)
    return line + "\\n"
"""
LINES = ["a shout", "a", "a count", "b key", "b encode", "b"]
EXPECTED = ["A", "A COUNT", "A SHOUT", "B", "B ENCODE", "B KEY"]


def replay(checkpoint: Path) -> dict[str, int]:
    done = wallaroo("dead-letters", "replay", checkpoint, "--all", "--json")
    assert done.returncode == 0, done.stderr
    found = dict(json.loads(done.stdout))
    return {name: found[name] for name in ("replayed", "before", "refused")}


def values(receiver: Receiver) -> list[str]:
    """Return the lines without the counts, which depend on the order in which letters run again."""
    return sorted(line.rpartition(" ")[0] for line in receiver.lines())


@pytest.mark.long
def test_messages_of_steps_and_sinks_run_again_once(tmp_path: Path) -> None:
    program, checkpoint = tmp_path / "again.py", tmp_path / "checkpoint"
    program.write_text(PROGRAM)
    with Receiver() as receiver:
        with Run(program, receiver, checkpoint).ready() as run:
            run.send(framed(line.encode() for line in LINES))
            run.wait_for("dead_letters", 4)
            assert replay(checkpoint) == {"replayed": 4, "before": 0, "refused": 0}
            run.wait_for("dead_letters", 8)  # nobody has corrected the program
            assert values(receiver) == ["A", "B"]
            (tmp_path / "corrected").touch()
            first = wallaroo("dead-letters", "ls", checkpoint, "--json").stdout.splitlines()
            assert [json.loads(line)["replayed"] for line in first] == [True] * 4 + [False] * 4
            assert replay(checkpoint) == {"replayed": 4, "before": 4, "refused": 0}
            assert replay(checkpoint) == {"replayed": 0, "before": 8, "refused": 0}
            receiver.wait_for_lines(6, run)
            assert run.stop() == 0, run.said()
        assert values(receiver) == EXPECTED
        # What failed in a state has not counted, and what runs again counts once, in either order of the two.
        lines = {line for line in receiver.lines() if line[0] == "A"} - {"A 1"}
        assert lines in ({"A COUNT 2", "A SHOUT 3"}, {"A COUNT 3", "A SHOUT 2"})
        assert {"B ENCODE 1", "B 2", "B KEY 3"} < set(receiver.lines())
        assert run.reports[-1]["messages_in"] == len(LINES) + 8


@pytest.mark.long
@pytest.mark.parametrize("point", ["driver.before_publish", "driver.before_commit"])
def test_what_is_replayed_survives_a_kill(tmp_path: Path, point: str) -> None:
    program, checkpoint = tmp_path / "again.py", tmp_path / "checkpoint"
    program.write_text(PROGRAM)
    with Receiver() as receiver:
        with Run(program, receiver, checkpoint).ready() as run:
            run.send(framed(line.encode() for line in LINES))
            run.wait_for("dead_letters", 4)
            os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()
        (tmp_path / "corrected").touch()
        fault = {"WALLAROO_FAULT": f"{point}:1", "WALLAROO_FAULT_DIR": str(tmp_path)}
        with Run(program, receiver, checkpoint, **fault).ready() as run:
            assert replay(checkpoint)["replayed"] == 4
            assert run.process.wait(120) != 0
        # Its arguments make it another program, which gives the same here.
        with Run(program, receiver, checkpoint, "--stop-when-idle", "1", "--strict", "1") as run:
            receiver.wait_for_lines(6, run)
            assert run.end() == 0, run.said()
            assert "R754" in run.said() or point == "driver.before_publish", run.said()
        assert values(receiver) == EXPECTED
