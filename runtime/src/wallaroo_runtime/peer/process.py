"""The two local processes, gateway and egress: started, found again, watched, ended."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.system.process import process_start_time

READY_DEADLINE_S = 30.0
STOP_DEADLINE_S = 10.0
LINGER_S = 60
POLL_S = 0.05
NOT_READY = frozenset({"starting", "failed", "stopped"})


def this_driver() -> dict[str, int]:
    """Return what distinguishes this process from any other one."""
    return {"pid": os.getpid(), "start_time": process_start_time(os.getpid()) or 0}


def announce(checkpoint: Path) -> None:
    """Notify processes of an earlier driver that there is a driver again."""
    replace_file(checkpoint / "driver.json", json.dumps(this_driver()).encode())


class Process:
    """A process of its own session that outlives a driver that dies, so that senders and receivers notice nothing.

    Args:
        name: What people call it: `gateway` or `egress`; also the name of its files.
        module: What `python -m` runs.
        checkpoint: The checkpoint directory.
        config: Its configuration, without `status`, `driver` and `linger_s`.
    """

    def __init__(self, name: str, module: str, checkpoint: Path, config: Mapping[str, Any]) -> None:
        self.name, self._module, self._checkpoint = name, module, checkpoint
        self._status_path = checkpoint / f"{name}.json"
        self._config_path = checkpoint / f"{name}-config.json"
        self.log = checkpoint / "logs" / f"{name}.log"
        self._config = {**config, "status": str(self._status_path), "linger_s": LINGER_S}
        self._child: subprocess.Popen[bytes] | None = None
        self._pid, self._start_time = 0, 0
        self._log_begin = 0

    def start(self) -> bool:
        """Take over the process of an earlier driver if it still lives and does the same; else start one.

        Returns:
            Whether an earlier one was taken over.
        """
        if self._adopt():
            return True
        self._status_path.unlink(missing_ok=True)
        replace_file(self._config_path, json.dumps({**self._config, "driver": this_driver()}).encode())
        with self.log.open("ab") as log:
            self._log_begin = log.tell()
            self._child = subprocess.Popen(
                [sys.executable, "-m", self._module, str(self._config_path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                umask=0o077,
            )
        self._pid = self._child.pid
        self._start_time = process_start_time(self._pid) or 0
        return False

    def _adopt(self) -> bool:
        found = self.status()
        pid, started = found.get("pid"), found.get("start_time")
        if not isinstance(pid, int) or not isinstance(started, int) or process_start_time(pid) != started:
            return False
        self._pid, self._start_time = pid, started
        if self._is_same_config() and found.get("state") not in NOT_READY:
            return True
        self.stop()
        return False

    def _is_same_config(self) -> bool:
        try:
            before = json.loads(self._config_path.read_bytes())
        except (OSError, ValueError):
            return False
        return {name: value for name, value in before.items() if name != "driver"} == self._config

    def status(self) -> dict[str, Any]:
        """Return what the process last said of itself; empty when nothing readable is there."""
        try:
            value = json.loads(self._status_path.read_bytes())
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def addresses(self) -> list[tuple[str, str]]:
        """Return name and address of each source that it listens for; none for a process without sources."""
        return [(str(source["name"]), str(source["address"])) for source in self.status().get("sources", [])]

    def has_failed(self) -> bool:
        """Say whether the process has ended because it cannot go on, which it then has told why."""
        return self.status().get("state") == "failed"

    def is_alive(self) -> bool:
        """Say whether it still runs."""
        if self._child is not None:
            return self._child.poll() is None
        return bool(self._pid) and process_start_time(self._pid) == self._start_time

    def wait_ready(self, deadline_s: float = READY_DEADLINE_S) -> dict[str, Any]:
        """Wait until it does its work and return its status.

        Raises:
            RunError: What it says is wrong, e.g. R601; else R617.
        """
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            alive = self.is_alive()
            status = self.status()
            mine = status.get("pid") == self._pid
            if mine and status.get("state") not in NOT_READY and alive:
                return status
            if not alive or (mine and status.get("state") == "failed"):
                self.stop()
                raise self.failure()
            time.sleep(POLL_S)
        self.stop()
        raise RunError.of("R617", process=self.name, reason=f"it was not ready after {deadline_s:g} s", log=self.log)

    def failure(self) -> RunError:
        """Return the error that states why it ended: the findings of its status, else the last line of its log."""
        status = self.status()
        if self.has_failed() and status.get("diagnostics"):
            return RunError([Diagnostic.from_json(finding) for finding in status["diagnostics"]])
        code = self._child.poll() if self._child is not None else None
        reason = "exit code unknown" if code is None else f"exit code {code}" if code >= 0 else f"signal {-code}"
        last = _last_line(self.log, self._log_begin)
        return RunError.of("R617", process=self.name, reason=f"{reason}; {last}" if last else reason, log=self.log)

    def stop(self, deadline_s: float = STOP_DEADLINE_S) -> None:
        """End it: politely, and after the deadline by force."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not self.is_alive():
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, number)
            end = time.monotonic() + deadline_s
            while self.is_alive() and time.monotonic() < end:
                time.sleep(POLL_S)


def _last_line(path: Path, begin: int) -> str:
    """Return the last line of a log that is not of an earlier process."""
    try:
        with path.open("rb") as file:
            file.seek(max(begin, path.stat().st_size - 4096))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:300]
