"""Commands for a run with other processes: supervised, on another machine, or with a checkpoint at a URL."""

import json
import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from support.monitored import monitored, stopped
from wallaroo_runtime.checkpoint import registry
from wallaroo_runtime.checkpoint.registry import registered
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.monitor.board import Sample
from wallaroo_runtime.service.driver import announce
from wallaroo_runtime.submit.submit import DriverKeeper

__all__ = ["stopped"]  # the fixture


def out(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(each) for each in arguments]) == 0
    return capsys.readouterr().out


def objects(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


STOPPED = """
    import pathlib, signal, subprocess, sys, time
    from wallaroo_runtime.checkpoint.registry import _file, registered
    from wallaroo_runtime.system.process import report_ready
    from wallaroo_runtime.service.driver import announce
    checkpoint = pathlib.Path(sys.argv[1])
    with open(checkpoint / "starts", "a+") as file:
        file.write("x")
        file.seek(0)
        if len(file.read()) > 1:
            sys.exit(0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with registered(checkpoint, "Word Count"):
        announce(checkpoint)
        report_ready()
        while not _file(int(sys.argv[2])).exists():
            time.sleep(0.01)
        subprocess.Popen([*sys.argv[3:], "stop", str(checkpoint), "--timeout", "0"], stdout=-3, stderr=-3)
        signal.pause()
"""


@pytest.mark.slow
def test_a_driver_that_fails_while_it_is_stopped_is_not_started_again(stopped: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(STOPPED), str(stopped), str(os.getpid())]
    command += [sys.executable, "-m", "wallaroo_runtime.cli.start"]
    assert DriverKeeper(command, restarts=True).run() == 1
    assert (stopped / "starts").read_text() == "x"


def test_a_run_of_another_machine_is_not_forgotten(stopped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may share a home directory."""
    with registered(stopped, "Word Count"):
        with monkeypatch.context() as other:
            other.setattr(registry.platform, "node", lambda: "another")
            other.setattr(registry, "alive", lambda _: None)  # it has no such process
            assert list(registry.running()) == []
        assert [each["checkpoint"] for each in registry.running()] == [str(stopped)]


def test_a_run_whose_checkpoint_is_at_a_url(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record is at the URL; `ps` shows its directory here."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    place = tmp_path / "of a url"
    (place / "logs").mkdir(parents=True)
    (place / "logs" / "spark.log").write_text("one\n")
    with registered(place, "Word Count"):
        announce(place)
        for name in ("Word Count", place):
            (found,) = objects(out(capsys, "status", name, "--json"))
            assert (found["application"], found["state"], found["checkpoint"]) == ("Word Count", "running", str(place))
            assert out(capsys, "logs", name, "spark") == "spark | one\n"
            assert main(["dead-letters", "ls", str(name)]) == 2
            assert f"R652 the dead letters of checkpoint {place} are at its remote egress\n" in capsys.readouterr().err
    assert main(["status", str(place)]) == 2


def test_ps_lists_the_processes_of_a_run(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    others = [{"name": "driver", "pid": os.getpid()}, {"name": "spark", "pid": 7}, {"name": "egress", "pid": None}]
    with monitored(stopped) as server, registered(stopped, "Word Count"):
        workers = [{"name": "main", "pid": 8}]
        server.board.update("running", Sample({}, processes=others, workers=workers))
        (found,) = objects(out(capsys, "ps", "--json"))
        assert found["processes"] == {"spark": 7, "worker main": 8}
        assert "spark 7, worker main 8" in out(capsys, "ps")
        assert f"processes: driver {os.getpid()}, spark 7, worker main 8\n" in out(capsys, "status")
