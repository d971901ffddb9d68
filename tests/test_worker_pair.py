"""The workers of Python and Go give the same answers to the same drawn calls of timed steps and of windows."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.check import Context, windows_args
from support import timed_pair, window_pair
from support.drawn_seed import SEED
from support.run import TESTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def workers(go_conformance: Path) -> Iterator[tuple[Context, Context]]:
    """Give a worker of each language."""
    python = [sys.executable, "-m", "wallaroo.worker", str(TESTS / "conformance" / "app.py")]
    contexts = Context(shlex.join(python)), Context(str(go_conformance))
    yield contexts
    for context in contexts:
        context.close()


@pytest.mark.parametrize("count", [20, pytest.param(400, marks=pytest.mark.long)])
def test_timed_steps(workers: tuple[Context, Context], count: int) -> None:
    """Their rules change between calls: ttl, kind of time, timers; calls are repeated, skip messages, or have parts."""
    for seed in range(SEED, SEED + count):
        assert [*timed_pair.compare(*workers, seed)] == [], seed


@pytest.mark.parametrize("count", [30, pytest.param(400, marks=pytest.mark.long)])
def test_windows(workers: tuple[Context, Context], count: int) -> None:
    """Delay, gap and policy change between calls."""
    windows = window_pair.windows_of(SEED)
    clients = [context.start(args=windows_args(windows)) for context in workers]
    try:
        for seed in range(SEED, SEED + count):
            assert [*window_pair.compare((clients[0], clients[1]), windows, seed)] == [], seed
    finally:
        for client in clients:
            client.close()
