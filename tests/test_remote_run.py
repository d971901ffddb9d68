"""Runs whose gateway and egress are processes of their own, in directories that driver and tasks do not see.

The driver runs in a mount namespace in which an empty file system covers those directories.
"""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.case import Case
from support.remote import Service, Site, counted, kill, running, token_setting
from support.run import Receiver, Run, finish, framed, wallaroo

pytestmark = [pytest.mark.jvm, pytest.mark.slow]
CASE = Case("word_count")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Give one gateway and an egress."""
    with running(Site(tmp_path, "")) as made:
        yield made


@pytest.mark.long
@pytest.mark.parametrize("language", ["python", "go"])
def test_a_driver_killed_and_started_elsewhere_goes_on(site: Site, language: str) -> None:
    app = CASE.app(language)
    texts = [f"message number{i % 7} of{i % 1000} many" for i in range(20_000)]
    parts = [texts[at : at + 5000] for at in range(0, len(texts), 5000)]
    with Receiver() as receiver:
        with site.run(app, receiver) as first:
            first.send(framed(text.encode() for text in parts[0]))
            receiver.wait_for_lines(4 * 5000, first)
            assert first.last("bytes_by_file") == 0
            first.send(framed(text.encode() for text in parts[1]))
            kill(first)
        site.gateways[""].end(signal.SIGKILL)
        site.gateways[""].start()
        with site.run(app, receiver) as second:
            assert f"continuing from file://{site.folder}/checkpoint" in "".join(second.output)
            second.send(framed(text.encode() for text in parts[2]))
            site.egress.end(signal.SIGKILL)
            second.send(framed(text.encode() for text in parts[3]))
            site.egress.start()
            lines = receiver.wait_for_lines(4 * len(texts), second)
            second.wait_for("bytes_by_grpc", 1)
            assert second.last("bytes_by_file") == 0
            assert second.stop() == 0, second.said()
        assert sorted(lines) == sorted(counted(texts))


@pytest.mark.long
def test_another_journal_is_refused(site: Site, tmp_path: Path) -> None:
    app, checkpoint = CASE.app("python"), tmp_path / "checkpoint"
    with Receiver() as receiver, Run(app, receiver, checkpoint, *site.options(), source=site.source) as run:
        # What the checkpoint refers to is recorded before anything of Spark's is started.
        run.wait_while_alive(lambda: recorded(checkpoint), lambda: "the ids of journal and outbox")
        kill(run)
    refused = ("run", app, "--in", site.source, "--out", "127.0.0.1:9", "--master", "local[2]")
    other = Service("gateway", site.hidden / "other", site.token_file).start()
    try:
        for gateway, said in ((other.address, "R643 checkpoint "), ("127.0.0.1:9", "R642 the gateway at 127.0.0.1:9 ")):
            done = wallaroo(
                *refused, "--checkpoint", checkpoint, "--gateway", gateway, "--egress", site.egress.address,
                *token_setting(site.token_file),
            )  # fmt: skip
            assert done.returncode == 1, done.stderr
            assert said in done.stderr
    finally:
        other.end()
    done = wallaroo(*refused, "--checkpoint", checkpoint)
    assert (
        f"R615 checkpoint {checkpoint} does not fit this run: it was begun with remote egress and remote gateway"
        in done.stderr
    )
    done = wallaroo(*refused, "--checkpoint", f"file://{checkpoint}")
    assert "R608 --checkpoint file://" in done.stderr


def recorded(checkpoint: Path) -> bool:
    """Say whether a checkpoint refers to a journal and an outbox."""
    try:
        services = json.loads((checkpoint / "application.json").read_bytes())["services"]
    except FileNotFoundError:
        return False
    return all(services.values())


QUOTES, ORDERS = "Market Data", "Orders"
SYMBOLS = [f"S{number}" for number in range(40)]


class Market:
    """Sends quotes and orders of the market spread, each to its own gateway, and knows which orders come back.

    Args:
        run: Of the application.
        receiver: Of its sink.
    """

    def __init__(self, run: Run, receiver: Receiver) -> None:
        self._run, self._receiver = run, receiver
        self._bids: dict[str, int] = {}
        self.sent = self.orders = 0
        self.expected: list[str] = []

    def send(self, source: int, payloads: list[bytes]) -> None:
        """Send messages to one source; it has them safe when this returns."""
        self.sent += len(payloads)
        with self._run.connect(source) as connection:
            connection.sendall(framed(payloads))
            finish(connection)

    def quote(self, symbols: list[str], bid: int) -> None:
        """Send a quote for each symbol; those of every other one have a spread that rejects orders."""
        self._bids |= dict.fromkeys(symbols, bid)
        offers = {symbol: bid + (1 if self._rejects(symbol) else 0) for symbol in symbols}
        self.send(0, [f"{symbol} {bid}.00 {offer}.00".encode() for symbol, offer in offers.items()])

    def _rejects(self, symbol: str) -> bool:
        return (int(symbol[1:]) + self._bids[symbol]) % 2 == 0

    def order(self, symbols: list[str], count: int) -> None:
        """Send orders; nothing that they depend on may be under way."""
        numbers = range(self.orders, self.orders + count)
        self.orders += count
        orders = [(symbols[number % len(symbols)], number) for number in numbers]
        self.expected += [
            f"{symbol} {number} 5 {self._bids[symbol]}.00 {self._bids[symbol] + 1}.00"
            for symbol, number in orders
            if self._rejects(symbol)
        ]
        self.send(1, [f"{symbol} {number} 5".encode() for symbol, number in orders])

    def settle(self) -> None:
        """Wait until all that was sent is processed: gateways say nothing of the order between them."""
        self._run.wait_for("messages_processed", self.sent)
        self._receiver.wait_for_lines(len(self.expected), self._run)


def letters_of(site: Site) -> list[dict[str, object]]:
    """Return what `wallaroo dead-letters ls` lists in the directory of the egress."""
    done = wallaroo("dead-letters", "ls", site.egress.directory, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def replay_at_egress(site: Site, run: Run) -> None:
    """Send the one dead letter to its source again, from the directory of the egress: the checkpoint has none."""
    (letter,) = letters_of(site)
    assert (letter["code"], letter["step"], letter["replayed"]) == ("C505", ORDERS, False)
    for checkpoint in (site.folder / "checkpoint", f"file://{site.folder}/checkpoint"):
        done = wallaroo("dead-letters", "ls", checkpoint)
        assert done.returncode == 2
        assert f"R652 the dead letters of checkpoint {checkpoint} are at its remote egress\n" in done.stderr
        assert "give the DIR of `wallaroo egress --outbox DIR`" in done.stderr
    replay = ("dead-letters", "replay", site.egress.directory, "--all")
    done = wallaroo(*replay)
    assert f'no connection to source "{ORDERS}"; its egress does not know where; give --to' in done.stderr
    host, port = run.addresses()[1]
    done = wallaroo(*replay, "--to", f"{host}:{port}")
    assert (done.returncode, done.stdout) == (0, "1 replayed\n")


@pytest.mark.long
def test_a_gateway_for_each_source(tmp_path: Path) -> None:
    app = Case("market_spread").app("python")
    with running(Site(tmp_path, QUOTES, ORDERS)) as site, Receiver() as receiver:
        with site.run(app, receiver) as run:
            market = Market(run, receiver)
            market.quote(SYMBOLS, 1)
            market.settle()
            market.order(SYMBOLS, 5_000)
            market.send(1, [b"not an order"])
            market.settle()
            # Acknowledged, and perhaps not read yet; the other gateway takes messages meanwhile.
            market.order(SYMBOLS, 5_000)
            site.gateways[ORDERS].end(signal.SIGKILL)
            market.quote([f"T{number}" for number in range(40)], 2)
            site.gateways[ORDERS].start()
            market.settle()
            market.order([f"T{number}" for number in range(40)], 1_000)
            market.quote(SYMBOLS, 4)
            market.settle()
            market.order(SYMBOLS, 1_000)
            market.settle()
            replay_at_egress(site, run)
            market.sent += 1
            market.settle()
            assert run.last("bytes_by_file") == 0
            assert run.stop() == 0, run.said()
        by_symbol = Case("market_spread").arranged
        assert by_symbol(receiver.lines()) == by_symbol(market.expected)
        assert [letter["replayed"] for letter in letters_of(site)] == [True, False]
        stores = [json.loads((gateway.directory / "gateway.json").read_bytes()) for gateway in site.gateways.values()]
        assert [[source["name"] for source in store["sources"]] for store in stores] == [[QUOTES], [ORDERS]]
