"""What a run shows while it starts, runs and ends: on a terminal of a drawn width, in a pipe, as JSON."""

import io
import json
import sys
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.terminal import looked_at, terminal
from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.console.reporter import JsonReporter, TextReporter
from wallaroo_runtime.run.snapshot import Snapshot

SNAPSHOT = Snapshot("running", 1_234_567, 1_234_567, 1_234_567, 0, 7, 99.96, 0)
NUMBERS = "in 1,234,567  out 1,234,567  100/s  lag 0  dead letters 0"
FINDING = Diagnostic.of("R611", reason="no Java", fix="install it")
EVENTS = ["note", "warn", "doing", "shared", "progress", "changed", "ready"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(EVENTS), max_size=12))
def test_a_debugger_has_the_last_line_of_the_terminal(events: list[str]) -> None:
    expected: list[str] = []
    with terminal(200) as seen:
        reporter = TextReporter(is_shared=True)
        reporter.note("")
        for event in events:
            print("(Pdb) ", end="", file=sys.stderr, flush=True)  # what it writes stays, whatever comes after it
            if event in ("doing", "shared"):
                reporter.doing("starting", "starting Spark", is_shared=event == "shared")
            elif event == "warn":
                reporter.warn(FINDING)
            elif event == "progress":
                reporter.progress(SNAPSHOT)
                reporter.output("main", "what the worker has printed itself")
            else:
                reporter.note(event)
            first, *more = str(FINDING).splitlines() if event == "warn" else [event]
            first = "starting Spark" if event in ("doing", "shared") else "" if event == "progress" else first
            expected += [f"(Pdb) {first}", *more] if first else ["(Pdb) "]
            if event == "progress":
                print(file=sys.stderr, flush=True)  # the user's answer
        assert looked_at(seen) == ["", *expected, ""]


@settings(deadline=None)
@given(st.integers(20, 130), st.lists(st.sampled_from(EVENTS), max_size=12), st.booleans())
def test_a_message_never_continues_the_status_line(columns: int, events: list[str], closes: bool) -> None:
    expected: list[str] = []
    status = ""
    with terminal(columns) as seen:
        reporter = TextReporter()
        for event in events:
            if event == "note":
                reporter.note("a note")
                expected.append("a note")
            elif event == "warn":
                reporter.warn(FINDING)
                expected += str(FINDING).splitlines()
            elif event == "doing":
                reporter.doing("starting", status := "starting Spark, which takes long")
            elif event == "shared":
                reporter.doing("starting", "compiling Go in .", is_shared=True)
                expected.append("compiling Go in .")
                status = ""
            elif event == "progress":
                reporter.progress(SNAPSHOT)
                status = NUMBERS
            elif event == "changed":
                reporter.event("kept", "kept", [FINDING])
                expected += [*str(FINDING).splitlines(), "kept"]
                status = ""
            else:
                reporter.initialized([], None)
                expected.append("Application has successfully initialized.")
                status = ""
        if closes:
            reporter.close()
            status = ""
        assert looked_at(seen) == [*expected, status[: columns - 3]]
        reporter.close()


def test_what_waits_for_sinks_is_in_the_status_line() -> None:
    with terminal(120) as seen:
        TextReporter().progress(replace(SNAPSHOT, lag=200, waiting=48_200, dead_letters=3))
        numbers = "in 1,234,567  out 1,234,567  100/s  lag 200  waiting for sinks 48,200  dead letters 3"
        assert looked_at(seen) == [numbers]


def test_seconds_pass_on_a_terminal() -> None:
    with terminal(40) as seen:
        reporter = TextReporter()
        reporter.doing("starting", "starting Spark")
        deadline = time.monotonic() + 60
        while not (shown := looked_at(seen))[-1].endswith(" s") and time.monotonic() < deadline:
            time.sleep(0.1)
        assert shown == ["starting Spark  1 s"]
        reporter.progress(replace(SNAPSHOT, state="stopped"))
        assert looked_at(seen) == [f"stopped: {NUMBERS}", ""]


def test_a_line_each_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = TextReporter()
    reporter.doing("starting", "compiling Go in .", is_shared=True)
    reporter.doing("starting", "starting Spark")
    assert capsys.readouterr() == ("", "compiling Go in .\nstarting Spark\n")
    TextReporter(is_quiet=True).doing("starting", "starting Spark")
    assert capsys.readouterr() == ("", "")


@given(st.lists(st.sampled_from(["note", "doing", "stopping", "trying", "changed", "ready", "progress"]), max_size=12))
def test_all_that_a_run_says_as_json_has_a_state_and_a_time(events: list[str]) -> None:
    stderr, sys.stderr = sys.stderr, io.StringIO()
    try:
        reporter, expected, state = JsonReporter(), list[tuple[str, str]](), "starting"
        for event in events:
            if event == "note":
                reporter.note("a note")
                expected.append((state, "note"))
            elif event in ("doing", "stopping", "trying"):
                said = "starting" if event == "doing" else event
                reporter.doing(said, "something")
                expected.append((said, "doing"))
                state = state if event == "trying" else said
            elif event == "changed":
                reporter.event("changed", "it has")
                expected.append(("changed", "text"))
            elif event == "ready":
                reporter.initialized([], None)
                expected.append(("initialized", "sources"))
                state = "running"
            else:
                reporter.progress(SNAPSHOT)
                expected.append(("running", "lag"))
        lines = sys.stderr.getvalue().splitlines()
    finally:
        sys.stderr = stderr
    found = [json.loads(line) for line in lines]
    assert [(each["state"], name) for each, (_, name) in zip(found, expected, strict=True) if name in each] == expected
    assert all("time" in each for each in found)


def test_every_state_is_an_object_with_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = JsonReporter()
    reporter.doing("starting", "starting Spark")
    reporter.event("kept", "the one before", [FINDING])
    out, err = capsys.readouterr()
    starting, kept = (json.loads(line) for line in err.splitlines())
    assert out == ""
    assert starting.pop("time") <= kept.pop("time")
    assert starting == {"state": "starting", "doing": "starting Spark"}
    assert kept == {"state": "kept", "text": "the one before", "findings": [FINDING.to_json()]}


def test_the_summary_says_which_numbers_are_those_of_this_run(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = TextReporter()
    total = replace(SNAPSHOT, state="stopped", messages_in=1200, messages_out=900, lag=200, dead_letters=3)
    reporter.progress(replace(total, run={"messages_in": 1200, "messages_out": 900, "dead_letters": 3}))
    reporter.progress(replace(total, run={"messages_in": 1000, "messages_out": 800, "dead_letters": 1}))
    numbers = "stopped: in 1,200  out 900  100/s  lag 200  dead letters 3"
    assert capsys.readouterr().err.splitlines() == [
        numbers,
        f"{numbers} since the checkpoint began; in this run: in 1,000  out 800  dead letters 1",
    ]
