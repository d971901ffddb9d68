"""A signal whose interrupt Python drops, as in a callback, ends the start of a run all the same."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.run import CASES
from support.written import written
from wallaroo_runtime.checkpoint import lock
from wallaroo_runtime.console.reporter import JsonReporter
from wallaroo_runtime.run import run as run_module
from wallaroo_runtime.run.options import AppOptions, CheckpointOptions, RunOptions
from wallaroo_runtime.run.run import execute
from wallaroo_runtime.run.signals import RunStop, kept_signals, stop_signals
from wallaroo_runtime.system.stop import SIGNALS

APP = CASES.parents[1] / "examples" / "javascript" / "topology.json"
NAME = json.loads(APP.read_bytes())["name"]
PACKAGE = str(Path(run_module.__file__).parents[1])
REMOVES = lock.HeldDirectory.clear.__code__


class Callback:
    """What Python calls when nothing refers to it any longer; it drops the exceptions of that."""

    def __init__(self, number: signal.Signals) -> None:
        self._number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self._number)


class Calls(list[Any]):
    """What is called, in order; too much to be shown."""

    def __repr__(self) -> str:
        return f"{len(self)} calls"


class Launched(Exception):
    """The start has come to Spark."""


def _launch(*_: object, **__: object) -> None:
    raise Launched


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is printed of what is dropped, and no Spark is started."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    monkeypatch.setattr(run_module, "launch", _launch)


@contextmanager
def at_calls(told: Callable[[Any], None]) -> Iterator[None]:
    """Call a function with the code of each function of the runtime that is called while a run takes signals."""
    is_begun = False

    def profile(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal is_begun
        is_begun |= frame.f_code is run_module.run_once.__code__
        if is_begun and event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            told(frame.f_code)

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


def start(told: Callable[[Any], None]) -> tuple[int, bool]:
    """Start over; return the exit code, and whether the checkpoint is there."""
    with kept_signals(), TemporaryDirectory() as folder:
        path = written(Path(folder) / "checkpoint", NAME)
        options = RunOptions(AppOptions(str(APP)), CheckpointOptions(path, fresh=True))
        with at_calls(told):
            code = execute(options, JsonReporter())
        return code, (path / "spark-2" / "offsets" / "3").exists()


@pytest.fixture(scope="module")
def calls() -> Calls:
    """What is called until Spark is launched."""
    found = Calls()
    for _ in range(2):  # the first imports much
        found.clear()
        with pytest.MonkeyPatch.context() as patch, pytest.raises(Launched):
            patch.setattr(run_module, "launch", _launch)
            start(found.append)
    return found


@pytest.mark.slow
@settings(deadline=None, max_examples=30)
@given(share=st.floats(0, 1), removes=st.booleans(), number=st.sampled_from(SIGNALS))
def test_a_lost_interrupt_ends_the_start(calls: Calls, share: float, removes: bool, number: signal.Signals) -> None:
    removed = calls.index(REMOVES)
    checks = [at for at, code in enumerate(calls, 1) if code is RunStop.check.__code__]
    first, last = (removed + 1, checks[-1]) if removes else (1, max(at for at in checks if at <= removed))
    place = first + round(share * (last - first))
    seen = 0

    def tell(_code: Any) -> None:
        nonlocal seen
        seen += 1
        if seen == place:
            Callback(number)

    assert start(tell) == (128 + number, not removes)


@given(st.lists(st.sampled_from(SIGNALS), min_size=1, max_size=4), st.sampled_from(SIGNALS))
def test_a_signal_after_lost_ones_interrupts_again(lost: list[signal.Signals], number: signal.Signals) -> None:
    with kept_signals(), stop_signals() as stopped:
        for each in lost:
            Callback(each)
        with pytest.raises(KeyboardInterrupt) as raised:
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGTERM)  # that one is on its way: nothing breaks off what ends things
        assert stopped.ended_start(raised.value)
        assert stopped.exit_code == 128 + lost[0]


@given(st.sampled_from(SIGNALS))
def test_a_start_is_not_over_after_a_lost_interrupt(number: signal.Signals) -> None:
    with kept_signals(), stop_signals() as stopped:
        stopped.check()
        Callback(number)
        with pytest.raises(KeyboardInterrupt):
            stopped.check()
        with pytest.raises(KeyboardInterrupt):
            stopped.begin()
        assert not stopped.is_started
