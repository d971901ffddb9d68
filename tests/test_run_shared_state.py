"""Two pipelines that share a state, with messages that take turns: none is lost, whatever frames they come in."""

import time
from pathlib import Path

import pytest

from support.case import Case
from support.run import Receiver, Run, finish, framed

pytestmark = pytest.mark.jvm
ROUNDS, ORDERS = 100, 5


def send_in_turns(run: Run) -> list[int]:
    """Send quotes and, between them, orders; returns the orders, all of which are to be rejected."""
    sent = list(range(ROUNDS * ORDERS))
    with run.connect(0) as quotes, run.connect(1) as orders:
        for order in sent:
            if order % ORDERS == 0:
                bid = order % 7 + 1
                quotes.sendall(framed([b"GOOG %d.00 %d.50" % (bid, bid)]))
            orders.sendall(framed([b"GOOG %d 10" % order]))
            time.sleep(0.001)  # so that frames of the journal take turns, too
        finish(quotes)
        finish(orders)
    return sent


@pytest.mark.parametrize("language", ["go"])  # whose messages are structs, described once per frame
def test_orders_between_quotes_all_get_their_rejection(language: str, tmp_path: Path) -> None:
    app = Case("market_spread_shared").app(language)
    with Receiver() as receiver, Run(app, receiver, tmp_path / "c", source="127.0.0.1:0,127.0.0.1:0") as run:
        run.ready()
        expected = send_in_turns(run)
        run.wait_for("messages_in", ROUNDS * (1 + ORDERS))
        run.wait_while_alive(
            lambda: len(receiver.lines()) + run.last("dead_letters") >= len(expected),
            lambda: f"{len(expected)} rejections, have {len(receiver.lines())}",
        )
        assert run.stop() == 0, run.said()
        assert run.last("dead_letters") == 0
        assert [int(line.split()[1]) for line in receiver.lines()] == expected
