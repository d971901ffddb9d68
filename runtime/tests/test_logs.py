"""Lines of logs belong to runs: `wallaroo logs` shows those of the last one, with `--all` those of each."""

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.manifest import put_manifest
from wallaroo_runtime.cli.logs import Log
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.run.log_mark import mark_begin, mark_stop

NAMES = ["gateway.log", "egress.log", "spark.log", "spark.out", "worker-main-1.log"]
BEGAN = re.compile(r"--- run began 20[0-9-]+T[0-9:.]+Z ---")
RUNS = st.lists(st.dictionaries(st.sampled_from(NAMES), st.lists(st.text("ab -", max_size=5), max_size=4)), max_size=4)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(RUNS, st.booleans(), st.integers(0, 6))
def test_each_line_is_of_its_run(
    tmp_path_factory: pytest.TempPathFactory, runs: list[dict[str, list[str]]], is_open: bool, count: int
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    for run in runs:
        mark_begin(folder)
        for name, lines in run.items():
            with (folder / name).open("a") as file:
                file.write("".join(f"{line}\n" for line in lines) + ("cut" if is_open else ""))
    ends = ["cut"] if is_open else []
    for path in folder.iterdir():
        printed = [run[path.name] + ends for run in runs if path.name in run]
        found = list(Log(path).last(10**6))
        texts = [line for line in found if not BEGAN.fullmatch(line)]
        whole = [line for lines in printed for line in lines]
        assert texts == (whole[: len(whole) - len(ends)] if runs and path.name in runs[-1] else whole)
        last = list(Log(path).last(count, every_run=False))
        expected = runs[-1].get(path.name, [])
        assert [line for line in last if not BEGAN.fullmatch(line)] == expected[
            len(expected) - min(count, len(expected)) :
        ]
        is_marked = bool(last) and BEGAN.fullmatch(last[0])
        is_first = len(found) == len(texts)  # of a log that this run has begun
        assert bool(is_marked) == bool(expected and count and not is_first)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    put_manifest(tmp_path)
    logs = tmp_path / "logs"
    mark_begin(logs)
    (logs / "gateway.log").write_text("R606 of the first run\n")
    mark_stop(logs)
    mark_begin(logs)
    return tmp_path


def test_a_stop_is_marked_in_the_logs_of_spark_alone(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", str(checkpoint), "--all"]) == 0
    shown = re.sub(r" 20[0-9-]+T[0-9:.]+Z ", " TIME ", capsys.readouterr().out)
    assert shown.splitlines() == [
        "gateway | R606 of the first run",
        "gateway | --- run began TIME ---",
        "spark | --- run began TIME ---",
        "spark | --- run stops TIME ---",
        "spark | --- run began TIME ---",
    ]


def test_logs_are_those_of_the_last_run(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", str(checkpoint)]) == 0
    assert capsys.readouterr() == ("", "nothing was printed in the last run; --all shows former ones\n")
    with (checkpoint / "logs" / "gateway.log").open("a") as log:
        log.write("".join(f"{number}\n" for number in range(30)))
    assert main(["logs", str(checkpoint), "-n", "2"]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert BEGAN.fullmatch(first.removeprefix("gateway | "))
    assert others == ["gateway | 28", "gateway | 29"]


def test_a_log_that_cannot_be_written_ends_no_run(checkpoint: Path) -> None:
    (checkpoint / "logs" / "egress.log").mkdir()
    mark_begin(checkpoint / "logs")
    assert (checkpoint / "logs" / "gateway.log").read_text().count("--- run began ") == 2
