"""The protocol of tasks with a supervisor: one JSON object per line, over a Unix socket in the worker's directory."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOCKET = "supervisor.sock"
MAX_LINE_BYTES = 4 * 1024 * 1024


def directory_of(target: str) -> Path | None:
    """Return the directory of the worker at a gRPC target; None if the worker is on another machine."""
    return Path(target.removeprefix("unix:")).parent if target.startswith("unix:") else None


def ask(directory: Path, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """Send one request to a supervisor, and return the reply.

    `{"op": "wait"}` waits until the worker serves or has failed for good. `{"op": "recover", "generation": g}` waits
    for a process after process g, whose streams broke. `{"op": "kill", "generation": g, "reason": text, "is_excused":
    bool}` kills a process; an excused end does not count against the budget. `{"op": "ending", "generation": g}` asks
    how a process ended whose streams broke. `{"op": "excuse", "count": n}` takes n ends off the budget. `{"op":
    "retry"}` starts again after a failure. `{"op": "status"}` answers at once. `{"op": "stop"}` ends all. A reply is
    `{"state": "ready", "generation", "pid"}`, `{"state": "failed", "diagnostics"}` or `{"state": "stopped"}`. The reply
    to `ending` is `{"state", "ending"}`: an `Ending`, or null if the end is not known.

    Raises:
        OSError: The supervisor is gone, or gave no answer within `timeout` seconds.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout)
        connection.connect(str(directory / SOCKET))
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as file:
            line = file.readline(MAX_LINE_BYTES)
    if not line.endswith(b"\n"):
        msg = "the supervisor closed the connection"
        raise ConnectionResetError(msg)
    reply: dict[str, Any] = json.loads(line)
    return reply
