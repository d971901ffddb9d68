"""A process that many signals ask to end ends."""

import subprocess
import sys
import threading
import time

import pytest

from wallaroo_runtime.system.stop import Stop

# A clock that sends signals without a pause, so that handlers interrupt each other, and what waits for them.
PROGRAM = """
import contextlib, os, signal, time
import wallaroo_runtime.{module} as module

@contextlib.contextmanager
def started(signals):
    with signals as stopped:
        stopped.is_started = True
        yield stopped

with {flag} as stopped:
    handler, until = signal.getsignal(signal.SIGTERM), time.monotonic() + 2
    signal.signal(signal.SIGALRM, lambda _, frame: handler(signal.SIGTERM, frame))
    signal.setitimer(signal.ITIMER_REAL, 5e-4, 5e-4)
    while time.monotonic() < until:
        stopped.wait(0.001)
    os._exit(7)
"""
FLAGS = {
    "run.signals": "started(module.stop_signals())",
    "system.stop": "contextlib.nullcontext(module.stop_event())",
}


@pytest.mark.slow
@pytest.mark.parametrize("module", FLAGS)
def test_many_signals_at_once(module: str) -> None:
    program = PROGRAM.format(module=module, flag=FLAGS[module])
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        try:
            assert process.wait(60) == 7
        finally:
            process.kill()


def test_who_waits_is_woken() -> None:
    stop = Stop()
    waiting = threading.Timer(0.05, stop.set)
    waiting.start()
    assert stop.wait(1e9)
    waiting.join()


def test_waiting_ends() -> None:
    stop = Stop()
    began = time.monotonic()
    assert not stop.wait(0.05)
    assert time.monotonic() - began >= 0.05
    assert not stop.is_set()
    stop.set()
    assert stop.wait(60)
    assert stop.is_set()
