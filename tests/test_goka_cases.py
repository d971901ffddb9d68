"""Case folders of groups on Spark: the same as in memory, against a broker that the command starts and ends."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.run import WALLAROO, wait_until
from wallaroo import KafkaRecord
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.cli.record_line import record_line

pytestmark = pytest.mark.kafka
PROGRAM = Path(__file__).parent / "support" / "goka_case"
KEYS = ["Ann", "Bob", "", "two words", "Cid"]
SETTINGS = """
order = "key"
dead_letters = 1
idle = 1
topics = ["balances-table", "receipts", "balances-loop"]
[[input]]
file = "input.txt"
kind = "records"
"""


def deposits(draw: random.Random, count: int) -> Iterator[str]:
    """Yield deposits to drawn accounts."""
    for _ in range(count):
        amount = str(draw.randint(-9, 30))
        yield record_line(KafkaRecord("deposits", draw.choice(KEYS).encode(), amount.encode()))


def drawn(seed: int) -> Iterator[str]:
    """Yield the lines of an input: tables with the first deposits, a visit, more deposits of which one is none."""
    draw = random.Random(seed)
    for key in draw.sample(KEYS, 3):
        yield record_line(KafkaRecord("names", key.encode(), f"name {draw.randint(0, 9)}".encode()))
        yield record_line(KafkaRecord("factors", key.encode(), str(draw.randint(2, 4)).encode()))
    yield from deposits(draw, 200)
    yield f"visit forget {draw.randint(200, 2000)}"
    yield from deposits(draw, 200)
    yield "deposits Bob nothing"


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """Return a folder with a case of a group in Python and Go; what is expected is what came in memory."""
    folder = tmp_path / "cases" / "balances"
    shutil.copytree(PROGRAM, folder)
    (folder / "case.toml").write_text(SETTINGS)
    seed = int(time.time())
    (folder / "input.txt").write_text("".join(f"{line}\n" for line in drawn(seed)))
    print(f"seed {seed}")
    assert main(["test", str(folder), "--write"]) == 0
    return folder


def misspelt(folder: Path) -> None:
    """Make a case of the group in Python whose input names a topic nearly."""
    folder.mkdir()
    shutil.copy(PROGRAM / "app.py", folder)
    (folder / "case.toml").write_text(SETTINGS)
    (folder / "input.txt").write_text("deposit Ann 1\n")
    (folder / "expected.txt").write_text("")


def test_a_case_is_the_same_on_both_engines(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    misspelt(case.parent / "misspelt")
    lines = (case / "expected.txt").read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("receipts"))
    other = [*lines[:at], f"{lines[at]}!", *lines[at + 1 :]]
    (case / "expected.go.txt").write_text("".join(f"{line}\n" for line in other))
    capsys.readouterr()
    assert main(["test", str(case.parent), "--engine", "spark"]) == 1
    said = capsys.readouterr()
    shown = said.out.splitlines()
    begin = shown.index(f"FAIL  {case} (go)")
    assert [line for line in shown[begin:] if line[:3] in ("  -", "  +")] == [
        *("  --- expected.go.txt", "  +++ came"),
        *(f"  -{lines[at]}!", f"  +{lines[at]}"),
    ], said
    assert f"ok    {case} (python): lines {len(lines)}, dead letters 1" in shown, said
    end = shown.index(f"FAIL  {case.parent}/misspelt")
    assert shown[end + 1].startswith('  R784 the application has no topic "deposit"; it has "balances-loop", ')
    assert shown[end + 2] == '    fix: did you mean "deposits"?'
    assert shown[-1] == "2 of 3 failed"


def children(folder: Path) -> list[str]:
    """Return the processes that are left of a command: all have its folder for temporary files."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"TMPDIR={folder}".encode() in (entry / "environ").read_bytes():
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has ended, or is another user's
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_signal_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    shutil.copy(PROGRAM / "app.py", tmp_path)
    (tmp_path / "case.toml").write_text(SETTINGS)
    (tmp_path / "input.txt").write_text("deposits Ann 1\n")
    (tmp_path / "expected.txt").write_text("")
    folder = tmp_path / "temporary"
    folder.mkdir()
    command = [WALLAROO, "test", tmp_path, "--engine", "spark"]
    with (tmp_path / "output").open("wb") as output:
        child = subprocess.Popen(
            command, env={**os.environ, "TMPDIR": str(folder)}, stdout=output, stderr=output, start_new_session=True
        )
    try:
        # The broker runs, and the run is starting.
        wait_until(
            lambda: (
                child.poll() is not None or any("wallaroo_runtime.cli.driver run" in each for each in children(folder))
            ),
            lambda: (tmp_path / "output").read_text(),
            120,
        )
        (os.killpg if number == signal.SIGINT else os.kill)(child.pid, number)  # Ctrl-C is for all of a terminal
        assert child.wait(120) == 128 + number, (tmp_path / "output").read_text()
    finally:
        child.kill()
    wait_until(lambda: not children(folder), lambda: f"{children(folder)} to end", 120)
    assert [path.name for path in folder.iterdir() if path.name.startswith("wallaroo-test")] == []
