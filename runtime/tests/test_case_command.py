"""`wallaroo test`: case folders, and how a difference is shown."""

import contextlib
import json
import os
import pty
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.patient_reading import read_patiently
from wallaroo import KafkaRecord
from wallaroo_runtime.case.case import Case, CaseResult
from wallaroo_runtime.case.record_line import record_line
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.cli.test import differences

PROGRAM = """
import wallaroo

def application_setup(args):
    (in_host, in_port), *_ = wallaroo.tcp_parse_input_addrs(args)
    (out_host, out_port), *_ = wallaroo.tcp_parse_output_addrs(args)
    numbers = wallaroo.source("numbers", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    sink = wallaroo.TCPSinkConfig(out_host, out_port, encode)
    return wallaroo.build_application("Squares", numbers.to(square).to_sink(sink))

@wallaroo.line_decoder
def decode(bs):
    return int(bs)

@wallaroo.computation("square")
def square(number):
    return "%d %d" % (number, number * number)

@wallaroo.line_encoder
def encode(line):
    return line
"""
SETTINGS = 'order = "any"\ndead_letters = 1\n[[input]]\nfile = "numbers.txt"\nkind = "lines"\n'


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with one case, which passes."""
    (tmp_path / "app.py").write_text(PROGRAM)
    case = tmp_path / "cases" / "small"
    case.mkdir(parents=True)
    (case / "case.toml").write_text(SETTINGS)
    (case / "numbers.txt").write_text("3\nx\n2\n")
    (case / "expected.txt").write_text("2 4\n3 9\n")
    return tmp_path


def test_a_case_below_the_application_passes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", str(project)]) == 0
    assert capsys.readouterr().out == f"ok    {project}/cases/small: lines 2, dead letters 1\n1 passed\n"


def test_a_difference_is_shown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = project / "cases" / "small"
    (case / "expected.txt").write_text("1 1\n2 4\n3 10\n")
    (case / "case.toml").write_text(SETTINGS.replace("dead_letters = 1\n", 'app = "../../app.py"\n'))
    assert main(["test", str(case)]) == 1
    assert capsys.readouterr().out == (
        f"FAIL  {case}\n"
        "  --- expected.txt\n"
        "  +++ came\n"
        "  @@ -1,3 +1,2 @@\n"
        "  -1 1\n"
        "   2 4\n"
        "  -3 10\n"
        "  +3 9\n"
        "  dead letters: expected 0, came 1\n"
        "    C505 numbers: ValueError: invalid literal for int() with base 10: b'x' (b'x')\n"
        "1 of 1 failed\n"
    )
    assert main(["test", str(case), "--json"]) == 1
    outcome = json.loads(capsys.readouterr().out)
    assert (outcome["lines"], outcome["dead_letters"], outcome["problems"][0]) == (2, 1, "--- expected.txt")


@pytest.mark.parametrize("name", ["expected.txt", "numbers.txt"])
def test_a_file_that_is_missing_is_told_before_a_program_compiles(
    name: str, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = project / "cases" / "small" / name
    path.unlink()
    monkeypatch.setattr("wallaroo_runtime.case.run.run_case", None)
    assert main(["test", str(project)]) == 1
    assert f"  R745 case {path} cannot be run; there is no such file\n" in capsys.readouterr().out


STOPPING = PROGRAM.replace('    return "%d', '    breakpoint()\n    return "%d')


@pytest.mark.slow
def test_a_breakpoint_without_a_terminal_says_what_to_do(project: Path) -> None:
    (project / "app.py").write_text(STOPPING)
    command = [sys.executable, "-m", "wallaroo_runtime.cli.start", "test", str(project)]
    done = subprocess.run(command, input="", capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert "C501 square: NoTerminalError: breakpoint() has no terminal in this run: use `wallaroo run" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("typed", [b"q\n", b"\x03", b"c\nq\n"])
def test_who_leaves_the_debugger_leaves_the_test(typed: bytes, project: Path) -> None:
    (project / "app.py").write_text(STOPPING)
    process, terminal = pty.fork()
    if not process:
        os.execv(sys.executable, [sys.executable, "-m", "wallaroo_runtime.cli.start", "test", str(project)])
    shown = b""
    for part in typed.splitlines(keepends=True):
        prompts = shown.count(b"(Pdb) ")
        while shown.count(b"(Pdb) ") == prompts:
            shown += (block := os.read(terminal, 4096))
            assert block, shown
        os.write(terminal, part)
    again = partial(os.write, terminal, b"\x03") if typed.endswith(b"\x03") else None
    with contextlib.suppress(OSError):  # EIO: it has ended
        while block := read_patiently(terminal, again):
            shown += block
    _, status = os.waitpid(process, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 130, shown
    assert shown.count(b"(Pdb) ") == len(typed.splitlines())
    assert b"broken off at a breakpoint" in shown
    assert b"FAIL" not in shown


def test_what_came_is_written_as_expected(project: Path) -> None:
    expected = project / "cases" / "small" / "expected.txt"
    expected.unlink()
    assert main(["test", str(project)]) == 1
    assert main(["test", str(project), "--write"]) == 0
    assert expected.read_text() == "2 4\n3 9\n"
    assert main(["test", str(project)]) == 0


BAD = {
    "a key that means nothing": ("ordr = 'key'", "ordr means nothing", "did you mean order?"),
    "a value of another type": ("dead_letters = 'two'", "dead_letters is 'two'", "see `wallaroo test --help`"),
    "no TOML": ("order =", "Invalid value", "correct it"),
    "an input without a kind": ("[[input]]\nfile = 'a'", "an input is {'file': 'a'}", "write [[input]]"),
    "an unknown kind": (
        "[[input]]\nfile = 'a'\nkind = 'line'",
        "there is no kind 'line' of input",
        "use lines, hex, records",
    ),
    "an input that is missing": ("[[input]]\nfile = 'a'\nkind = 'lines'", "there is no such file", "correct the file"),
    "an input of another kind": (
        "[[input]]\nfile = 'numbers.txt'\nkind = 'hex'",
        "line 1 is no hex; non-hexadecimal number",
        "correct the file, or its kind",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_case_is_explained(name: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, reason, fix = BAD[name]
    (project / "cases" / "small" / "case.toml").write_text(text)
    assert main(["test", str(project)]) in (1, 2)
    said = "".join(capsys.readouterr())
    assert "R745 case " in said
    assert reason in said
    assert f"fix: {fix}" in said


def test_without_a_case_or_an_application(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "there is no case.toml in or below it\n  fix: write one" in said and "`go test ./...` run tests" in said
    (tmp_path / "case.toml").write_text("")
    assert main(["test", str(tmp_path)]) == 2
    assert "it has no application\n  fix: say where it is in case.toml" in capsys.readouterr().err


@pytest.mark.parametrize("directory", ["cases", "cases/small", "."])
def test_an_application_is_found_up_to_the_working_directory(
    directory: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project)
    assert main(["test", directory]) == 0, capsys.readouterr()
    monkeypatch.chdir(project / "cases")
    assert main(["test", "small"]) == 2


KEYED = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)).map("{0[0]} {0[1]}".format), max_size=6)


@given(KEYED, st.randoms(use_true_random=False), st.booleans(), st.sampled_from(["key", "any"]))
def test_only_the_order_that_is_free_may_differ(expected: list[str], random, changes: bool, order: str) -> None:  # type: ignore[no-untyped-def]
    lines = list(expected)
    random.shuffle(lines)
    if changes and lines:
        lines[0] = "d 1"
    by_key = {key: [line for line in lines if line[0] == key] for key in "abcd"}
    same = by_key == {key: [line for line in expected if line[0] == key] for key in "abcd"}
    if order == "any":
        same = sorted(lines) == sorted(expected)

    class Given(Case):
        def expected(self, language: str) -> list[str]:
            return expected

    case = Given(Path(), {"order": order})
    assert (differences(case, "python", CaseResult(lines, 0, [])) == []) == same


RECORDS = st.lists(
    st.tuples(st.sampled_from(["t", "u"]), st.sampled_from(["a", "", "x y"]), st.integers(0, 3)), max_size=8
)


@given(RECORDS, st.randoms(use_true_random=False))
def test_records_rise_within_topic_and_key(drawn: list[tuple[str, str, int]], shuffled: Any) -> None:
    case = Case(Path(), {"order": "key", "input": [{"file": "input.txt", "kind": "records"}]})

    def lines(order: list[tuple[str, str, int]]) -> list[str]:
        return [record_line(KafkaRecord(topic, key.encode(), b"%d" % value)) for topic, key, value in order]

    def by_key(order: list[tuple[str, str, int]]) -> dict[tuple[str, str], list[int]]:
        return {(t, k): [value for *at, value in order if at == [t, k]] for t, k, _ in order}

    other = list(drawn)
    shuffled.shuffle(other)
    assert (case.arranged(lines(drawn)) == case.arranged(lines(other))) == (by_key(drawn) == by_key(other))
