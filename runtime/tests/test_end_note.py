"""How runs have ended: what `status`, the page and the metrics of the next run say of it."""

import errno
import socket
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.manifest import put_manifest
from wallaroo_runtime.checkpoint.end_note import failed_runs, noting_end, past_end, running_note
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.cli.status import lines
from wallaroo_runtime.durable.record import write_record
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.monitor.board import Board
from wallaroo_runtime.monitor.metrics import render
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.run.end_condition import Activity, ends_of
from wallaroo_runtime.run.options import AppOptions, RunOptions
from wallaroo_runtime.service import driver
from wallaroo_runtime.service.driver import DRIVER_FILE, DriverNote, read_note
from wallaroo_runtime.topology.load import load

WORD_COUNT = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid" / "word_count.json"
REFUSED = ("refused by the checkpoint", "a mistake")
STOPS = (RunError, KeyError, KeyboardInterrupt)


def always(error: BaseException) -> bool:
    return True


def never(error: BaseException) -> bool:
    return False


def noted(checkpoint: Path) -> DriverNote:
    return read_note(checkpoint / DRIVER_FILE)


def run_once(checkpoint: Path, end: str, error: BaseException | None, failures: int) -> None:
    """Let a run end so, after so many that failed."""
    with suppress(*STOPS), noting_end(checkpoint, always if end == "broken off" else never) as ended:
        ended.has_begun = end != "refused by the checkpoint"
        assert running_note(noted(checkpoint))["failures"] == failures
        note = (checkpoint / DRIVER_FILE).read_bytes()
        if error is not None:
            raise error
    if end == "killed":
        (checkpoint / DRIVER_FILE).write_bytes(note)  # as if it had never ended


@given(
    st.lists(
        st.sampled_from(["stopped", "failed", "bug", "signal", "broken off", "killed", *REFUSED]),
        min_size=1,
        max_size=6,
    )
)
def test_status_says_how_runs_ended_and_how_many_failed(ends: list[str]) -> None:
    errors = {
        "failed": RunError.of("R611", reason="no disk", fix="mend it"),
        "bug": KeyError("x"),
        "refused by the checkpoint": RunError.of("R603", path="c", actual="a", expected="b", command="rm"),
        "a mistake": RunError.of("R608", USAGE, reason="a mistake", fix="correct it"),
        "signal": KeyboardInterrupt(),
        "broken off": RunError.of("R617", process="Spark", reason="asked", log="l"),
    }
    failures, before = 0, dict[str, object]()
    with tempfile.TemporaryDirectory() as name:
        checkpoint = Path(name)
        assert past_end(noted(checkpoint)) == {}
        for end in ends:
            run_once(checkpoint, end, errors.get(end), failures)
            found = past_end(noted(checkpoint))
            if end in REFUSED:
                assert found == before
                continue
            failures = failures + 1 if end in ("failed", "bug", "killed") else 0
            before, said = found, failed_runs(found)
            assert (found["failures"], bool(said)) == (failures, failures > 0)
            assert {"failed": "R611 the query stopped; no disk", "bug": "KeyError", "killed": "without a word"}.get(
                end, "it was stopped"
            ) in found["reason"]


def test_a_run_ends_for_the_reason_that_its_options_give(tmp_path: Path) -> None:
    came, is_complete = Activity(1, 1, True), False
    quiet, whole = RunOptions(AppOptions(""), stop_when_idle=3), RunOptions(AppOptions(""), available_now=True)

    def reasons(options: RunOptions, now: float) -> list[str]:
        return [end.text if end.holds(now) else "" for end in ends_of(options, 0, lambda: came, lambda: is_complete)]

    assert reasons(RunOptions(AppOptions("")), 9) == []
    assert (reasons(quiet, 2), reasons(quiet, 3)) == ([""], ["nothing came in for 3 s"])
    assert reasons(whole, 9) == [""]
    is_complete = True
    (said,) = reasons(whole, 0)
    with noting_end(tmp_path) as note:
        note.reason = said
    assert past_end(noted(tmp_path))["reason"] == "all that was there at its start is delivered"


@pytest.mark.parametrize("reason", ["the disk of Spark takes nothing more", "long " * 2000])
def test_a_full_disk_has_room_for_why_a_run_ended(
    reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    put_manifest(tmp_path)
    with suppress(RunError), noting_end(tmp_path) as note:
        note.has_begun = True
        monkeypatch.setattr(driver, "write_record", full)
        raise RunError.of("R611", reason=reason, fix="free some space")
    assert (tmp_path / DRIVER_FILE).stat().st_size < 4096
    found = past_end(noted(tmp_path))
    assert found["failures"] == 1 and found["reason"].startswith(f"R611 the query stopped; {reason[:80]}")
    assert main(["status", str(tmp_path)]) == 0
    assert "killed" not in (said := capsys.readouterr().out) and "R611" in said


def test_a_full_disk_is_why_a_run_ended(tmp_path: Path) -> None:
    with suppress(OSError), noting_end(tmp_path):
        raise OSError(errno.ENOSPC, "No space left on device")
    reason = f"R626 the disk of {tmp_path} takes nothing more; No space left on device"
    assert past_end(noted(tmp_path))["reason"] == reason


def test_status_page_and_metrics_of_runs_that_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_manifest(tmp_path)

    def status() -> str:
        assert main(["status", str(tmp_path)]) == 0
        return " ".join(capsys.readouterr().out.split())

    for _ in range(2):
        with suppress(RunError), noting_end(tmp_path) as note:
            note.has_begun = True
            raise RunError.of("R611", reason="no disk", fix="mend it")
    assert "the last 2 runs failed, most recently 20" in status()
    topology = load(WORD_COUNT.read_bytes())
    with noting_end(tmp_path):
        document = Board(topology, compile_topology(topology, shuffle_partitions=2), tmp_path).read()
    assert "R611 the query stopped; no disk; now it runs again" in " ".join(lines(document))
    assert b'wallaroo_failed_runs{application="Word Count Application"} 2.0' in render(document, {}, "")[0]
    note = noted(tmp_path)
    write_record(tmp_path / DRIVER_FILE, replace(note, start_time=1))  # this process is no driver any longer
    said = status()
    assert "the last run ended 20" in said and "it was stopped" in said


@pytest.mark.slow
def test_a_start_that_is_refused_is_no_failed_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for end in ("failed", "stopped"):
        with suppress(RunError), noting_end(tmp_path) as note:
            note.has_begun = True
            if end == "failed":
                raise RunError.of("R611", reason="no disk", fix="mend it")
        before = past_end(noted(tmp_path))
        (tmp_path / "application.json").write_text("{}")  # a checkpoint that no run can open
        assert main(["run", str(WORD_COUNT), "--checkpoint", str(tmp_path)]) == 1
        assert past_end(noted(tmp_path)) == before
        (tmp_path / "application.json").unlink()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            arguments = ("--in", "127.0.0.1:0", "--checkpoint", str(tmp_path), "--monitor", address)
            capsys.readouterr()
            assert main(["run", str(WORD_COUNT), *arguments]) == 2
        said = capsys.readouterr().err
        assert f"R714 the monitor cannot listen at {address}; Address already in use" in said
        assert "starting Spark" not in said
        assert past_end(noted(tmp_path)) == before
