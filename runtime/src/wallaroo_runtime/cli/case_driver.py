"""A run of `wallaroo run` for a case of records: what it says, and whether all is done."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.checkpoint.directory import SPARK
from wallaroo_runtime.cli.case import Case, bad
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.batch_log import pending_batch
from wallaroo_runtime.system.process import dying_with_parent

DEADLINE_S = 600.0
STOP_S = 60.0
LETTER, MAX_FINDINGS = "R740", 5
ALL_FAILED = "R741"  # of a run; a case says how many dead letters it expects
PATIENCE_S = 60.0  # for messages that are expected and do not come
LOOKS = 2  # lines of progress that must say the same: what sinks are to get is known a moment after a micro-batch


class CaseDriver:
    """The process, and the last that it has said.

    Args:
        case: That runs.
        checkpoint: Of the run, empty at its start.
        child: The process.
    """

    def __init__(self, case: Case, checkpoint: Path, child: "subprocess.Popen[str]") -> None:
        self._case, self._checkpoint, self._child = case, checkpoint, child
        self._changed = threading.Condition()
        self._last: dict[str, Any] = {}
        self._lines, self._is_ready, self._has_ended = 0, False, False
        self._deadline = time.monotonic() + DEADLINE_S
        self._findings: list[Diagnostic] = []
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read_findings, self._read)]
        for reader in self._readers:
            reader.start()

    def _read(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            if line.startswith("{"):
                self._take(json.loads(line))
        self._readers[0].join(STOP_S)
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _read_findings(self) -> None:
        """Keep what it finds wrong; what others say on stderr is for the user."""
        assert self._child.stderr is not None
        for line in self._child.stderr:
            try:
                self._findings += map(Diagnostic.from_json, json.loads(line))
            except (ValueError, TypeError, KeyError, AttributeError):
                print(line, end="", file=sys.stderr, flush=True)

    def _take(self, said: dict[str, Any]) -> None:
        tell_doing(self._case, said)
        with self._changed:
            self._is_ready |= said["state"] == "initialized"
            if "dead_letters" in said:
                self._last, self._lines = said, self._lines + 1
            self._changed.notify_all()

    def wait_ready(self) -> None:
        """Wait until the application processes.

        Raises:
            RunError: R745, it does not.
        """
        self._wait(lambda: self._is_ready)

    def _wait(self, holds: Callable[[], bool]) -> None:
        with self._changed:
            left = self._deadline - time.monotonic()
            if not self._changed.wait_for(lambda: holds() or self._has_ended, left):
                fix = "look whether a callback hangs, or make the case smaller"
                raise bad(self._case.folder, f"the run took longer than {DEADLINE_S:g} s", fix)
            has_ended = self._has_ended and not holds()
        if has_ended:
            raise self._ended()

    def _ended(self) -> RunError:
        code, last = self._child.wait(STOP_S), self._findings[-MAX_FINDINGS:]
        fix = "correct what is named next to this" if last else "correct what is said above"
        error = bad(self._case.folder, f"the run ended with {code}", fix)
        return RunError([*error.diagnostics, *last], error.exit_code)

    def _progress(self) -> dict[str, Any]:
        """Return what it says next of its numbers."""
        with self._changed:
            known = self._lines
        self._wait(lambda: self._lines > known)
        with self._changed:
            return self._last

    def settle(self, expected: Callable[[], int], idle_s: float, *, is_last: bool) -> None:
        """Wait until all that has come is processed and in its topics, also what that leads to.

        Args:
            expected: Returns how many messages sources get of what topics have by now.
            idle_s: How long nothing may change until all is there.
            is_last: Whether that silence is waited for in any case.

        Raises:
            RunError: R745, the run has ended.
        """
        before: list[Any] = []
        looks, since = 0, time.monotonic()
        while True:
            said = self._progress()
            wanted, is_busy = expected(), self._is_busy(said)
            numbers = [wanted, is_busy, *(said[name] for name in ("messages_in", "messages_out", "dead_letters"))]
            if numbers != before:
                before, looks, since = numbers, 0, time.monotonic()
            looks += 1
            has_all = said["messages_in"] >= wanted
            is_silent = time.monotonic() - since >= (idle_s if has_all else max(idle_s, PATIENCE_S))
            is_whole = has_all and looks >= LOOKS and not is_last
            if not is_busy and (is_silent or is_whole):
                return

    def _is_busy(self, said: Mapping[str, Any]) -> bool:
        return bool(said["lag"] or said["waiting"]) or self._has_batch()

    def _has_batch(self) -> bool:
        """Say whether a micro-batch is planned and not committed; in real-time mode one always is."""
        options = self._case.setting("options", [])
        if "realtime" in options or "--mode=realtime" in options:
            return False
        return pending_batch(self._checkpoint / SPARK) is not None

    def letters(self) -> list[str]:
        """Return what it has said of the first dead letters."""
        return [finding.message for finding in self._findings if finding.code == LETTER][:MAX_FINDINGS]

    def stop(self) -> int:
        """End the run in order; returns how many dead letters it had.

        Raises:
            RunError: R745, it did not end well.
        """
        self._child.send_signal(signal.SIGTERM)
        self._wait(lambda: self._has_ended)
        is_good = not self._child.wait(STOP_S) or any(finding.code == ALL_FAILED for finding in self._findings)
        if not is_good or self._last.get("state") != "stopped":
            raise self._ended()
        return int(self._last["dead_letters"])

    def close(self) -> None:
        """End the process, whatever it does."""
        self._child.terminate()
        try:
            self._child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait(STOP_S)
        for reader, pipe in zip(self._readers, (self._child.stderr, self._child.stdout), strict=True):
            reader.join(STOP_S)
            if pipe is not None and not reader.is_alive():
                pipe.close()


def tell_doing(case: Case, said: Mapping[str, Any]) -> None:
    """Tell on stderr what a run does now, of what it says with `--json`.

    Example:
        >>> with contextlib.redirect_stderr(sys.stdout):
        ...     tell_doing(Case(Path("cases/words")), {"state": "starting", "doing": "starting Spark"})
        cases/words: starting Spark
    """
    doing = "the application gets its input" if said.get("state") == "initialized" else said.get("doing")
    if doing:
        print(f"{case.folder}: {doing}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def case_driver(case: Case, app: Path, checkpoint: Path, options: Sequence[str], brokers: str) -> Iterator[CaseDriver]:
    """Run an application; give the run, which is ended afterwards.

    Args:
        app: A topology file.
        checkpoint: Of the run.
        options: Further options of `wallaroo run`.
        brokers: Of the worker's lookups.
    """
    command = [
        *(sys.executable, "-m", "wallaroo_runtime.cli.driver", "run", str(app), "--json"),
        *("--checkpoint", str(checkpoint), *options),
    ]
    child = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "WALLAROO_BROKERS": brokers},
        preexec_fn=dying_with_parent(signal.SIGTERM),
    )
    driver = CaseDriver(case, checkpoint, child)
    try:
        yield driver
    finally:
        driver.close()
