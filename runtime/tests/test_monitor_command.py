"""`wallaroo status`, `ps`, `stop` and `logs`, over checkpoints of this process and of others."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.counted import counted
from support.manifest import put_manifest
from support.monitored import EGRESS, WORD_COUNT, monitored, stopped
from wallaroo_runtime.checkpoint.registry import _file, registered
from wallaroo_runtime.cli.logs import Log
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.cli.status import NAME, labels, lines
from wallaroo_runtime.durable.record import write_record
from wallaroo_runtime.monitor.board import Board, Sample
from wallaroo_runtime.monitor.endpoint import driver_of
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.run import offline_state
from wallaroo_runtime.service.driver import DRIVER_FILE, announce, read_note
from wallaroo_runtime.spark.batch_report import BatchReport
from wallaroo_runtime.submit.submit import DriverKeeper
from wallaroo_runtime.system.process import process_start_time
from wallaroo_runtime.topology.load import load

__all__ = ["stopped"]  # the fixture


def out(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(each) for each in arguments]) == 0
    return capsys.readouterr().out


def objects(text: str) -> list[Any]:
    found = [json.loads(line) for line in text.splitlines()]
    assert all("time" in each for each in found)
    return found


class Read(Exception):
    """The states would be read now."""


def test_state_names_the_monitor_of_a_run(
    stopped: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_spark(*_: object, **__: object) -> None:
        raise Read

    monkeypatch.setattr(offline_state, "open_states", no_spark)
    monkeypatch.setattr(offline_state, "check_state", lambda *_, **__: None)
    begun = "starting Spark, which reads the states"
    for action, path in (["ls"], ""), (["get", "word totals", "a/b"], "/word%20totals/a%2Fb"), (["dump", "x"], "/x"):
        line = ["state", action[0], str(stopped), *action[1:]]
        assert main(line) == 1
        assert capsys.readouterr().err.splitlines()[0] == begun
        with monitored(stopped) as server:
            assert main(line) == 1
        address, token = server.url.split("/?")
        said = f"{begun}; its run answers sooner: {address}/api/v1/state{path}?{token}"
        assert capsys.readouterr().err.splitlines()[0] == said
        (stopped / "driver.json").unlink()


def test_status_of_a_run_is_what_its_monitor_says(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with monitored(stopped) as server:
        (found,) = objects(out(capsys, "status", stopped, "--json"))
        text = out(capsys, "status", stopped)
    assert (found["state"], found["pid"], found["monitor"]) == ("running", os.getpid(), server.url)
    assert found["run"]["messages_in"] == 3
    assert f"monitor    {server.url}\nin this run: in 3  out 0" in text
    assert "  sink Split and Count " in text


def test_status_says_what_was_before_this_run(tmp_path: Path) -> None:
    topology = load(WORD_COUNT.read_bytes())
    board = Board(topology, compile_topology(topology, shuffle_partitions=2), tmp_path)
    run = {"messages_in": 3, "messages_out": 2, "dead_letters": 0}
    numbers = {**run, "messages_processed": 0, "lag": 2}
    board.update("running", Sample({**numbers, "run": run}))
    same = [*lines(board.read())]
    board.update("running", Sample({**numbers, "messages_in": 1005, "run": run}))
    found = [*lines(board.read())]
    assert found[3] == "since the checkpoint began: in 1,005  out 2  dead letters 0"
    assert [*found[:3], *found[4:]] == same
    assert found[4] == "now: lag 2, 0 s  waiting for sinks 0"


@given(st.dictionaries(st.sampled_from(["driver", "spark", "gateway", "egress"]), st.integers(0, 9)), st.integers(0, 9))
def test_status_names_the_processes_of_a_run(processes: dict[str, int], worker: int) -> None:
    topology = load(WORD_COUNT.read_bytes())
    board = Board(topology, compile_topology(topology, shuffle_partitions=2), Path("checkpoint"))
    listed = [{"name": name, "pid": pid} for name, pid in processes.items()]
    document = {**board.read(), "processes": listed, "workers": [{"name": "main", "pid": worker}]}
    alive = [f"{name} {pid}" for name, pid in [*processes.items(), ("worker main", worker)] if pid]
    found = [line for line in lines(document) if line.startswith("processes: ")]
    assert found == ([f"processes: {', '.join(alive)}"] if alive else [])


def test_large_numbers_fit_eighty_columns(tmp_path: Path) -> None:
    topology = load(WORD_COUNT.read_bytes())
    board = Board(topology, compile_topology(topology, shuffle_partitions=2), tmp_path)
    count = counted(999_999_999, 999_999_999, 999_999_999, 999_999_999)
    steps = {part["path"]: count for part in board.read()["parts"]}
    board.begin({})
    board.tell_batch(BatchReport(0, 0, 600_000, steps, Counter({0: 9})))
    board.look({})
    run = {"messages_in": 999_999_999, "messages_out": 999_999_999, "dead_letters": 999_999}
    board.update("running", Sample({"run": run, "lag": 999_999_999, "waiting": 999_999_999}))
    document = board.read()
    parts = [{**part, "rate_in": {"now": 9_999_999}} for part in document["parts"]]
    found = [*lines({**document, "parts": parts})]
    assert max(map(len, found[2:])) <= 80, found
    assert found[-1] == "    dropped late: 999,999,999"


@given(st.lists(st.tuples(st.sampled_from(["sink", "step"]), st.text("ab", max_size=40))))
def test_no_two_parts_are_called_the_same(drawn: list[tuple[str, str]]) -> None:
    parts = [{"role": role, "name": name, "path": f"0/{role}s/{number}"} for number, (role, name) in enumerate(drawn)]
    found = labels(parts)
    assert len(set(found)) == len(parts)
    assert all(len(label) <= NAME for label in found)
    names = [f"{role} {name}"[:NAME] for role, name in drawn]
    assert [label == name for label, name in zip(found, names, strict=True)] == [
        names.count(name) == 1 for name in names
    ]


def test_status_without_a_name_is_of_the_only_application_that_runs(
    stopped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["status"]) == 2
    assert capsys.readouterr().err == (
        "R608 no application of yours runs on this machine\n"
        "  fix: give CHECKPOINT or APP, to see how its last run ended\n"
    )
    with monitored(stopped), registered(stopped, "Word Count"):
        assert out(capsys, "status") == out(capsys, "status", stopped)
        other = os.getppid()
        process = {"pid": other, "start_time": process_start_time(other)}
        registration = {**process, "application": "Sessions", "checkpoint": "/another one"}
        _file(other).write_text(json.dumps(registration))
        assert main(["status"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("R608 2 applications run\n  fix: give one of ")
    assert f'{stopped} ("Word Count")' in said and "'/another one' (\"Sessions\")" in said


def test_the_name_that_ps_shows_is_that_of_a_run(
    stopped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (stopped / "logs" / "gateway.log").write_text("one\n")
    assert main(["status", "Word Count"]) == 2
    assert "R616 " in capsys.readouterr().err
    with monitored(stopped), registered(stopped, "Word Count"):
        assert out(capsys, "status", "Word Count") == out(capsys, "status", stopped)
        assert out(capsys, "logs", "Word Count", "gateway") == out(capsys, "logs") == "gateway | one\n"
        assert main(["status", "Word"]) == 2
        assert "R616 " in capsys.readouterr().err
        (tmp_path / "Word Count").mkdir()  # the folder of the program, as `wallaroo new` makes it
        assert out(capsys, "status", "Word Count") == out(capsys, "status", stopped)
        process = {"pid": os.getppid(), "start_time": process_start_time(os.getppid())}
        registration = {**process, "application": "Word Count", "checkpoint": "/another"}
        _file(0).write_text(json.dumps(registration))
        assert main(["status", "Word Count"]) == 2
    said = capsys.readouterr().err
    assert "2 applications of this name run" in said
    assert str(stopped) in said and "/another" in said


@pytest.mark.slow
def test_a_supervised_application_is_known_between_two_drivers(
    stopped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = """
        import os, pathlib, sys, time
        from wallaroo_runtime.checkpoint.registry import _file, registered
        from wallaroo_runtime.system.process import report_ready
        with registered(pathlib.Path(sys.argv[1]), "Word Count"):
            report_ready()
            while not _file(os.getppid()).exists():
                time.sleep(0.01)
            sys.exit(1)
    """
    keeper = DriverKeeper([sys.executable, "-c", textwrap.dedent(text), str(stopped)], restarts=True)
    asked = []

    def wait(seconds: float) -> bool:
        """Look from outside while the keeper waits for the next try; `wallaroo stop` ends the wait."""
        capsys.readouterr()
        (found,) = objects(out(capsys, "status", "Word Count", "--json"))
        (listed,) = objects(out(capsys, "ps", "--json"))
        asked.append((found["state"], found["pid"], listed["pid"], listed["checkpoint"]))
        assert out(capsys, "status").startswith(f"Word Count: starting again, pid {os.getpid()}\n")
        assert main(["stop", "Word Count", "--timeout", "0"]) == 1  # this process was asked, and is there
        assert "R769" in capsys.readouterr().err
        return keeper._stopped.is_set()

    monkeypatch.setattr(keeper._stopped, "wait", wait)
    assert keeper.run() == 128 + signal.SIGTERM
    assert asked == [("starting again", os.getpid(), os.getpid(), str(stopped))]
    assert out(capsys, "ps", "--json") == ""


def test_status_of_a_checkpoint_that_is_not_driven(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = objects(out(capsys, "status", stopped, "--json"))
    assert (found["application"], found["state"], found["pid"]) == ("Word Count", "stopped", None)
    assert found["gateway"] == {"state": "stopped", "messages": 7}
    assert found["sinks"] == EGRESS["sinks"]
    assert 'sink "out": 5 messages since the checkpoint began, 2 waiting' in out(capsys, "status", stopped)
    (stopped / "gateway.json").write_text(json.dumps({"state": "stopped", "messages": 1}))
    assert "gateway: 1 message since it was started" in out(capsys, "status", stopped)


def test_a_monitor_that_is_gone_is_not_asked(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its address may be another process's by now."""
    with monitored(stopped):
        pass
    announce(stopped, monitor="http://127.0.0.1:1/")
    write_record(stopped / DRIVER_FILE, replace(read_note(stopped / DRIVER_FILE), start_time=1), durable=False)
    assert objects(out(capsys, "status", stopped, "--json"))[0]["monitor"] == ""


