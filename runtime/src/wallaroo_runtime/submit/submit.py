"""Makes the command that runs the driver of an application, and keeps a driver running."""

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from wallaroo.emit.module import module_command
from wallaroo_runtime.checkpoint.registry import supervise, unregister
from wallaroo_runtime.errors import TOPOLOGY, USAGE, RunError
from wallaroo_runtime.program.app import resolve
from wallaroo_runtime.spark.machine.yarn import driver_settings
from wallaroo_runtime.system.backoff import Backoff
from wallaroo_runtime.system.process import dying_with_parent
from wallaroo_runtime.system.stop import SIGNALLED, SIGNALS, Stop, handle_ending
from wallaroo_runtime.worker.launch import status_text

CLUSTER_KINDS = ("yarn", "k8s://")
LIMIT, WINDOW_S = 10, 600.0
BACKOFF = Backoff(1.0, 30.0)
# Exit codes after which another driver makes no sense: the fault would come again, or a signal has ended the start.
FINAL = frozenset({0, USAGE, TOPOLOGY, *(SIGNALLED + number for number in SIGNALS)})


def check_deploy_mode(master: str, deploy_mode: str) -> None:
    """Refuse cluster mode for a master where Spark has no cluster mode for Python.

    Raises:
        RunError: R608 if Spark has no such mode.
    """
    if deploy_mode == "cluster" and not master.startswith(CLUSTER_KINDS):
        raise RunError.of(
            "R608",
            USAGE,
            reason=f"{master} runs no Python driver in cluster mode",
            fix="use --deploy-mode client on a machine that stays, with --restart on-failure",
        )


def client_command(arguments: Sequence[str]) -> list[str]:
    """Return the command of a driver on this machine; PySpark starts the driver's JVM through spark-submit.

    Args:
        arguments: Arguments of `wallaroo run`.
    """
    return module_command(sys.executable, "wallaroo_runtime.cli.start", "run", *arguments)


def cluster_command(
    app: str,
    master: str,
    conf: Mapping[str, str],
    settings: Mapping[str, str],
    *,
    arguments: Sequence[str],
    files: Sequence[Path] = (),
) -> list[str]:
    """Return the command of spark-submit that starts the driver on the cluster.

    Args:
        app: The archive or topology; spark-submit gives it to the driver.
        master: Spark master, as spark-submit takes it.
        conf: Settings of the user.
        settings: Settings of the driver's JVM, used unless the user has set them.
        arguments: Arguments of `wallaroo run`, without application and master.
        files: Further files for the driver, which `arguments` name without a directory.
    """
    pyspark = find_spec("pyspark")
    assert pyspark is not None and pyspark.origin is not None
    home = os.environ.get("SPARK_HOME") or str(Path(pyspark.origin).parent)
    path = Path(resolve(app).path)
    driver = Path(__file__).parents[1] / "cli" / "start.py"
    own = {**settings, **(driver_settings(os.environ) if master == "yarn" else {})}
    pairs = [item for pair in {**own, **conf}.items() for item in ("--conf", "=".join(pair))]
    command = [f"{home}/bin/spark-submit", "--master", master, "--deploy-mode", "cluster", *pairs]
    shipped = ",".join(str(file.absolute()) for file in (path, *files))
    return [*command, "--files", shipped, str(driver), "run", path.name, "--master", master, *arguments]


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
