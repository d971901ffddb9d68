"""A process that many signals ask to end ends."""

import signal
import subprocess
import sys
import time

import pytest

from wallaroo_runtime.system.stop import Stop

PROGRAM = """
import contextlib, os, time
import wallaroo_runtime.{module} as module
with {flag} as stopped:
    print("ready", flush=True)
    while not stopped.wait(0.01):
        pass
    time.sleep(0.5)  # more signals come
    os._exit(7)
"""
FLAGS = {
    "run.run": "module._stop_signals()",
    "service.server": "contextlib.nullcontext(module.stop_event())",
}


@pytest.mark.slow
@pytest.mark.parametrize("module", FLAGS)
def test_many_signals_at_once(module: str) -> None:
    program = PROGRAM.format(module=module, flag=FLAGS[module])
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for _ in range(5_000):
            process.send_signal(signal.SIGTERM)
        try:
            assert process.wait(60) == 7
        finally:
            process.kill()


def test_waiting_ends() -> None:
    stop = Stop()
    began = time.monotonic()
    assert not stop.wait(0.05)
    assert time.monotonic() - began >= 0.05
    assert not stop.is_set()
    stop.set()
    assert stop.wait(60)
    assert stop.is_set()
