"""Applications on the cluster of hosts: market spread, windows, connectors, and sources that a worker cuts or makes."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import window
from support.case import Case, payloads
from support.run import Receiver, Run, finish, framed
from support.standalone import Deployment, read_nothing_from_files

pytestmark = [pytest.mark.jvm, pytest.mark.cluster]
LONG_S = 600.0


@pytest.mark.long
def test_orders_see_the_quotes_that_arrived_before_them(deployment: Deployment, archives: Callable[..., Path]) -> None:
    """Market spread: two TCP sources at one gateway, so that there is one order."""
    archive = archives("market", Case("market_spread").app("python"), inputs="127.0.0.1:7010,127.0.0.1:7011")
    quotes = [(f"S{i * 7 % 150}", 100 + i % 50, (i * 13 % 6) / 50) for i in range(2000)]
    orders = [(f"S{i * 11 % 160}", i, i % 9 + 1) for i in range(2000)]
    known = {symbol: (bid, bid + spread) for symbol, bid, spread in quotes}
    expected = []
    for symbol, number, quantity in orders:
        bid, offer = known.get(symbol, (0.0, 0.0))
        if symbol not in known or offer - bid > 0.05:
            expected.append(f"{symbol} {number} {quantity} {bid:.2f} {offer:.2f}")
    assert 500 < len(expected) < 1500
    with (
        Receiver(deployment.cluster.scene.listen()) as receiver,
        deployment.run(archive, receiver, sources=2) as run,
    ):
        run.ready()
        texts = (
            [f"{symbol} {bid:.2f} {bid + spread:.2f}" for symbol, bid, spread in quotes],
            [" ".join(map(str, order)) for order in orders],
        )
        for source, lines in enumerate(texts):
            with run.connect(source) as connection:
                connection.sendall(framed(line.encode() for line in lines))
                finish(connection)
        receiver.wait_for_lines(len(expected), run)
        run.wait_for("messages_processed", 4000)
        assert run.last("dead_letters") == 0
        read_nothing_from_files(run)
        assert run.stop() == 0, run.said()
        arranged = Case("market_spread").arranged
        assert arranged(receiver.lines()) == arranged(expected)


def test_windows_equal_the_reference(deployment: Deployment, archives: Callable[..., Path], tmp_path: Path) -> None:
    """Windows of 9 s every 3 s by the time in the data and by that of arrival, windows that wait, and counts."""
    count = len(window.WINDOWS)
    archive = archives("windows", window.APPS["python"], inputs=",".join(f"127.0.0.1:{7010 + n}" for n in range(count)))
    kept = window.Kept(deployment.gateway.directory / "journal", tmp_path / "kept")
    with (
        Receiver(deployment.cluster.scene.listen()) as receiver,
        deployment.run(archive, receiver, sources=count) as run,
    ):
        run.ready()
        data = framed(window.texts(20_000, 7))
        for source in range(count):
            with run.connect(source) as connection:
                connection.sendall(data)
                finish(connection)
        run.wait_while_alive(lambda: kept.silence() >= window.SILENCE_MS, lambda: "ticks", LONG_S)
        expected = window.Expected(kept, window.ports(Path(deployment.checkpoint.removeprefix("file://"))))
        assert not expected.open, "windows are open"
        lines = sum(map(len, expected.lines.values()))
        assert lines > 1000
        receiver.wait_for_lines(lines, run)
        read_nothing_from_files(run)
        assert run.stop() == 0, run.said()
        assert window.by_key(receiver.lines()) == expected.lines


@pytest.mark.long
def test_connector_sends_to_a_gateway_elsewhere(deployment: Deployment, archives: Callable[..., Path]) -> None:
    """The connector is on a machine of its own, too."""
    case = Case("celsius_connectors")
    archive = archives("celsius", case.app("python"))
    sender = deployment.scene.add(f"{deployment.name}-connector")
    expected = case.expected("python")
    with Receiver(deployment.scene.listen()) as receiver, deployment.run(archive, receiver) as run:
        ((host, port),) = run.ready().addresses()
        done = sender.run(
            sys.executable, case.folder / "feed.py", "--application-module", case.app("python"), "--connector",
            "celsius", "--celsius-file", case.folder / "input.txt", "--celsius-host", host, "--celsius-port", port,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        run.wait_while_alive(lambda: len(payloads(receiver.data())) >= len(expected), lambda: f"{len(expected)} frames")
        read_nothing_from_files(run)
        assert run.stop() == 0, run.said()
        assert case.arranged(payloads(receiver.data())) == case.arranged(expected)


def test_generator_beside_the_driver(deployment: Deployment, archives: Callable[..., Path]) -> None:
    """Without services the gateway is on the driver's host, and no executor's worker within its reach."""
    case = Case("alerts_stateful")
    host, archive = deployment.driver(archives("alerts-python", case.app("python"), inputs=""))
    expected = case.expected("python")
    with (
        Receiver(deployment.scene.listen()) as receiver,
        Run(
            archive, receiver, deployment.cluster.shared / f"{deployment.name}-alone", *deployment.settings(host),
            source="", prefix=host.entry, **host.environment(),
        ) as run,
    ):  # fmt: skip
        run.ready()
        receiver.wait_for_lines(len(expected), run)
        assert run.stop() == 0, run.said()
        assert case.arranged(receiver.lines()) == case.arranged(expected)
