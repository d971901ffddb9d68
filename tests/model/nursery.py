"""Starts Python workers fast: a process that has imported everything forks them.

Run as `python -m model.nursery`; a line of JSON in, `{"app", "environment", "directory"}`, is a worker, and the line
that comes back its process id.
"""

import json
import os
import signal
import sys

from google.protobuf.struct_pb2 import Struct  # noqa: F401 - what the workers would import

from wallaroo.worker.__main__ import main


def become(order: dict[str, object]) -> None:
    """Be a worker until its end."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    log = os.open(os.path.join(str(order["directory"]), "worker.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for descriptor, taken in ((0, nothing), (1, log), (2, log)):
        os.dup2(taken, descriptor)
    os.environ.clear()
    os.environ.update(order["environment"])  # type: ignore[call-overload]
    status = 1
    try:
        status = main([str(order["app"])])
    finally:
        os._exit(status)


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    for line in sys.stdin:
        child = os.fork()
        if not child:
            become(json.loads(line))
        print(child, flush=True)
