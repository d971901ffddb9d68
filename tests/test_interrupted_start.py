"""Ctrl-C and SIGTERM at drawn moments of a start: it ends soon and quietly, not as a success; the next run is right."""

import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from support.run import CASES, WALLAROO, Receiver, Run, framed, wait_until, wallaroo

CASE = CASES / "word_count"
APPS = (CASE / "app.py", CASE)
SIGNALS = (signal.SIGINT, signal.SIGTERM)
START_S = 12.0  # of a machine with much other work
END_S = 60.0
NOTE = "stopped before it was ready"
# By the signal, before the command has its own handlers; 130 and 143 while it reads its arguments. `submit` passes them
# on.
EARLY = {-signal.SIGINT, -signal.SIGTERM, 130, 143}
# A setup that a user breaks off: no Spark has begun.
ENDLESS = """
import time
from pathlib import Path

def application_setup(args):
    Path(__file__).with_name("began").touch()
    time.sleep(600)
"""


def interrupted(app: Path, checkpoint: Path, delay_s: float, number: int, verb: str = "run") -> None:
    """Start, signal all processes of the terminal after a while, and check how it ended."""
    with Receiver() as receiver:
        arguments = [verb, app, "--in", "127.0.0.1:0", "--out", receiver.address, "--checkpoint", checkpoint]
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
        is_broken_off = said.splitlines()[-1] == NOTE
        assert is_broken_off or "\nstopped:" in said, said
        assert process.returncode == (128 + number if is_broken_off else 0), said
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "number"),
    [
        ((), signal.SIGINT),
        (("--watch",), signal.SIGTERM),
        (("--engine", "memory"), signal.SIGINT),
        (("--json",), signal.SIGTERM),
    ],
)
def test_a_start_that_was_broken_off_is_no_success(options: tuple[str, ...], number: int, tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text(ENDLESS)
    with subprocess.Popen(
        [WALLAROO, "run", app, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        wait_until((tmp_path / "began").exists, lambda: "the setup")
        process.send_signal(number)
        said = process.communicate(timeout=END_S)[0]
    assert process.returncode == 128 + number, said
    assert NOTE in said.splitlines()[-1], said
    assert "Traceback" not in said, said


@pytest.mark.jvm
@pytest.mark.parametrize("verb", ["run", pytest.param("submit", marks=pytest.mark.long)])
def test_interrupted_while_spark_starts(verb: str, tmp_path: Path) -> None:
    app = APPS[0]
    if verb == "submit":
        app = tmp_path / "word_count.json"
        addresses = ["--in", "127.0.0.1:0", "--out", "127.0.0.1:9"]
        app.write_text(wallaroo("emit", APPS[0], *addresses).stdout)
    interrupted(app, tmp_path / "checkpoint", 3.0, signal.SIGINT, verb)


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
