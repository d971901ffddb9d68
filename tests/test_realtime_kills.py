"""Two levels of state in two languages in Spark's real-time mode, while workers, driver and Java are killed."""

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.case import Case
from support.orders import ORDERS, RANKS, by_share, expected
from support.realtime import Sender, kill_driver, processes_of_worker
from support.run import MODES, Receiver, Run

pytestmark = [pytest.mark.jvm, pytest.mark.long]
LIVES, KILLS = 2, 3


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def kill_some(run: Run, receiver: Receiver, source: random.Random) -> None:
    """Kill processes of the workers at drawn moments; then driver and Java. The egress lives: it would send again."""
    for _ in range(KILLS):
        known = len(receiver.lines())
        run.wait_while_alive(lambda known=known: len(receiver.lines()) > known + 200, lambda: "200 results")  # type: ignore[misc]
        time.sleep(source.uniform(0, 1.5))
        workers = sorted(processes_of_worker(run))
        for pid in source.sample(workers, min(len(workers), source.choice((1, 1, 2)))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    time.sleep(source.uniform(0, 1.5))
    kill_driver(run)
    assert run.end(120) != 0


@pytest.mark.parametrize("seed", [3])
def test_two_levels_of_state_stay_exact(seed: int, receiver: Receiver, tmp_path: Path) -> None:
    app, checkpoint, source = tmp_path / "ranks.py", tmp_path / "c", random.Random(seed)
    app.write_text(RANKS, encoding="utf-8")
    shutil.copytree(Case("mixed_language").folder / "book", tmp_path / "book")
    sender: Sender | None = None
    for _ in range(LIVES):
        with Run(app, receiver, checkpoint, *MODES["realtime"]) as run:
            run.ready()
            sender = sender or Sender(run, rate=300, seed=seed, words=ORDERS)
            kill_some(run, receiver, source)
    assert sender is not None
    with Run(app, receiver, checkpoint, *MODES["realtime"]) as run:
        run.ready()
        sent = sender.end()
        run.wait_for("messages_processed", sent.total())
        wanted = expected(sender.order)
        run.wait_while_alive(lambda: by_share(receiver.lines()) == wanted, lambda: "all lines")
        assert run.stop() == 0, run.said()
        assert run.last("dead_letters") == 0
    assert by_share(receiver.lines()) == wanted
