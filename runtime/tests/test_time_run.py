"""Timers and a ttl in a whole run: across kill and restart, and a rescale to the other mode, with Spark."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from support.run import MODES, Receiver, Run, framed, wallaroo
from wallaroo_runtime.monitor.endpoint import status_of
from wallaroo_runtime.monitor.metrics import render

pytestmark = [pytest.mark.jvm, pytest.mark.long]
KEYS, TIMES = [f"k{number}" for number in range(20)], 4
PROGRAM = """
from datetime import timedelta

import wallaroo

def application_setup(args):
    ins, outs = wallaroo.tcp_parse_input_addrs(args)[0], wallaroo.tcp_parse_output_addrs(args)[0]
    return wallaroo.build_application(
        "Times",
        wallaroo.source("lines", wallaroo.TCPSourceConfig(*ins, decode)).key_by(key).to(remind)
        .to_sink(wallaroo.TCPSinkConfig(*outs, encode)))

class Reminded:
    value = 0

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(data):
    return data.decode()

@wallaroo.key_extractor
def key(line):
    return line.partition(" ")[0]

@wallaroo.state_computation("remind", state=Reminded, ttl=timedelta(hours=1))
def remind(line, state, timers):
    timers.set("again", after=timedelta(seconds=2))
    return None

@remind.timer("again")
def again(key, state, time, timers):
    state.value += 1
    if state.value < 4:
        timers.set("again", after=timedelta(seconds=2))
    return f"{key} {state.value}"

@wallaroo.encoder
def encode(line):
    return line + "\\n"
"""


def counted(checkpoint: Path, name: str) -> int:
    """Return a number of all steps, as `wallaroo status` has it."""
    done = wallaroo("status", checkpoint, "--json")
    return sum(part[name] for part in json.loads(done.stdout)["parts"]) if done.returncode == 0 else 0


@pytest.mark.parametrize("mode", MODES)
def test_timers_run_once_although_the_run_is_killed(mode: str, tmp_path: Path) -> None:
    program, checkpoint = tmp_path / "times.py", tmp_path / "checkpoint"
    program.write_text(PROGRAM)
    expected = sorted(f"{key} {number}" for key in KEYS for number in range(1, TIMES + 1))
    with Receiver() as receiver:
        with Run(program, receiver, checkpoint, *MODES[mode]).ready() as run:
            run.send(framed(key.encode() for key in KEYS))
            receiver.wait_for_lines(len(KEYS), run)
            os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()
        with Run(program, receiver, checkpoint, *MODES[mode]).ready() as run:
            receiver.wait_for_lines(2 * len(KEYS), run)
            assert run.stop() == 0
        (other,) = MODES.keys() - {mode}
        done = wallaroo("state", "rescale", checkpoint, "--mode", other)
        assert done.returncode == 0, done.stderr
        with Run(program, receiver, checkpoint, *MODES[other]).ready() as run:
            receiver.wait_for_lines(len(expected), run)
            assert run.stop() == 0
        assert sorted(receiver.lines()) == expected


@pytest.mark.parametrize("mode", MODES)
def test_states_end_on_the_clock_although_nobody_sends(mode: str, tmp_path: Path) -> None:
    program, checkpoint = tmp_path / "times.py", tmp_path / "checkpoint"
    program.write_text(PROGRAM.replace("hours=1", "seconds=3").replace("return None", 'return line + " came"'))
    with Receiver() as receiver, Run(program, receiver, checkpoint, *MODES[mode]).ready() as run:
        run.send(framed(key.encode() for key in KEYS))
        receiver.wait_for_lines(2 * len(KEYS), run)  # each came, and its timer ran once before its state ended
        run.wait_while_alive(lambda: counted(checkpoint, "expired") == len(KEYS), lambda: "states that end")
        assert counted(checkpoint, "timers_fired") == len(KEYS)
        status = status_of(checkpoint)
        assert {each["name"]: each["expired"] for each in status["parts"] if each["expired"]} == {"remind": len(KEYS)}
        assert sum(state["keys"] for state in status["states"]) == 0, "they are freed"
        told = re.findall(rb"^wallaroo_step_expired_total\{.*\} (.*)$", render(status, {}, "")[0], re.MULTILINE)
        assert sum(map(float, told)) == len(KEYS)
        run.send(framed([b"k0"]))
        receiver.wait_for_lines(2 * len(KEYS) + 2, run)
        assert run.stop() == 0
        assert sorted(receiver.lines()) == sorted(
            [f"{key} came" for key in [*KEYS, "k0"]] + [f"{key} 1" for key in [*KEYS, "k0"]]
        )
