"""Finds runs from outside: who drives a checkpoint, where its monitor is, and which runs there are."""

import contextlib
import http.client
import json
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wallaroo_runtime.checkpoint.directory import state_directory
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.system.process import process_start_time

MONITOR_FILE = "monitor.json"
DRIVER_FILE = "driver.json"
RUNNING = "running"
ASK_S = 10.0


@dataclass(frozen=True, slots=True)
class Driver:
    """The process that drives a checkpoint.

    Attributes:
        pid: Its process id.
        start_time: Clock ticks since boot: a pid alone is no identity.
    """

    pid: int
    start_time: int

    @property
    def is_alive(self) -> bool:
        """Whether it is still there."""
        return process_start_time(self.pid) == self.start_time

    def interrupt(self) -> bool:
        """Ask it to end in order, and say whether it was there; no other process that has its pid is asked."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return False
        try:
            if not self.is_alive:
                return False
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True


def _read(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb", opener=_unnoticed) as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _unnoticed(path: str, flags: int) -> int:
    """Open a file without changing when it was last read: to look whether something is used is no use of it."""
    try:
        return os.open(path, flags | os.O_NOATIME)
    except PermissionError:  # another user's
        return os.open(path, flags)


def _alive(found: Mapping[str, Any]) -> Driver | None:
    """Return the process that a file names, if it is still there."""
    process = Driver(int(found.get("pid") or 0), int(found.get("start_time") or 0))
    return process if process.pid and process.is_alive else None


def driver_of(checkpoint: Path) -> Driver | None:
    """Return the process that drives a checkpoint now; None: nobody does."""
    return _alive(_read(checkpoint / DRIVER_FILE))


def is_served(checkpoint: Path) -> bool:
    """Say whether a driver, gateway or egress of this machine uses a checkpoint now."""
    return any(_alive(_read(checkpoint / name)) for name in (DRIVER_FILE, "gateway.json", "egress.json"))


def monitor_of(checkpoint: Path, driver: Driver) -> str:
    """Return the URL of a run's monitor, with its token; empty: it has none."""
    found = _read(checkpoint / MONITOR_FILE)
    is_own = (found.get("pid"), found.get("start_time")) == (driver.pid, driver.start_time)
    return str(found["url"]) if is_own else ""


def ask_monitor(url: str) -> Mapping[str, Any] | None:
    """Return what a monitor says of its run; None: it gives no answer."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ASK_S)
    try:
        connection.request("GET", f"/api/v1/status?{parts.query}")
        reply = connection.getresponse()
        document = json.loads(reply.read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    return document if reply.status == 200 and isinstance(document, dict) else None


def status_of(checkpoint: Path) -> dict[str, Any]:
    """Return what is known of a checkpoint: what its monitor says, else what gateway and egress wrote last."""
    driver = driver_of(checkpoint)
    url = monitor_of(checkpoint, driver) if driver is not None else ""
    if url and (document := ask_monitor(url)) is not None:
        return {**document, "monitor": url}
    gateway, egress = _read(checkpoint / "gateway.json"), _read(checkpoint / "egress.json")
    sinks = [sink for sink in egress.get("sinks", []) if isinstance(sink, dict)]
    return {
        "application": str(read_manifest(checkpoint).get("name", "")),
        "state": "stopped" if driver is None else "running",
        "pid": driver.pid if driver is not None else None,
        "checkpoint": str(checkpoint),
        "monitor": url,
        "gateway": {name: gateway[name] for name in ("state", "messages", "end", "committed") if name in gateway},
        "sinks": [
            {name: sink[name] for name in ("name", "address", "messages", "pending_messages") if name in sink}
            for sink in sinks
        ],
    }


@contextlib.contextmanager
def registered(checkpoint: Path, application: str) -> Iterator[None]:
    """Let `wallaroo ps` find this process, which drives a checkpoint."""
    pid = os.getpid()
    content = {"pid": pid, "start_time": process_start_time(pid), "application": application}
    path = state_directory() / RUNNING / f"{pid}.json"
    # A run whose checkpoint is in another place does not need a home that can be written.
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, json.dumps({**content, "checkpoint": str(checkpoint)}).encode())
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def running() -> Iterator[dict[str, Any]]:
    """Yield pid, application and checkpoint of each run of this user; files of runs that were killed are removed."""
    for path in sorted((state_directory() / RUNNING).glob("*.json")):
        found = _read(path)
        if _alive(found):
            yield {name: found.get(name, "") for name in ("pid", "application", "checkpoint")}
        else:
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
