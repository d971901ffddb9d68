"""Real-time mode goes on with a changed program: each result leaves once, also when the one before was killed."""

import random
import re
import shutil
from pathlib import Path

import pytest

from support.case import Case
from support.orders import ORDERS, RANKS, by_share, expected
from support.realtime import kill_driver
from support.run import MODES, Receiver, Run, finish, framed

pytestmark = [pytest.mark.jvm, pytest.mark.long]
SECOND = """
    orders2 = wallaroo.source("Orders 2", wallaroo.TCPSourceConfig(in_host, "0", decode))
    priced2 = orders2.key_by(account).to(rank2).to(book.computation("price", input="json", output="json"))
    lines2 = priced2.to(line).to_sink(wallaroo.TCPSinkConfig("127.0.0.1", PORT, encode))
    return wallaroo.build_application("Ranks", lines, lines2)
"""
# Stages that receive from other workers have other numbers of origins with it: what has left would leave again.
WITH_SECOND = re.sub(r"\n    return wallaroo.build_application.*\n", SECOND, RANKS, count=1) + (
    RANKS[RANKS.index('@wallaroo.state_computation("rank"') : RANKS.index("@wallaroo.key_extractor\ndef symbol")]
    .replace('"rank"', '"rank2"')
    .replace("def rank(", "def rank2(")
)


# Other code and a visitor: all that was there gives its results in the same places.
VISITOR = """
@rank.visitor("reset")
def reset(metadata, key, held):
    held.orders = 0
"""


def send(run: Run, orders: list[str]) -> None:
    with run.connect() as connection:
        connection.sendall(framed(order.encode() for order in orders))
        finish(connection)


def kill(run: Run) -> None:
    kill_driver(run)
    assert run.end(120) != 0


@pytest.mark.parametrize("seed", [7])
def test_a_changed_program_repeats_nothing_that_has_left(seed: int, tmp_path: Path) -> None:
    source, orders, checkpoint = random.Random(seed), list[str](), tmp_path / "c"
    # All have one name: a state's class is of its module, and a program with another name could not read the states.
    app, changed, other = (tmp_path / name / "ranks.py" for name in ("first", "changed", "other"))
    for program in (app, changed, other):
        shutil.copytree(Case("mixed_language").folder / "book", program.parent / "book")
    second = Receiver()  # a receiver takes one connection at a time
    with_second = WITH_SECOND.replace("PORT", second.address.rpartition(":")[2])
    app.write_text(RANKS, encoding="utf-8")
    changed.write_text(with_second, encoding="utf-8")
    coded = with_second.replace("held.orders += 1", "held.orders = held.orders + 1") + VISITOR
    other.write_text(coded, encoding="utf-8")

    def more(run: Run) -> None:
        new = source.choices(ORDERS, k=source.randint(1, 400))
        orders.extend(new)
        send(run, new)
        wanted = expected(orders)
        run.wait_while_alive(lambda: by_share(receiver.lines()) == wanted, lambda: f"{len(orders)} lines", 60)

    with Receiver() as receiver, second:
        with Run(app, receiver, checkpoint, *MODES["realtime"]) as run:
            run.ready()
            more(run)
            kill(run)
        with Run(changed, receiver, checkpoint, *MODES["realtime"]) as run:
            assert run.end(60) == 1
            assert "R790" in run.said()
        with Run(app, receiver, checkpoint, *MODES["realtime"], "--stop-when-idle", "3") as run:
            assert run.end(120) == 0, run.said()
        with Run(changed, receiver, checkpoint, *MODES["realtime"]) as run:
            run.ready()
            more(run)
            kill(run)
        with Run(other, receiver, checkpoint, *MODES["realtime"], "--accept-changed") as run:
            run.ready()
            more(run)
            assert run.stop() == 0
        assert by_share(receiver.lines()) == expected(orders)
        assert len(receiver.lines()) == len(orders)
        assert second.data() == b""
