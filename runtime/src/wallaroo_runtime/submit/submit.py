"""Keeps the driver of an application running."""

import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from wallaroo_runtime.checkpoint.registry import supervise, unregister
from wallaroo_runtime.errors import TOPOLOGY, USAGE, RunError
from wallaroo_runtime.system.backoff import Backoff
from wallaroo_runtime.system.process import dying_with_parent
from wallaroo_runtime.system.stop import SIGNALLED, SIGNALS, Stop, handle_ending
from wallaroo_runtime.worker.launch import status_text

LIMIT, WINDOW_S = 10, 600.0
BACKOFF = Backoff(1.0, 30.0)
# Exit codes after which another driver makes no sense: the fault would come again, or a signal has ended the start.
FINAL = frozenset({0, USAGE, TOPOLOGY, *(SIGNALLED + number for number in SIGNALS)})


class DriverKeeper:
    """Runs a driver, and runs it again if it fails.

    Args:
        says_ready: Returns whether a line of the driver's output means that the driver is initialized.
        restarts: Whether a failed driver is run again.
    """

    def __init__(self, command: Sequence[str], says_ready: Callable[[str], bool], *, restarts: bool) -> None:
        self._command, self._says_ready, self._restarts = list(command), says_ready, restarts
        self._stopped = Stop()
        self._child: subprocess.Popen[str] | None = None
        self._was_ready, self._missed = False, 0

    def run(self) -> int:
        """Run a driver, and further drivers as long as a driver must be replaced. Return the exit code of the last one.

        If a driver ends with an error before any driver was initialized, it is not replaced, because another would also
        fail. A killed driver is replaced.

        Raises:
            RunError: R661 if drivers have failed too often.
        """
        before = handle_ending(self._forward)
        try:
            return self._run()
        finally:
            unregister()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _run(self) -> int:
        failures: deque[float] = deque()
        while True:
            code = self._run_once()
            is_final = code in FINAL or self._stopped.is_set() or not self._restarts
            if is_final or (code > 0 and not self._was_ready):
                return code if code >= 0 else 128 - code
            now = time.monotonic()
            failures.append(now)
            while failures[0] < now - WINDOW_S:
                failures.popleft()
            ending = status_text(code)
            if len(failures) > LIMIT:
                raise RunError.of("R661", count=len(failures), seconds=f"{WINDOW_S:g}", reason=ending)
            backoff = BACKOFF.after(len(failures))
            print(f"the driver ended; {ending}; it is started again in {backoff:g} s", file=sys.stderr, flush=True)
            if self._stopped.wait(backoff):
                return SIGNALLED + self._stopped.number

    def _run_once(self) -> int:
        """Run one driver to its end, and pass on its output."""
        # The driver has a session of its own, so that a signal of the terminal reaches it only once.
        self._child = child = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="surrogateescape",
            start_new_session=True, preexec_fn=dying_with_parent(signal.SIGTERM),  # noqa: PLW1509 - no other thread runs
        )  # fmt: skip
        assert child.stdout is not None
        if self._missed:
            child.send_signal(self._missed)
        with child.stdout:
            for line in child.stdout:
                if self._says_ready(line):
                    self._note_ready(child.pid)
                print(line, end="", flush=True)
        return child.wait()

    def _note_ready(self, driver: int) -> None:
        self._was_ready = True
        if self._restarts:
            supervise(driver)

    def _forward(self, number: int, frame: Any) -> None:
        self._stopped.number = self._stopped.number or number
        self._stopped.set()
        if self._child is None or self._child.poll() is not None:
            self._missed = number  # a driver that is just being started does not get the signal
        else:
            self._child.send_signal(number)
