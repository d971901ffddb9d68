"""Two levels of state in two languages in Spark's real-time mode, while workers, driver and Java are killed."""

import contextlib
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.case import Case
from support.run import MODES, Receiver, Run
from test_realtime_run import Sender, process_of_java, processes_of_worker

pytestmark = [pytest.mark.jvm, pytest.mark.long]
PRICES = {"AAPL": 150, "GOOG": 120, "MSFT": 300}
ORDERS = [f"{share} a{account}" for share in PRICES for account in range(20)]
LIVES, KILLS = 2, 3

# An account's number of orders is the amount of its next one, so that a share's position depends on every message
# before, in its order. Between the two states, messages go to the program in Go and back.
RANKS = """
import wallaroo

def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    book = wallaroo.other_program("book", "book")
    orders = wallaroo.source("Orders", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    ranked = orders.key_by(account).to(rank)
    priced = ranked.to(book.computation("price", input="json", output="json"))
    held = priced.key_by(symbol).to(book.state_computation("position", input="json", output="json"))
    lines = held.to(line).to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return wallaroo.build_application("Ranks", lines)

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode("utf-8").split(" ")

@wallaroo.key_extractor
def account(order):
    return order[1]

class Rank:
    def __init__(self):
        self.orders = 0

@wallaroo.state_computation("rank", state=Rank)
def rank(order, held):
    held.orders += 1
    return {"symbol": order[0], "amount": held.orders}

@wallaroo.key_extractor
def symbol(priced):
    return priced["symbol"]

@wallaroo.computation("line")
def line(position):
    return "{symbol} {amount} {value}\\n".format(**position)

@wallaroo.encoder
def encode(text):
    return text.encode()
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def expected(orders: list[str]) -> dict[str, list[str]]:
    """Return the lines of each share, in order."""
    ranks: Counter[str] = Counter()
    held: Counter[str] = Counter()
    found: dict[str, list[str]] = {share: [] for share in PRICES}
    for order in orders:
        share, account = order.split(" ")
        ranks[account] += 1
        held[share] += ranks[account]
        found[share].append(f"{share} {held[share]} {held[share] * PRICES[share]}")
    return found


def by_share(lines: list[str]) -> dict[str, list[str]]:
    """Return the lines of each share, in order."""
    return {share: [line for line in lines if line.startswith(f"{share} ")] for share in PRICES}


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
    java = process_of_java(run)
    os.kill(run.process.pid, signal.SIGKILL)
    os.kill(java, signal.SIGKILL)
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
        run.wait_while_alive(lambda: by_share(receiver.lines()) == wanted, lambda: "all lines", 30)
        assert run.stop() == 0, run.said()
        assert run.last("dead_letters") == 0
    assert by_share(receiver.lines()) == wanted
