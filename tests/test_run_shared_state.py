"""Two pipelines that share a state, with messages that take turns: none is lost, whatever frames they come in."""

from pathlib import Path

import pytest

from support.case import Case
from support.run import Receiver, Run
from support.strangers import MARK, check_sockets
from support.turns import ORDERS, ROUNDS, send_in_turns

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("language", ["go"])  # whose messages are structs, described once per frame
def test_orders_between_quotes_all_get_their_rejection(language: str, tmp_path: Path) -> None:
    app = Case("market_spread_shared").app(language)
    with (
        Receiver() as receiver,
        Run(app, receiver, tmp_path / "c", source="127.0.0.1:0,127.0.0.1:0", **{MARK: str(tmp_path)}) as run,
    ):
        run.ready()
        expected = send_in_turns(run)
        run.wait_for("messages_in", ROUNDS * (1 + ORDERS))
        run.wait_while_alive(
            lambda: len(receiver.lines()) + run.last("dead_letters") >= len(expected),
            lambda: f"{len(expected)} rejections, have {len(receiver.lines())}",
        )
        check_sockets(str(tmp_path), sources=2)
        assert run.stop() == 0, run.said()
        assert run.last("dead_letters") == 0
        assert [int(line.split()[1]) for line in receiver.lines()] == expected
