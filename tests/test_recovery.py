"""Workers killed while a call is in flight: every message counts once."""

import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from support.run import TESTS, Receiver, Run, framed, wait_until

pytestmark = pytest.mark.jvm
FOLDER = TESTS / "recovery"
KILLS = 7
ADDRESSES = ("--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")


def app(language: str) -> Path:
    return FOLDER / "app.py" if language == "python" else FOLDER


def begun(folder: Path, name: str, run: Run) -> tuple[int, int]:
    """Wait until a computation is inside the call; returns the ids of its process and of the parent."""
    file = folder / f"{name}.begun"
    run.wait_while_alive(file.exists, lambda: f"{name} to be in flight")
    pid, parent = map(int, file.read_text(encoding="ascii").split())
    assert Path(f"/proc/{pid}").exists()
    assert not (folder / f"{name}.go").exists(), "the call would not be in flight"
    return pid, parent


def unanswered(run: Run) -> int:
    """Count the worker's processes that left a call unanswered, as the supervisor has recorded it."""
    logs = (run.checkpoint / "logs").glob("worker-*.log*")
    return sum(log.read_bytes().count(b" of the worker left a call unanswered]") for log in logs)


def go(folder: Path, name: str) -> None:
    (folder / f"{name}.go").touch()


def assert_exact(lines: list[str], expected: Counter[str]) -> None:
    """Assert that each word's counts are 1, 2, 3, ... and each sum goes on where the one before it ended."""
    counts: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    for line in lines:
        word, count, before, after = line.split(" ")
        counts[word] += 1
        assert int(count) == counts[word], line
        assert int(before) == sums[word], f"{line}: state that was never told of; expected {sums[word]}"
        sums[word] = int(after)
    assert counts == expected


@pytest.mark.long
@pytest.mark.parametrize("language", ["python", "go"])
def test_worker_killed_while_a_call_is_in_flight(language: str, tmp_path: Path) -> None:
    rng = random.Random(5)
    expected: Counter[str] = Counter()
    killed, recorded = set(), 0
    options = ("--folder", tmp_path)
    with Receiver() as receiver, Run(app(language), receiver, tmp_path / "checkpoint", *options) as run:
        run.ready()
        for number in range(KILLS):
            name, before = f"{'stage' if number % 2 else 'hold'}-{number}", unanswered(run)
            texts = [" ".join(rng.choices("abcdefghij", k=5)) for _ in range(300)]
            texts.insert(150, f"{name} a")
            expected.update(word for text in texts for word in text.split(" "))
            run.send(framed(text.encode() for text in texts))
            pid, parent = begun(tmp_path, name, run)
            # A process's parent, a worker or a supervisor, must be survived, too; a dead supervisor records nothing.
            victim = parent if language == "python" and number >= KILLS - 2 else pid
            os.kill(victim, signal.SIGKILL)
            wait_until(lambda pid=pid: not alive(pid), lambda pid=pid: f"the end of {pid}")  # type: ignore[misc]
            killed.add(victim)
            go(tmp_path, name)
            receiver.wait_for_lines(expected.total(), run)
            assert unanswered(run) > before or victim == parent, "no task waited for the process that was killed"
            recorded += victim == pid
        assert len(killed) == KILLS
        assert recorded >= 5
        notes = [str(report.get("note")) for report in run.reports]
        assert any(each.startswith('worker "main", process ') and "it was ended by SIGKILL" in each for each in notes)
        assert_exact(receiver.lines(), expected)
        assert run.last("dead_letters") == 0
        assert run.stop() == 0, run.said()


def alive(pid: int) -> bool:
    """Say whether a process still runs; one that waits to be reaped does not."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
