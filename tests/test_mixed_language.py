"""An application of two languages whose workers are killed in turn: every order counts once, in both directions."""

import os
import signal
from pathlib import Path

import pytest

from support.case import Case
from support.run import Receiver, Run, framed

pytestmark = [pytest.mark.jvm, pytest.mark.long]
CASE = Case("mixed_language")
ROUNDS = 3
ORDERS = 400


def workers(name: str, mark: Path) -> list[int]:
    """Return the processes of a worker of the run whose environment names `mark`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            variables = (entry / "environ").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:  # it has ended, or is another user's
            continue
        values = dict(variable.partition(b"=")[::2] for variable in variables)
        directory = values.get(b"WALLAROO_WORKER_DIR", b"").decode()
        if values.get(b"MIXED_LANGUAGE_RUN") == str(mark).encode() and Path(directory).name.startswith(f"{name}-"):
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize("language", CASE.languages)
def test_workers_of_both_languages_are_killed(language: str, tmp_path: Path) -> None:
    symbols = {"AAPL": 150, "GOOG": 120, "MSFT": 300}
    held = dict.fromkeys(symbols, 0)
    expected: dict[str, list[str]] = {symbol: [] for symbol in symbols}
    killed: set[int] = set()
    with (
        Receiver() as receiver,
        Run(CASE.app(language), receiver, tmp_path / "checkpoint", MIXED_LANGUAGE_RUN=str(tmp_path)) as run,
    ):
        run.ready()
        for number in range(ROUNDS):
            orders = [(symbol, 1 + at % 7) for at, symbol in enumerate([*symbols] * (ORDERS // len(symbols)))]
            for symbol, amount in orders:
                held[symbol] += amount
                expected[symbol].append(f"{symbol} {held[symbol]} {held[symbol] * symbols[symbol]}")
            run.send(framed(f"{symbol} {amount}".encode() for symbol, amount in orders))
            if number:  # the first round has made the state that the next worker must find again
                victims = workers("book" if number % 2 else "main", tmp_path)
                assert victims, "no process of the worker was found"
                os.kill(victims[0], signal.SIGKILL)
                killed.add(victims[0])
            receiver.wait_for_lines(sum(map(len, expected.values())), run)
        assert len(killed) == ROUNDS - 1
        lines = receiver.lines()
        assert {symbol: [line for line in lines if line.startswith(symbol)] for symbol in symbols} == expected
        assert run.last("dead_letters") == 0
        assert run.stop() == 0, run.said()
