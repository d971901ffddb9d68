"""Ctrl-C and SIGTERM at drawn moments of a start: it ends soon and quietly, and the next run is right."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from support.run import CASES, WALLAROO, Receiver, Run, framed, wait_until

CASE = CASES / "word_count"
APPS = (CASE / "app.py", CASE)
SIGNALS = (signal.SIGINT, signal.SIGTERM)
START_S = 12.0  # of a machine with much other work
END_S = 60.0
NOTE = "stopped before it was ready"
# By the signal, before the command has its own handlers; 130 while it reads its arguments.
EARLY = {-signal.SIGINT, -signal.SIGTERM, 130}


def interrupted(app: Path, checkpoint: Path, delay_s: float, number: int) -> None:
    """Start, signal all processes of the terminal after a while, and check how it ended."""
    with Receiver() as receiver:
        arguments = ["run", app, "--in", "127.0.0.1:0", "--out", receiver.address, "--checkpoint", checkpoint]
        with subprocess.Popen(
            [WALLAROO, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            time.sleep(delay_s)
            os.killpg(process.pid, number)
            try:
                said = process.communicate(timeout=END_S)[0]
            finally:
                process.kill()
    assert "Traceback" not in said, said
    assert "fix:" not in said, said
    if process.returncode not in EARLY:
        assert process.returncode == 0, said
        assert said.splitlines()[-1].startswith((NOTE, "stopped:")), said
    wait_until(lambda: not left(checkpoint), lambda: f"the end of {left(checkpoint)}", END_S)


def left(checkpoint: Path) -> str:
    """Return the processes that name a checkpoint."""
    found = subprocess.run(["pgrep", "-fa", str(checkpoint)], capture_output=True, text=True, check=False)
    return found.stdout


def run_once(app: Path, checkpoint: Path) -> None:
    """Count words over a checkpoint."""
    words = ["a", "b", "a"]
    with Receiver() as receiver, Run(app, receiver, checkpoint) as run:
        run.ready().send(framed(word.encode() for word in words))
        lines = receiver.wait_for_lines(len(words), run)
    totals: Counter[str] = Counter()
    for line in lines:
        word, _, total = line.partition(" => ")
        totals[word] += 1
        assert int(total) == totals[word]
    assert totals == Counter(words)


@pytest.mark.jvm
def test_interrupted_while_spark_starts(tmp_path: Path) -> None:
    interrupted(APPS[0], tmp_path / "checkpoint", 3.0, signal.SIGINT)


@pytest.mark.jvm
@pytest.mark.long
@pytest.mark.parametrize("app", APPS, ids=["python", "go"])
def test_interrupted_at_drawn_moments(app: Path, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    source = random.Random(seed)
    for _ in range(10):
        interrupted(app, tmp_path / "checkpoint", source.uniform(0.0, START_S), source.choice(SIGNALS))
    run_once(app, tmp_path / "checkpoint")
