"""Runs a local service: a child of the driver, on a Unix socket in the checkpoint.

Only the user can enter the directory of the socket (mode 0700), so calls need no token. A path in `/proc/self/fd` names
the directory, because the path of a Unix socket has at most 107 bytes.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc

from wallaroo_runtime.durable.file import disk_told
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.service.credential import Listen
from wallaroo_runtime.service.driver import DRIVER_FILE, DriverWatch
from wallaroo_runtime.service.failure import pack_failures
from wallaroo_runtime.service.host import Host
from wallaroo_runtime.service.server import serve, serve_until
from wallaroo_runtime.service.status import StatusFile
from wallaroo_runtime.system.stop import stop_event

LINGER_S = 60.0
READY = b"serving"


@contextmanager
def socket_in(directory: Path) -> Iterator[str]:
    """Yield a short path of the socket in a directory, even if the path of the directory is long.

    Raises:
        OSError: The directory cannot be opened.
    """
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/socket"
    finally:
        os.close(descriptor)


def _server_in(directory: Path, host: Host) -> grpc.Server:
    """Start the gRPC server of a host on the socket in a directory.

    Raises:
        RunError: R715 if the file system of the checkpoint has no sockets.
    """
    with socket_in(directory) as path:
        try:
            return serve(host.store.kind, Listen(f"unix:{path}"), host.answer)[0]
        except RunError as error:
            reason, fix = error.diagnostics[0].message, "give another --checkpoint"
            raise RunError.of("R715", USAGE, path=directory.parent, reason=reason, fix=fix) from error


def run_local(kind: str, arguments: Sequence[str], make: Callable[..., Host]) -> int:
    """Serve until SIGTERM or SIGINT, or until the driver is gone for too long.

    Args:
        kind: `gateway` or `egress`.
        arguments: The checkpoint directory, and the descriptor to which `READY` is written, or the failures.
        make: Makes the host.

    Returns:
        The exit code.
    """
    if len(arguments) != 2:
        print(f"usage: python -m wallaroo_runtime.{kind} CHECKPOINT DESCRIPTOR", file=sys.stderr)
        return USAGE
    checkpoint, stopped = Path(arguments[0]), stop_event()
    watch = DriverWatch(checkpoint / DRIVER_FILE, LINGER_S)
    StatusFile(checkpoint / f"{kind}.json").write("starting")  # with the pid, for a driver that stops it
    with os.fdopen(int(arguments[1]), "wb") as driver:
        try:
            directory = checkpoint / kind
            with disk_told(directory):
                host = make(
                    directory, f"unix:{directory}/socket", checkpoint=checkpoint, has_driver=lambda: watch.has_driver
                )
                server = _server_in(directory, host)
        except RunError as error:
            driver.write(pack_failures(error.diagnostics))
            print(error, file=sys.stderr)
            return error.exit_code
        driver.write(READY)
    try:
        return serve_until(lambda seconds: stopped.wait(seconds) or watch.expired(time.monotonic()), host, server)
    finally:
        (directory / "socket").unlink(missing_ok=True)
        host.close()
