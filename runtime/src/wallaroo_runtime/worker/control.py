"""How tasks talk to a supervisor: one JSON object per line over a Unix socket in the worker's directory."""

import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOCKET = "supervisor.sock"
MAX_LINE_BYTES = 4 * 1024 * 1024


def ask(directory: Path, request: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """Send one request and return the reply.

    Requests are `{"op": "wait"}`: until the worker serves or has failed for good; `{"op": "recover", "generation": g}`:
    likewise, but not that process, whose streams broke; `{"op": "kill", "generation": g, "reason": text,
    "is_excused": whether it counts against the budget not at all}`; `{"op": "ending", "generation": g}`: how that
    process, whose streams broke, ended; `{"op": "excuse", "count": n}`: so many ends less count against the budget;
    `{"op": "retry"}`: try again after a failure; `{"op": "status"}`: at once; `{"op": "stop"}`.
    A reply is `{"state": "ready", "generation", "pid"}`, `{"state": "failed", "diagnostics"}` or
    `{"state": "stopped"}`; to `ending`, `{"state", "ending"}`: null when it is not known, see `Ending`.

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
