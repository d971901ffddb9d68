"""The setting of the workers' interpreter: what cannot run them is refused before anything starts, with a remedy."""

import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.run import CASES
from wallaroo.diagnostic.diagnostic import DiagnosticError
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.program.application import load_application
from wallaroo_runtime.program.interpreter import check_interpreter
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.launch import explain_refusal
from wallaroo_runtime.worker.spec import WorkerSpec

pytestmark = pytest.mark.slow

SETTING = "spark.wallaroo.worker.python"
OPTION = "--conf spark.wallaroo.worker.python"
ADDRESSES = ("--in", "127.0.0.1:0", "--out", "127.0.0.1:9")
# What is given, and what is said of it; `{0}` is what is given.
SAID = {
    "right": "",
    "nothing": "",
    "nowhere": "{0} cannot run a worker; No such file or directory",
    "a folder": "{0} cannot run a worker; it is a directory",
    "an environment": f"fix: give {OPTION}={{0}}/bin/python",
    "a file": "fix: give the path of an interpreter, or make this one executable",
    "with options": f"fix: give {OPTION}={sys.executable}; options of it go into PYTHON... variables",
    "another program": "{0} cannot run a worker; asked for its modules, it exited with status 7: no idea",
    "without Wallaroo": "fix: `{0} -m pip install 'wallaroo-spark[worker]'`, or give an interpreter that has it",
}


@cache
def topology() -> Topology:
    return load_application(str(CASES / "word_count" / "app.py"), ADDRESSES, "", "").topology


def given_as(kind: str, folder: Path) -> str:
    """Make what a user names."""
    program = folder / "python"
    if kind in ("right", "nothing", "with options"):
        return {"right": sys.executable, "nothing": "", "with options": f"{sys.executable} -X dev"}[kind]
    if kind == "an environment":
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "python").touch()
    if kind in ("a folder", "an environment"):
        return str(folder)
    if kind != "nowhere":
        script = {"another program": "echo no idea >&2; exit 7", "without Wallaroo": f'exec {sys.executable} -S "$@"'}
        program.write_text(f"#!/bin/sh\n{script.get(kind, '')}\n")
        program.chmod(0o600 if kind == "a file" else 0o700)
    return str(program)


@settings(max_examples=40, deadline=None)
@given(kind=st.sampled_from([*SAID]), is_here=st.booleans(), is_packed=st.booleans())
def test_what_is_said_of_an_interpreter(
    tmp_path_factory: pytest.TempPathFactory, kind: str, is_here: bool, is_packed: bool
) -> None:
    python, said = given_as(kind, tmp_path_factory.mktemp("python")), ""
    try:
        check_interpreter(python, topology(), is_here=is_here, is_packed=is_packed)
    except DiagnosticError as error:
        said = str(error)
        assert said.startswith("W404 ")
    is_looked_at = is_here and not (kind == "without Wallaroo" and is_packed)
    expected = SAID[kind].format(python) if is_looked_at else ""
    assert (expected in said) if expected else said == ""


def test_an_executor_that_does_not_have_it_says_the_same(tmp_path: Path) -> None:
    spec = WorkerSpec("a", "main", ("{python}", "-m", "wallaroo.worker"), str(tmp_path), python="/no/python")
    said = str(explain_refusal(spec, FileNotFoundError(2, "No such file or directory")))
    assert said.startswith(f"W404 {OPTION}=/no/python cannot run a worker; No such file or directory")
    assert f"each machine has, or leave out {OPTION}" in said


def test_nothing_has_begun_when_it_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "run",
        str(CASES / "word_count" / "app.py"),
        *ADDRESSES,
        "--conf",
        f"{SETTING}=/no/python",
    ]
    assert main([*command, "--checkpoint", str(tmp_path / "checkpoint")]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.partition(" ")[0] for line in err.splitlines()[:2]] == ["reading", "W404"], err
    assert not (tmp_path / "checkpoint").exists()


def test_an_application_in_go_has_no_use_for_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", str(CASES / "word_count"), *ADDRESSES, "--conf", f"{SETTING}={sys.executable}"]
    assert main([*command, "--checkpoint", str(tmp_path / "checkpoint")]) == 2
    err = capsys.readouterr().err
    assert f'R608 {OPTION} is for workers in Python; "Word Count Application" has none\n' in err
    assert f"fix: leave out {OPTION}" in err
