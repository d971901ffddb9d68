"""A changed program is tried while the one before runs: drawn edits, with real programs and workers, without Spark."""

import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.run import wait_until
from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.cli.reporter import JsonReporter
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.run.options import AppOptions, CheckpointOptions, RunOptions, SparkOptions
from wallaroo_runtime.run.reload import Program
from wallaroo_runtime.run.trial import try_workers

APP = """
import os
import socket
from pathlib import Path

import wallaroo

IS_WORKER = os.environ["WALLAROO_MODE"] == "worker"
with Path(__file__).with_name("worker" if IS_WORKER else "emit").open("a") as loads:
    loads.write("x")

def application_setup(args):
    return wallaroo.build_application(
        "Tried", wallaroo.source("lines", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 9, encode)))

@wallaroo.line_decoder
def decode(data):
    return data

@wallaroo.line_encoder
def encode(data):
    return data
"""
# What is added to the program, and the code of what is said; empty: it is run.
EDITS = {
    "right": ("", ""),
    "no setup": ("del application_setup\n", "T201"),
    "not in the worker": ("if IS_WORKER:\n    import no_such_module\n", "T227"),
    "ends in the worker": ("if IS_WORKER:\n    os._exit(3)\n", "W401"),
    "a port that is held": ("if IS_WORKER:\n    socket.create_server(('127.0.0.1', PORT))\n", ""),
}


class Kept(JsonReporter):
    """Keeps what a run says of its program."""

    def __init__(self) -> None:
        self.states: list[str] = []
        self.codes: list[str] = []

    def event(self, state: str, text: str, findings: Sequence[Diagnostic] = ()) -> None:
        """Keep it."""
        self.states.append(state)
        self.codes += [finding.code for finding in findings]


def options_of(folder: Path) -> RunOptions:
    return RunOptions(AppOptions(str(folder / "app.py")), CheckpointOptions(path=folder / "checkpoint"))


@pytest.mark.slow
@settings(max_examples=2, deadline=None)
@given(st.permutations(sorted(EDITS)))
def test_a_program_is_run_only_if_its_workers_start(tmp_path_factory: pytest.TempPathFactory, edits: list[str]) -> None:
    folder, reporter = tmp_path_factory.mktemp("reload"), Kept()
    app = folder / "app.py"
    app.write_text(APP)
    program = Program(options_of(folder), reporter)
    with socket.create_server(("127.0.0.1", 0)) as holder:
        for number, edit in enumerate(edits):
            more, code = EDITS[edit]
            before = len(reporter.states)
            app.write_text(f"{APP}PORT = {holder.getsockname()[1]}{' ' * number}\n{more}")
            while len(reporter.states) == before:
                program.has_changed()
                time.sleep(0.02)
            assert reporter.states[-1] == ("kept" if code else "changed"), edit
            assert reporter.codes == [code] * bool(code), edit
            reporter.codes.clear()
            assert (program.loaded is None) == bool(code)
            program.loaded = None
    assert len((folder / "emit").read_text()) == len(edits), "each change is loaded once"


@pytest.mark.slow
@pytest.mark.parametrize("where", ["IS_WORKER", "not IS_WORKER"])
def test_a_change_that_hangs_waits_for_the_next_one_and_leaves_nothing(tmp_path: Path, where: str) -> None:
    reporter, app, pids = Kept(), tmp_path / "app.py", tmp_path / "pids"
    app.write_text(APP)
    program = Program(options_of(tmp_path), reporter)
    hangs = f"import time\nif {where}:\n    Path({str(pids)!r}).write_text(str(os.getpid()))\n    time.sleep(1000)\n"
    for closes in (False, True):
        app.write_text(f"{APP}{hangs}# {closes}\n")

        def is_hanging() -> bool:
            assert not program.has_changed()
            return pids.exists() and pids.read_text() != ""

        wait_until(is_hanging, lambda: "the program to hang", 60)
        if closes:
            program.close()
        else:
            app.write_text(APP + "# right\n")
            wait_until(program.has_changed, lambda: "the right program", 60)
            assert reporter.states == ["changed"]
        assert not Path("/proc", pids.read_text()).exists()
        pids.unlink()


@pytest.mark.slow
def test_the_worker_is_tried_with_the_interpreter_of_the_run_and_ends(tmp_path: Path) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text(f'#!/bin/sh\necho $$ >> {tmp_path}/pids\nexec {sys.executable} "$@"\n')
    interpreter.chmod(0o700)
    (tmp_path / "app.py").write_text(APP)
    options = replace(options_of(tmp_path), spark=SparkOptions(worker_python=str(interpreter)))
    try_workers(options, load_application(options.app.name, (), "", ""))
    (pid,) = (tmp_path / "pids").read_text().split()
    assert not Path("/proc", pid).exists()
