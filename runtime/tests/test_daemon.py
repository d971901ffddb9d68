"""What the local processes share."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.durable.record import write_record
from wallaroo_runtime.service.driver import DriverNote, DriverWatch
from wallaroo_runtime.service.status import StatusFile
from wallaroo_runtime.system.process import process_start_time


@pytest.mark.slow
def test_a_process_is_known_by_its_start_time() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert isinstance(process_start_time(child.pid), int)
    assert process_start_time(child.pid) == process_start_time(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert process_start_time(child.pid) is None  # a zombie
    child.communicate(timeout=300)
    assert process_start_time(child.pid) is None


def test_a_driver_is_given_time_and_another_one_takes_its_place(tmp_path: Path) -> None:
    me = DriverNote(os.getpid(), process_start_time(os.getpid()) or 0)
    gone = replace(me, start_time=1)
    path = tmp_path / "driver.json"
    assert not DriverWatch(path, 0).expired(0)
    write_record(path, me)
    assert not DriverWatch(path, 0).expired(0)
    write_record(path, gone)
    watch = DriverWatch(path, 10)
    assert [watch.expired(now) for now in (0, 9.9, 10)] == [False, False, True]
    path.write_text("{")
    assert watch.expired(11)
    write_record(path, me)
    assert not watch.expired(100)
    write_record(path, gone)
    assert [watch.expired(now) for now in (101, 111)] == [False, True]


def test_the_status_is_written_when_it_changes_and_a_full_disk_is_survived(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "status.json"
    status = StatusFile(path)
    status.write("listening", messages=1)
    first = path.stat().st_ino
    status.write("listening", messages=1)
    assert path.stat().st_ino == first
    status.say(Diagnostic.of("R614", path="/x", effect="it waits"))
    status.write("listening", messages=1)
    document = json.loads(path.read_bytes())
    assert (document["pid"], document["state"], document["messages"]) == (os.getpid(), "listening", 1)
    assert [finding["code"] for finding in document["diagnostics"]] == ["R614"]
    assert capsys.readouterr().err.startswith("R614 no room on the disk of /x")
    path.unlink()
    path.mkdir()
    status.write("listening", messages=2)
    status.write("listening", messages=3)
    assert capsys.readouterr().err == f"{path} cannot be written; Is a directory\n"
    assert list(tmp_path.iterdir()) == [path]
    for number in range(3):  # each outage is reported, once
        path.rmdir()
        status.write("listening", messages=4 + 3 * number)
        path.unlink()
        path.mkdir()
        for more in (1, 2):
            status.write("listening", messages=4 + 3 * number + more)
        assert capsys.readouterr().err == f"{path} cannot be written; Is a directory\n"


def test_diagnostics_are_bounded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = StatusFile(tmp_path / "status.json")
    for _ in range(1500):
        status.say(Diagnostic.of("R614", path="/x", effect="it waits"))
    assert len(status.diagnostics) == 100
    assert capsys.readouterr().err.splitlines()[-1] == "R614 is no longer reported"
