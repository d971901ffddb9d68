"""Finds the driver of a checkpoint, and the address of its monitor, for other processes."""

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from wallaroo_runtime.checkpoint.end_note import past_end, running_note
from wallaroo_runtime.checkpoint.manifest import read_manifest
from wallaroo_runtime.checkpoint.registry import running, supervisor_of
from wallaroo_runtime.durable.file import noted
from wallaroo_runtime.service.driver import DRIVER_FILE, read_note
from wallaroo_runtime.system.process import ProcessId, alive

ASK_S = 10.0


def driver_of(checkpoint: Path) -> ProcessId | None:
    """Return the process that drives a checkpoint now; None if there is no such process."""
    return alive(noted(checkpoint / DRIVER_FILE))


def is_served(checkpoint: Path) -> bool:
    """Say whether a driver, gateway or egress on this machine uses a checkpoint now."""
    return any(alive(noted(checkpoint / name)) for name in (DRIVER_FILE, "gateway.json", "egress.json"))


def monitor_of(checkpoint: Path) -> str:
    """Return the URL of the monitor of a checkpoint's run, with the token; empty if the run has no monitor."""
    note = read_note(checkpoint / DRIVER_FILE)
    return note.monitor if driver_of(checkpoint) is not None else ""


def ask_monitor(url: str) -> Mapping[str, Any] | None:
    """Ask a monitor for the document of its run. Return None if the monitor does not answer."""
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
    """Return the status of a checkpoint: the document of its monitor, or else the last status of gateway and egress."""
    note = read_note(checkpoint / DRIVER_FILE)
    driver = driver_of(checkpoint)
    url = note.monitor if driver is not None else ""
    if url and (document := ask_monitor(url)) is not None:
        return {**document, "monitor": url}
    gateway, egress = noted(checkpoint / "gateway.json"), noted(checkpoint / "egress.json")
    supervisor = supervisor_of(checkpoint) if driver is None else None
    process = driver or supervisor
    sinks = [sink for sink in egress.get("sinks", []) if isinstance(sink, dict)]
    return {
        "application": _name_of(checkpoint),
        "state": "running" if driver is not None else "starting again" if supervisor is not None else "stopped",
        "pid": process.pid if process is not None else None,
        "checkpoint": str(checkpoint),
        "monitor": url,
        "ended": past_end(note) if driver is None else {},
        "earlier": running_note(note) if driver is not None else {},
        "gateway": {name: gateway[name] for name in ("state", "messages", "end", "committed") if name in gateway},
        "sinks": [
            {name: sink[name] for name in ("name", "address", "messages", "pending_messages") if name in sink}
            for sink in sinks
        ],
    }


def _name_of(checkpoint: Path) -> str:
    names = [each["application"] for each in running() if each["checkpoint"] == str(checkpoint)]
    return names[0] if names else read_manifest(checkpoint).name  # the record of a checkpoint at a URL is there
