"""Pipelines that share a state keep the order of arrival, across sources; several state steps follow each other."""

import random
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.peer import gateway as gateway_of
from support.spark_topology import options_in
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.program.app import resolve
from wallaroo_runtime.program.emit import emit
from wallaroo_runtime.service.driver import announce
from wallaroo_runtime.spark.query import start_query
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

MESSAGES = 2000
RUNS = 10
SYMBOLS = [f"{letter}{number:03d}" for letter in "ABCDE" for number in range(40)]
Message = tuple[str, int, int]


@pytest.fixture(scope="module")
def topology() -> Topology:
    """Return the application's topology."""
    app = Path(__file__).with_name("market") / "app.py"
    return load_document(emit(resolve(str(app)), ["--out", "127.0.0.1:1"]))


def drawn(seed: int) -> tuple[list[Message], list[Message]]:
    """Return market messages and orders."""
    source = random.Random(seed)
    market = [(source.choice(SYMBOLS), low := source.randrange(100), low + 30) for _ in range(MESSAGES)]
    orders = [(source.choice(SYMBOLS), number, source.randrange(130)) for number in range(MESSAGES)]
    return market, orders


def rejected(market: list[Message], orders: list[Message]) -> dict[str, list[str]]:
    """Compute one message after the other what is rejected, by the first letter of the symbol."""
    spreads = {symbol: (bid, offer) for symbol, bid, offer in market}
    found: dict[str, list[str]] = {}
    for symbol, number, price in orders:
        bid, offer = spreads.get(symbol, (0, 0))
        if not bid <= price <= offer:
            lines = found.setdefault(symbol[0], [])
            lines.append(f"{symbol} {number} {len(lines) + 1}")
    return found


def send(address: str, messages: list[Message]) -> None:
    """Send messages and wait until the gateway has acknowledged them."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        packed = (struct.pack(">4sII", symbol.encode(), *numbers) for symbol, *numbers in messages)
        connection.sendall(b"".join(struct.pack(">I", len(data)) + data for data in packed))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""


@pytest.mark.jvm
@pytest.mark.long
def test_orders_see_every_update_that_arrived_before_them(
    spark: Any,
    topology: Topology,
    tmp_path: Path,
    wait_until: Callable[..., None],
    published: Callable[[Path, int], list[str]],
) -> None:
    plan = compile_topology(topology, shuffle_partitions=2)
    assert len(plan.levels) == 3
    for run in range(RUNS):
        checkpoint = tmp_path / str(run)
        (checkpoint / "logs").mkdir(parents=True)
        JournalWriter(checkpoint / "journal").close()
        announce(checkpoint)
        gateway = gateway_of(checkpoint, topology, plan)
        query = None
        try:
            (_, orders_at), (_, market_at) = gateway.addresses()
            query = start_query(spark, plan, topology, options_in(checkpoint))
            market, orders = drawn(run)
            send(market_at, market)
            send(orders_at, orders)
            wait_until(lambda query=query: query.progress().messages_in == 2 * MESSAGES, "all messages", 300.0)
        finally:
            if query is not None:
                query.stop()
            gateway.stop()
        found: dict[str, list[str]] = {}
        for line in published(checkpoint, plan.ports["0/sinks/0"]):
            found.setdefault(line[0], []).append(line)
        assert found == rejected(market, orders), f"run {run}"