def test_ps_lists_runs_and_forgets_those_that_were_killed(
    stopped: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert out(capsys, "ps", "--json") == ""
    with monitored(stopped) as server, registered(stopped, "Word Count"):
        killed = _file(1)
        killed.write_text(json.dumps({"pid": os.getpid(), "start_time": 1}))
        (found,) = objects(out(capsys, "ps", "--json"))
        assert (found["pid"], found["application"], found["monitor"]) == (os.getpid(), "Word Count", server.url)
        assert str(stopped) in out(capsys, "ps")
        assert not killed.exists()
    assert out(capsys, "ps").split() == ["pid", "application", "processes", "checkpoint"]


@pytest.mark.slow
def test_ps_lists_a_run_whose_spark_is_to_start(
    stopped: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[Any] = []

    def start(*_: object, **__: object) -> None:
        capsys.readouterr()
        listed.extend(objects(out(capsys, "ps", "--json")))
        raise KeyboardInterrupt

    monkeypatch.setattr("wallaroo_runtime.run.run._run", start)
    assert main(["run", str(WORD_COUNT), "--checkpoint", str(tmp_path / "c")]) == 130
    assert [(each["pid"], each["checkpoint"]) for each in listed] == [(os.getpid(), str(tmp_path / "c"))]
    capsys.readouterr()
    assert out(capsys, "ps", "--json") == ""


def test_diff_takes_the_name_of_a_running_application(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology = WORD_COUNT
    put_manifest(stopped, json.loads(topology.read_bytes()))
    with registered(stopped, "Word Count"):
        assert main(["diff", "Word Count", str(topology)]) == 0
    assert capsys.readouterr().out == "nothing changed\n"
    assert main(["diff", "Word Count", str(topology)]) == 2
    said = capsys.readouterr().err
    assert "R609 Word Count is not a" in said and "what runs" not in said
    with registered(stopped, "Word Count"):
        assert main(["diff", "Words", str(topology)]) == 2
        assert main(["diff", str(topology), str(stopped.parent / "gone")]) == 2
    first, _, second, _ = capsys.readouterr().err.splitlines()
    assert first.startswith("R609 Words ") and first.endswith('; these run: "Word Count"')
    assert second.startswith("R609 ") and second.endswith('; these run: "Word Count"')


def test_a_home_that_cannot_be_written_does_no_harm(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(stopped / "application.json"))
    with registered(stopped, "Word Count"):
        pass


@pytest.mark.slow
def test_stop_ends_the_driver(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        driver = {"pid": child.pid, "start_time": process_start_time(child.pid)}
        (stopped / "driver.json").write_text(json.dumps(driver))
        (found,) = objects(out(capsys, "stop", stopped, "--json"))
        assert (found["pid"], found["state"]) == (child.pid, "stopped")
        assert child.wait(60) == -15
    assert driver_of(stopped) is None


@pytest.mark.slow
def test_a_driver_that_does_not_end_is_named(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = "import signal; signal.signal(15, signal.SIG_IGN); print(flush=True); input()"
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        driver = {"pid": child.pid, "start_time": process_start_time(child.pid)}
        (stopped / "driver.json").write_text(json.dumps(driver))
        assert main(["stop", str(stopped), "--timeout", "0.1"]) == 1
        assert f"R769 {stopped}: process {child.pid} was asked to end" in capsys.readouterr().err
        child.kill()


def test_stop_of_what_does_not_run(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stopped / "driver.json").write_text(json.dumps({"pid": os.getpid(), "start_time": 1}))
    assert main(["stop", str(stopped)]) == 1
    assert capsys.readouterr().err == (
        f"R769 {stopped}: no application runs on it\n  fix: `wallaroo ps` lists the runs that go on\n"
    )


def test_logs_show_the_last_lines_of_each(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (stopped / "logs" / "gateway.log").write_text("one\ntwo\nthree\nnot who")
    (stopped / "logs" / "spark.out").write_bytes(b"\x1b[31m\xff\n")
    assert (
        out(capsys, "logs", stopped, "-n", 2)
        == "gateway | two\ngateway | three\nspark | \\x1b[31m\N{REPLACEMENT CHARACTER}\n"
    )
    assert [each["line"] for each in objects(out(capsys, "logs", stopped, "gate", "--json"))] == ["one", "two", "three"]
    assert main(["logs", str(stopped), "worker"]) == 2
    assert "has no log worker; there are: gateway, spark" in capsys.readouterr().err
    assert main(["logs", str(stopped), "--lines", "-1"]) == 2
    (stopped / "logs" / "spark.log").write_text("")
    capsys.readouterr()
    assert main(["logs", str(stopped), "nosuch"]) == 2
    assert "has no log nosuch; there are: gateway, spark\n" in capsys.readouterr().err
    assert main(["logs"]) == 2
    assert capsys.readouterr().err.startswith("R608 no application of yours runs on this machine\n")


def test_following_ends_with_ctrl_c(
    stopped: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = iter([lambda: (stopped / "logs" / "egress.log").write_text("later\n")])

    def sleep(_: float) -> None:
        step: Callable[[], Any] | None = next(pauses, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr("wallaroo_runtime.cli.logs.sleep", sleep)  # not of other threads
    assert main(["logs", "-f", str(stopped)]) == 130
    assert capsys.readouterr().out == "egress | later\n"


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(["", "a", "b\n", "cc\nd", "\n"]), st.booleans()), max_size=20))
def test_each_line_of_a_log_is_shown_once(tmp_path: Path, steps: list[tuple[str, bool]]) -> None:
    path = tmp_path / "any.log"
    path.write_text("first\n")
    log, expected = Log(path), "first\n"
    found: list[str] = []
    found += log.last(5)
    for text, reads in steps:
        with path.open("a") as file:
            file.write(text)
        expected += text
        if reads:
            found += log.more()
    found += log.more()
    assert found == expected[: expected.rfind("\n") + 1].splitlines()
    path.rename(tmp_path / "any.log.1")
    path.write_text("new\n")
    assert list(log.more()) == ["new"]


def test_a_checkpoint_at_a_url_is_found_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "file:///shared/app"]) == 2
    assert capsys.readouterr().err == (
        "R715 file:///shared/app cannot be used as a checkpoint; this command takes a name or a directory, no URL\n"
        "  fix: give the application's name, or the directory on the driver's machine: `wallaroo ps` shows both\n"
    )
