"""What workers print reaches the console: drawn writes to drawn logs, against the lines that were written."""

from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wallaroo_runtime.console.reporter import JsonReporter, TextReporter
from wallaroo_runtime.run.worker_output import BACKLOG_BYTES, LOOK_BYTES, WorkerOutput
from wallaroo_runtime.worker.log import RotatingLog

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=12)
WRITES = st.lists(st.tuples(st.sampled_from(["main", "my-lib"]), TEXT, st.booleans(), st.booleans()), max_size=30)


@settings(deadline=None, max_examples=60)
@given(WRITES)
def test_each_line_is_shown_once_and_in_order(writes: list[tuple[str, str, bool, bool]]) -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "worker-main-0.log").write_text("of an earlier run\n")
        output = WorkerOutput(Path(folder))
        written: dict[str, str] = {"main": "", "my-lib": ""}
        shown: dict[str, list[str]] = {"main": [], "my-lib": []}
        logs = {name: RotatingLog(Path(folder) / f"worker-{name}-0.log") for name in written}
        for name, text, ends, looks in writes:
            piece = text + "\n" * ends
            written[name] += piece
            logs[name].write(piece.encode())
            for worker, line in output.lines() if looks else ():
                shown[worker].append(line)
        for worker, line in output.lines(whole=False):
            shown[worker].append(line)
        for name, log in logs.items():
            log.close()
            assert shown[name] == written[name].splitlines()


LINES = st.lists(TEXT.map(lambda text: text + "\n"), min_size=3, max_size=60)


@settings(max_examples=40)
@given(LINES, TEXT)
def test_a_backlog_is_shown_line_by_line_and_the_end_of_a_run_shows_all_of_it(lines: list[str], last: str) -> None:
    written = "".join(lines) + last
    with TemporaryDirectory() as folder, mock.patch("wallaroo_runtime.run.worker_output.LOOK_BYTES", 50):
        whole, ending = WorkerOutput(Path(folder)), WorkerOutput(Path(folder))
        (Path(folder) / "worker-main-0.log").write_text(written, encoding="utf-8")
        shown = [line for _ in lines for _, line in whole.lines()]
        assert shown == "".join(lines).splitlines()
        assert [line for _, line in ending.lines(whole=False)] == written.splitlines()


def test_a_flood_is_not_shown_and_the_supervisor_has_other_ways(tmp_path: Path) -> None:
    path = tmp_path / "worker-main-0.log"
    output = WorkerOutput(tmp_path)
    path.write_bytes(b"[supervisor: process 1 ended]\n" + b"one\n")
    assert list(output.lines()) == [("main", "one")]
    with path.open("ab") as file:
        file.write(b"x" * (BACKLOG_BYTES + 1) + b"\n")
    assert list(output.lines()) == [("main", f"[{BACKLOG_BYTES + 2:,} bytes are only in {path}]")]
    path.rename(tmp_path / "worker-main-0.log.1")
    path.write_bytes(b"y" * LOOK_BYTES + b"\nafter a rotation\n")
    assert [line[-8:] for _, line in [*output.lines(), *output.lines()]] == ["y" * 8, "", "rotation"]


def test_what_a_terminal_would_obey_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    for reporter in (TextReporter(), TextReporter(is_quiet=True), JsonReporter()):
        reporter.output("main", "a\tb\x1b[2J")
    assert capsys.readouterr().err == "main | a       b\\x1b[2J\n"
