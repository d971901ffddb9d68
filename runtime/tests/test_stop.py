"""A process that many signals ask to end ends."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.run import wait_until
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.run.signals import RunStop
from wallaroo_runtime.system.stop import SIGNALS, Stop

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


OTHER_THREAD = """
import ctypes, os, signal, threading, time
from wallaroo_runtime.system.stop import stop_event

def send():
    time.sleep(0.5)
    ctypes.CDLL(None).tgkill(os.getpid(), threading.get_native_id(), signal.SIGTERM)
    time.sleep(600)

stopped = stop_event()
threading.Thread(target=send, daemon=True).start()
os._exit(7 if stopped.wait(600) else 1)
"""


@pytest.mark.slow
def test_a_signal_that_another_thread_gets_ends_a_long_wait() -> None:
    assert subprocess.run([sys.executable, "-c", OTHER_THREAD], check=False, timeout=120).returncode == 7


ENDING = """
import os, signal, sys
from wallaroo_runtime.run.signals import stop_signals
with stop_signals() as stopped:
    stopped.is_started = True
    for number in sys.argv[1:]:
        os.kill(os.getpid(), int(number))
os.kill(os.getpid(), signal.SIGTERM)
sys.exit(7)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("signals", "code"), [([], -signal.SIGTERM), (["2"], 7), (["15"], 7), (["15", "1", "15"], 7), (["1"], 7)]
)
def test_a_stop_that_is_asked_for_again_at_the_end_has_its_exit_code(signals: list[str], code: int) -> None:
    assert subprocess.run([sys.executable, "-c", ENDING, *signals], check=False, timeout=300).returncode == code


ENDLESS = """
import os, time
from pathlib import Path

def application_setup(args):
    Path("began").write_text(str(os.getpid()))
    time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "signals", "is_nohup"),
    [
        (["validate"], ["SIGTERM"], False),
        (["validate"], ["SIGHUP", "SIGTERM"], True),
        (["emit"], ["SIGHUP", "SIGTERM"], False),
        (["diff", "app.py"], ["SIGTERM"], True),
    ],
)
def test_a_command_that_is_ended_leaves_nothing(
    tmp_path: Path, command: list[str], signals: list[str], is_nohup: bool
) -> None:
    (tmp_path / "app.py").write_text(ENDLESS)
    (tmp_path / "tmp").mkdir()
    began, environment = tmp_path / "began", {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    line = [sys.executable, "-m", "wallaroo_runtime.cli.start", *command, "app.py"]
    line = ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "nohup", *line] if is_nohup else line
    first = next(signal.Signals[name] for name in signals if not (is_nohup and name == "SIGHUP"))
    with subprocess.Popen(line, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: began.exists() and bool(began.read_text()), lambda: "the setup", 120)
            for name in signals:
                process.send_signal(signal.Signals[name])
            _, said = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, said) == (128 + first, "")
    assert not list((tmp_path / "tmp").iterdir())
    with pytest.raises(ProcessLookupError):
        os.kill(int(began.read_text()), 0)


TERMINAL = """
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs

@wallaroo.encoder
def encode(message):
    return message

def application_setup(args):
    builder = wallaroo.ApplicationBuilder("app")
    builder.new_pipeline("lines", wallaroo.TCPSourceConfig("127.0.0.1", "0", decode))
    return builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "1", encode)).build()
"""


@pytest.mark.slow
def test_a_run_ends_in_order_when_its_terminal_is_closed(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(TERMINAL)
    line = [sys.executable, "-m", "wallaroo_runtime.cli.start", "run", "app.py", "--engine", "memory"]
    master, slave = os.openpty()
    process = subprocess.Popen(
        line, cwd=tmp_path, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(slave)
    try:
        shown = b""
        while b"initialized" not in shown:
            shown += os.read(master, 65536)
        os.close(master)
        assert process.wait(120) == 0
    finally:
        process.kill()
        process.wait()


LOST = """
import os, signal, sys
from wallaroo_runtime.system.stop import end_in_order, signals_kill

class Dropping:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

end_in_order()
"""


@pytest.mark.slow
def test_a_sigterm_after_one_that_python_dropped_ends_a_command() -> None:
    program = LOST + "sys.unraisablehook = id\nDropping()\nos.kill(os.getpid(), signal.SIGTERM)\nsys.exit(7)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=300).returncode == 143


@pytest.mark.slow
@pytest.mark.parametrize("number", SIGNALS)
def test_signals_during_imports_are_not_lost(number: signal.Signals) -> None:
    program = LOST.replace("SIGTERM)", f"{number.name})") + "with signals_kill():\n    Dropping()\nsys.exit(7)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=300).returncode == -number


READY = "ready"


@given(st.lists(st.sampled_from([*SIGNALS, READY]), max_size=5))
def test_the_first_signal_of_a_start_decides_how_it_ends(events: list[signal.Signals | str]) -> None:
    stopped = RunStop()
    for at, event in enumerate(events):
        before = [each for each in events[:at] if each != READY]
        if event == READY:
            stopped.is_started = True
            continue
        is_ready = READY in events[:at]
        interrupts = event == signal.SIGINT if before else not is_ready
        assert (_raised(stopped, event) is not None) == interrupts
        assert stopped.ended_start(KeyboardInterrupt()) == (not before and not is_ready)
        assert stopped.ended_start(RunError.of("R611", reason="", fix="")) == (not before and not is_ready)
        assert stopped.exit_code == 128 + (before[0] if before else event)
        if interrupts and not is_ready:
            return


def _raised(stopped: RunStop, number: signal.Signals) -> KeyboardInterrupt | None:
    try:
        stopped.take(number)
    except KeyboardInterrupt as error:
        return error
    return None


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


def test_an_interrupt_that_another_handler_raised_counts_as_sigint() -> None:
    """PySpark has its own for SIGINT while its context begins; our flag does not hear of it."""
    stop = RunStop()
    assert stop.ended_start(KeyboardInterrupt())
    assert stop.exit_code == 128 + signal.SIGINT
