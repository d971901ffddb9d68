"""Runs drivers: on this machine, starts a failed one again; on a cluster, runs spark-submit and reports the states.

The output of spark-submit and YARN's client is long. The user gets a line for each change of state instead and, if the
application has failed, one error with the exit code of the driver.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from wallaroo_runtime.checkpoint.registry import supervise, unregister
from wallaroo_runtime.errors import RUN, TOPOLOGY, USAGE, RunError
from wallaroo_runtime.system.backoff import Backoff
from wallaroo_runtime.system.process import READY, dying_with_parent
from wallaroo_runtime.system.stop import SIGNALLED, SIGNALS, Stop, handle_ending
from wallaroo_runtime.worker.launch import status_text

LIMIT, WINDOW_S = 10, 600.0
BACKOFF = Backoff(1.0, 30.0)
# Exit codes after which another driver makes no sense: the fault would come again, or a signal has ended the start.
FINAL = frozenset({0, USAGE, TOPOLOGY, *(SIGNALLED + number for number in SIGNALS)})
KEPT_LINES = 30
YARN = {"logs": "yarn logs -applicationId", "kill": "yarn application -kill"}
KUBERNETES = {"logs": "kubectl logs", "kill": "kubectl delete pod"}
REPORT = re.compile(r"Application (?:report|status) for \S+ \((?:state|phase): (\w+)\)")
ASSIGNED = re.compile(r"\b(application_\d+_\d+)\b|^\s*pod name: (\S+)")
PAGE = re.compile(r"^\s*tracking URL: (\S+)")
STATUS = re.compile(r"User application exited with (?:status )?(\d+)|^\s*exit code: ([1-9]\d*)")
THROWN = re.compile(r'^(?:Exception in thread "main" |Error: |Caused by: )(.+)')
DIAGNOSIS = re.compile(r"^\s*diagnostics: (?!N/A|AM container is launched|\[)(.+)")


class DriverKeeper:
    """Runs a driver, and runs it again if it fails.

    Args:
        restarts: Whether a failed driver is run again.
    """

    def __init__(self, command: Sequence[str], *, restarts: bool) -> None:
        self._command, self._restarts = list(command), restarts
        self._stopped = Stop()
        self._child: subprocess.Popen[bytes] | None = None
        self._was_ready, self._missed = False, 0

    def run(self) -> int:
        """Run a driver, and start it again until it has ended for good. Return the exit code of the last driver.

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
        """Run one driver to its end. The driver reports over a pipe that it is initialized."""
        ready, report = os.pipe()
        # The driver has a session of its own, so that a signal of the terminal reaches it only once.
        self._child = child = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, env=os.environ | {READY: str(report)}, pass_fds=(report,),
            start_new_session=True, preexec_fn=dying_with_parent(signal.SIGTERM),  # noqa: PLW1509 - no other thread runs
        )  # fmt: skip
        os.close(report)
        if self._missed:
            child.send_signal(self._missed)
        if os.read(ready, 1):  # nothing if the driver ends before
            self._was_ready = True
            if self._restarts:
                supervise(child.pid)
        os.close(ready)
        return child.wait()

    def _forward(self, number: int, frame: Any) -> None:
        self._stopped.number = self._stopped.number or number
        self._stopped.set()
        if self._child is None or self._child.poll() is not None:
            self._missed = number  # a driver that is just being started does not get the signal
        else:
            self._child.send_signal(number)


class Submission:
    """An application on YARN or Kubernetes, whose states come from the output of spark-submit.

    Args:
        note: Prints a line for the user.
    """

    def __init__(self, command: Sequence[str], master: str, note: Callable[[str], None]) -> None:
        self._command, self._master, self._note = list(command), master, note
        self._tools = YARN if master == "yarn" else KUBERNETES
        self._application = self._state = self._page = self._reason = ""
        self._status = 0
        self._last: deque[str] = deque(maxlen=KEPT_LINES)
        self._child: subprocess.Popen[str] | None = None
        self._signal = 0

    def run(self) -> int:
        """Run spark-submit until the application has ended. A signal ends only spark-submit: the application goes on.

        Raises:
            RunError: R685 with the driver's exit code if the application has failed or was not accepted.
        """
        before = handle_ending(self._forward)
        try:
            code = self._run()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._signal:
            if self._application:
                self._note(f"{self._application} goes on; {self._remedy('kill')} ends it")
            return SIGNALLED + self._signal
        if code or self._status:
            raise self._failure(code)
        return 0

    def _run(self) -> int:
        # spark-submit has a session of its own, so that a signal of the terminal reaches it only once.
        self._child = child = subprocess.Popen(
            self._command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip
        assert child.stdout is not None
        with child.stdout:
            for line in child.stdout:
                self._read(line.rstrip())
        return child.wait()

    def _read(self, line: str) -> None:
        if line and not line.startswith("\tat "):
            self._last.append(line)
        if match := STATUS.search(line):
            self._status = int(match[1] or match[2])
        if match := PAGE.match(line):
            self._page = match[1]
        if match := DIAGNOSIS.match(line) or THROWN.match(line):
            self._reason = self._reason or match[1]
        if not self._application and (match := ASSIGNED.search(line)):
            self._application = match[1] or match[2]
            self._note(f"{self._application} is submitted; {self._remedy('logs')} shows what it says")
        if (match := REPORT.search(line)) and match[1] != self._state:
            self._state = match[1]
            self._note(f"{self._application}: {self._state.lower()}")

    def _remedy(self, verb: str) -> str:
        """Return the command that shows the application's logs (`logs`), or ends the application (`kill`)."""
        return f"`{self._tools[verb]} {self._application}`"

    def _failure(self, code: int) -> RunError:
        status = self._status or (code if code > 0 else RUN)
        reason = f"the driver exited with status {self._status}" if self._status else self._reason
        fix = "look at what spark-submit said"
        if self._application:
            fix = f"{self._remedy('logs')} shows what driver and executors said"
            fix += f", and {self._page} each attempt" if self._page else ""
        return RunError.of(
            "R685",
            status,
            application=self._application or "the application",
            master=self._master,
            reason=reason or f"spark-submit exited with status {code}",
            fix=fix,
            traceback="" if self._status else "\n".join(self._last),
        )

    def _forward(self, number: int, frame: Any) -> None:
        self._signal = self._signal or number
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)
