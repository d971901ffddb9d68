"""A changed program is tried while the one before runs: drawn edits, with real programs and workers, without Spark."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wallaroo
from support.line_program import line_program
from support.run import wait_until
from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.emit.program import load_setup
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.directory import MANIFEST
from wallaroo_runtime.checkpoint.lock import HeldDirectory
from wallaroo_runtime.checkpoint.manifest import MICROBATCH, REALTIME
from wallaroo_runtime.console.reporter import JsonReporter
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.application import Application, load_application
from wallaroo_runtime.run.check import check_continues
from wallaroo_runtime.run.options import AppOptions, CheckpointOptions, RunOptions
from wallaroo_runtime.run.reload import WatchedProgram
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

APP = """
import os
from pathlib import Path

with Path(__file__).with_name("emit").open("a") as loads:
    loads.write("x")
""" + line_program("Tried")
# What is added to the program, and the code of what is said; empty: it is run.
EDITS = {
    "right": ("", ""),
    "no setup": ("del application_setup\n", "T201"),
    "fails": ("import no_such_module\n", "T217"),
}


class Kept(JsonReporter):
    """Keeps what a run says of its program."""

    def __init__(self) -> None:
        super().__init__()
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
def test_a_program_is_run_only_if_it_can_be_loaded(tmp_path_factory: pytest.TempPathFactory, edits: list[str]) -> None:
    folder, reporter = tmp_path_factory.mktemp("reload"), Kept()
    app = folder / "app.py"
    app.write_text(APP)
    program = WatchedProgram(options_of(folder), reporter)
    for number, edit in enumerate(edits):
        more, code = EDITS[edit]
        before = len(reporter.states)
        app.write_text(f"{APP}{' ' * number}\n{more}")
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
def test_what_the_checkpoint_refuses_leaves_the_program_before_it_running(tmp_path: Path) -> None:
    reporter, app = Kept(), tmp_path / "app.py"
    app.write_text(APP)
    opened(tmp_path / "checkpoint", load_application(str(app), (), "", "").topology)
    program = WatchedProgram(options_of(tmp_path), reporter)
    app.write_text(APP.replace('"Tried"', '"Another one"'))
    wait_until(lambda: program.has_changed() or bool(reporter.states), lambda: "what is said", 60)
    assert (reporter.states, reporter.codes, program.loaded) == (["kept"], ["R603"], None)


def opened(path: Path, topology: Topology) -> None:
    """Open a checkpoint as a run does."""
    place = HeldDirectory.take(path)
    try:
        Checkpoint.open(place, topology, shuffle_partitions=2, buckets_per_partition=2)
    finally:
        place.release()


class One:
    total = 0


class Two:
    total = 0


def counting(name: str, state: str, cls: type, source: str, is_upper: bool) -> Topology:
    """Return an application of one state."""

    def application_setup(args: Sequence[str]) -> object:
        decoder, encoder = wallaroo.line_decoder(lambda data: data), wallaroo.line_encoder(lambda data: data)
        lines = wallaroo.source(source, wallaroo.TCPSourceConfig("127.0.0.1", 0, decoder))
        upper = wallaroo.computation("upper")(lambda data: data.upper())
        keyed = (lines.to(upper) if is_upper else lines).key_by(wallaroo.key_extractor(lambda data: "k"))
        count = wallaroo.state_computation(state, state=cls)(lambda data, state: data)
        return wallaroo.build_application(
            name, keyed.to(count).to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 9, encoder))
        )

    return load_document(load_setup(application_setup, ()).document)


PROGRAMS = st.builds(
    counting,
    st.sampled_from(["Tried", "Tried", "Tried", "Other"]),
    st.sampled_from(["count", "sum"]),
    st.sampled_from([One, Two]),
    st.sampled_from(["lines", "words"]),
    st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(before=PROGRAMS, after=PROGRAMS, is_same_mode=st.booleans())
def test_a_program_is_refused_while_the_one_before_runs_as_its_start_would(
    tmp_path_factory: pytest.TempPathFactory, before: Topology, after: Topology, is_same_mode: bool
) -> None:
    folder = tmp_path_factory.mktemp("reload")
    mode = MICROBATCH if is_same_mode else REALTIME
    options = replace(options_of(folder), mode=mode)
    opened(folder / "checkpoint", before)
    written = (folder / "checkpoint" / MANIFEST).read_bytes()

    def codes(check: Callable[[], object]) -> list[str]:
        try:
            check()
        except RunError as error:
            return [finding.code for finding in error.diagnostics]
        return []

    def start() -> None:
        place = HeldDirectory.take(folder / "checkpoint")
        try:
            Checkpoint.open(place, after, shuffle_partitions=2, buckets_per_partition=2, mode=mode)
        finally:
            place.release()

    found = codes(lambda: check_continues(options, Application(after, folder / "app.py")))
    assert (folder / "checkpoint" / MANIFEST).read_bytes() == written
    assert found == codes(start)


@pytest.mark.slow
def test_a_change_that_hangs_waits_for_the_next_one(tmp_path: Path) -> None:
    reporter, app, pids = Kept(), tmp_path / "app.py", tmp_path / "pids"
    app.write_text(APP)
    program = WatchedProgram(options_of(tmp_path), reporter)
    app.write_text(f"{APP}import time\nPath({str(pids)!r}).write_text(str(os.getpid()))\ntime.sleep(1000)\n")

    def is_hanging() -> bool:
        assert not program.has_changed()
        return pids.exists() and pids.read_text() != ""

    wait_until(is_hanging, lambda: "the program to hang", 60)
    app.write_text(APP + "# right\n")
    wait_until(program.has_changed, lambda: "the right program", 60)
    assert reporter.states == ["changed"]
    os.kill(int(pids.read_text()), signal.SIGKILL)  # it would end after DEADLINE_S, or with the run
