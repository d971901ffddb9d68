"""Runs spark-submit for a driver on the cluster, and reports the states of the application.

The output of spark-submit and YARN's client is long. The user gets a line for each change of state instead and, if the
application has failed, one error with the exit code of the driver.
"""

import re
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Sequence
from types import FrameType

from wallaroo_runtime.errors import RUN, RunError
from wallaroo_runtime.system.stop import SIGNALLED, handle_ending

KEPT_LINES = 30
YARN = {"logs": "yarn logs -applicationId", "kill": "yarn application -kill"}
KUBERNETES = {"logs": "kubectl logs", "kill": "kubectl delete pod"}
REPORT = re.compile(r"Application (?:report|status) for \S+ \((?:state|phase): (\w+)\)")
ASSIGNED = re.compile(r"\b(application_\d+_\d+)\b|^\s*pod name: (\S+)")
PAGE = re.compile(r"^\s*tracking URL: (\S+)")
STATUS = re.compile(r"User application exited with (?:status )?(\d+)|^\s*exit code: ([1-9]\d*)")
THROWN = re.compile(r'^(?:Exception in thread "main" |Error: |Caused by: )(.+)')
DIAGNOSIS = re.compile(r"^\s*diagnostics: (?!N/A|AM container is launched|\[)(.+)")


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
        """Run spark-submit until the application has ended. After a signal only spark-submit ends.

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
        if match := REPORT.search(line):
            self._tell(match[1])

    def _tell(self, state: str) -> None:
        if state != self._state:
            self._state = state
            self._note(f"{self._application}: {state.lower()}")

    def _remedy(self, verb: str) -> str:
        """Return the command of the cluster's tool that shows the application's logs, or ends the application."""
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

    def _forward(self, number: int, frame: FrameType | None) -> None:
        self._signal = self._signal or number
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)
