"""What pages promise: programs of windows run as printed, bytes are the first framing vector."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from main_job import findings
from support.run import TESTS
from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.testing import run

ROOT = TESTS.parent
WINDOWS = (ROOT / "docs" / "windows.md").read_text(encoding="utf-8")


def test_late_messages_are_told_as_printed(tmp_path: Path) -> None:
    found, said = (
        re.search(r"```python\n# late\.py\n(.*?)```", WINDOWS, re.DOTALL),
        re.search(r"The lines (.*) come in", WINDOWS),
    )
    printed = re.search(r"```text\n(a 100 .*?)```", WINDOWS, re.DOTALL)
    assert found and said and printed
    (tmp_path / "late.py").write_text(found[1], encoding="utf-8")
    with run(str(tmp_path / "late.py")) as app:
        app.send([line.encode() for line in re.findall(r"`(.*?)`", said[1])])
        assert b"".join(app.output()).decode() == printed[1]
        app.clear()
        app.send([b"now a 1"])
        assert [(letter.code, letter.step) for letter in app.dead_letters] == [("C505", "readings")]


def test_sessions_end_as_printed(tmp_path: Path) -> None:
    program = re.search(r"```python\n# sessions\.py\n(.*?)```", WINDOWS, re.DOTALL)
    said = re.search(r"The lines (`100 ann`.*) come in this order, and then nothing for (\d+) s", WINDOWS)
    printed = re.search(r"```text\n(ann .*?)```", WINDOWS, re.DOTALL)
    assert program and said and printed
    (tmp_path / "sessions.py").write_text(program[1], encoding="utf-8")
    with run(str(tmp_path / "sessions.py")) as app:
        app.send([line.encode() for line in re.findall(r"`(.*?)`", said[1])])
        assert b"".join(app.output()).decode() == printed[1].splitlines(keepends=True)[0]
        app.advance(0)
        app.advance(int(said[2]) - 1)
        assert len(app.output()) == 1
        app.advance(1)
        assert sorted(b"".join(app.output()).decode().splitlines()) == printed[1].splitlines()


def test_the_main_job_shows_findings_as_text_and_counts_dead_letters() -> None:
    letter = Diagnostic.of(
        "R740", what="a message is a dead letter", step="split", reason="C501 ValueError: empty",
        command="wallaroo dead-letters show /tmp/gone 1-1-0",
    )  # fmt: skip
    other = Diagnostic.of("R613", sink="out", address="h:1", reason="Connection refused", fix="start it")
    lines = [json.dumps([each.to_json()]) for each in (letter, other)]
    assert [*findings("\n".join(["of Java", *lines]))] == ["of Java\n", f"{other}\n"]


@pytest.mark.slow
def test_the_printed_bytes_are_the_first_framing_vector() -> None:
    found = re.search(r"printf '(\S*)(My solitude[^']*)'", (ROOT / "docs" / "sources.md").read_text(encoding="utf-8"))
    assert found is not None
    shell = subprocess.run(
        ["bash", "-c", f"printf '{found[1]}{found[2]}'"], capture_output=True, timeout=300, check=True
    )
    vectors = json.loads((ROOT / "topology-schema/vectors/framing.json").read_text(encoding="utf-8"))
    first = next(iter(value for value in vectors.values() if isinstance(value, list)))[0]
    assert shell.stdout == b"\x00\x00\x00\x2cMy solitude is cheered by that elegant hope."
    assert shell.stdout.hex() in json.dumps(first)
