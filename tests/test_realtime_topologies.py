"""Which programs real-time mode runs: each gives on a real Spark what it gives in micro-batches."""

import shutil
from pathlib import Path

import pytest

from poison import APPS, Script, poison
from support.case import Case
from support.dead_letter_app import APP
from support.run import Receiver, Run, framed, wallaroo
from support.shown_case import show
from support.turns import ORDERS, ROUNDS, send_in_turns

pytestmark = [pytest.mark.jvm, pytest.mark.long]
REALTIME = ("--mode", "realtime")
SHOWN = (
    ("alerts_stateless", "python"),  # a generator; no state
    ("alerts_stateful", "go"),  # a generator
    ("alerts_windowed", "python"),  # windows and ticks
    ("alerts_windowed", "go"),
    ("mixed_language", "python"),  # state in the other language, in both directions
    ("mixed_language", "go"),
)


@pytest.mark.parametrize(("name", "language"), SHOWN)
def test_case_gives_the_expected_output(name: str, language: str, tmp_path: Path) -> None:
    show(Case(name), language, tmp_path / "checkpoint", *REALTIME)


@pytest.mark.parametrize("language", list(APPS))
def test_exactly_the_poison_messages_are_dead_letters(language: str, tmp_path: Path) -> None:
    print(poison(language, Script.draw(20_000, 20, seed=17), tmp_path / language, *REALTIME))


def test_pipelines_share_a_state(tmp_path: Path) -> None:
    app = Case("market_spread_shared").app("go")
    with Receiver() as receiver, Run(app, receiver, tmp_path / "c", *REALTIME, source="127.0.0.1:0,127.0.0.1:0") as run:
        run.ready()
        expected = send_in_turns(run)
        run.wait_for("messages_processed", ROUNDS * (1 + ORDERS))
        receiver.wait_for_lines(len(expected), run)
        assert run.stop() == 0, run.said()
        assert run.last("dead_letters") == 0
        assert [int(line.split()[1]) for line in receiver.lines()] == expected


def test_dead_letters_of_a_program_without_state_are_findings(tmp_path: Path) -> None:
    app, checkpoint = tmp_path / "broken.py", tmp_path / "c"
    app.write_text(APP, encoding="utf-8")
    with Receiver() as receiver, Run(app, receiver, checkpoint, *REALTIME, "--stop-when-idle", "3") as run:
        run.ready().send(framed([b"word"] * 19 + [b"\xff"]))
        assert run.end() == 1, run.said()  # it drains, and ends of its own
        said = run.said()
        assert run.last("dead_letters") == 20
    assert said.count('"R740"') == 3, said  # the first and the tenth of a step, the first of a decoder
    assert 'a message is a dead letter at \\"shout\\"; C501 AttributeError' in said
    assert "return text.missing()" in said
    assert "all messages of this run, 20, are dead letters" in said and '"R741"' in said
    listed = wallaroo("dead-letters", "ls", "--group", checkpoint, cwd=tmp_path).stdout.splitlines()
    assert [line.split()[:3] for line in listed[1:]] == [["19", "C501", "shout"], ["1", "C505", "Lines"]]
    with Receiver() as receiver, Run(app, receiver, checkpoint, *REALTIME) as again:
        again.ready().process.terminate()
        assert again.end() == 0, again.said()
        assert (again.last("messages_in"), again.last("dead_letters")) == (20, 20)
        assert set(again.last("run").values()) == {0}


MERGED = """
import wallaroo

def application_setup(args):
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    book = wallaroo.other_program("book", "book.py")
    orders = wallaroo.source("Orders", wallaroo.TCPSourceConfig(in_host, in_port, decode))
    counted, price = orders.key_by(symbol).to(count), book.computation("price", input="json", output="json")
    both = counted.to(same).merge(counted.to(price)).to(mark)
    lines = both.to(price).to(line).to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    return wallaroo.build_application("Merged", lines)

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    symbol, amount = bs.decode("utf-8").split(" ")
    return {"symbol": symbol, "amount": int(amount)}

@wallaroo.key_extractor
def symbol(order):
    return order["symbol"]

class Total:
    def __init__(self):
        self.amount = 0

@wallaroo.state_computation("count", state=Total)
def count(order, total):
    total.amount += order["amount"]
    return {"symbol": order["symbol"], "amount": total.amount}

@wallaroo.computation("same")
def same(total):
    return total

@wallaroo.computation("mark")
def mark(total):
    return {"symbol": total["symbol"], "amount": total["amount"]}

@wallaroo.computation("line")
def line(priced):
    return "{symbol} {value}\\n".format(**priced)

@wallaroo.encoder
def encode(text):
    return text.encode()
"""


def test_what_two_stages_send_to_another_worker_keeps_its_order(tmp_path: Path) -> None:
    """A total comes there from the stage with state, and once more from one after it, by one port: two orders."""
    app, shares, rounds = tmp_path / "merged.py", ("AAPL", "GOOG", "MSFT"), 300
    app.write_text(MERGED, encoding="utf-8")
    shutil.copy(Case("mixed_language").folder / "book.py", tmp_path)
    with Receiver() as receiver, Run(app, receiver, tmp_path / "c", *REALTIME) as run:
        run.ready().send(framed([f"{share} 1".encode() for _ in range(rounds) for share in shares]))
        lines = receiver.wait_for_lines(2 * rounds * len(shares), run)
        assert run.stop() == 0, run.said()
        assert run.last("dead_letters") == 0
    for share, price in zip(shares, (150, 120, 300), strict=True):
        values = [int(line.split()[1]) // price for line in lines if line.startswith(share)]
        assert sorted(values) == sorted([*range(1, rounds + 1)] * 2)
        assert list(dict.fromkeys(values)) == list(range(1, rounds + 1)), "one of the two is not in order"
