"""The process that represents a worker that the runtime did not start: `wallaroo run --attach`.

Run as `python -m wallaroo_runtime.worker.attached_worker NAME SOCKET` by a supervisor, in the directory of the worker.
It links the socket into the directory where tasks look for the worker, and ends with the process that listens on the
socket.
"""

import json
import os
import select
import socket
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.worker.launch import FAILURE, SOCKET

CREDENTIALS = struct.Struct("3i")  # process, user and group of a socket's peer
REFUSED = 3


def listener_of(path: Path) -> int:
    """Return a descriptor of the process that listens on a socket. It is readable when the process has ended.

    Raises:
        OSError: No process listens there.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(path))
        options = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        return os.pidfd_open(CREDENTIALS.unpack(options)[0])


def main(arguments: Sequence[str], directory: Path) -> int:
    """Link the worker's socket into `directory`, and wait for the end of its process. Return an exit status.

    Args:
        arguments: Name of the worker, and path of its socket.
        directory: Directory in which tasks look for the worker.
    """
    name, path = arguments[0], Path(arguments[1])
    try:
        listener = listener_of(path)
    except OSError as error:
        reason = f"nobody serves at {path}: {error.strerror or error}"
        fix = "start the program that --attach names, and let it serve there"
        finding = Diagnostic.of("W401", worker=name, reason=reason, fix=fix)
        (directory / FAILURE).write_text(json.dumps({"diagnostics": [finding.to_json()]}), encoding="utf-8")
        return REFUSED
    temporary = directory / f"{SOCKET}.part"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(path)
    temporary.rename(directory / SOCKET)
    select.select([listener], [], [])
    print(f"[the process that served at {path} has ended]", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(os.environ["WALLAROO_WORKER_DIR"])))
