"""A checkpoint at a URL, in a file system that Hadoop knows."""

import socket
from urllib.parse import urlsplit

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.peer.remote import RemoteOptions

CONNECT_S = 5.0
HERE = "file:"


def is_remote(location: str) -> bool:
    """Say whether a checkpoint is in a file system of other machines.

    Example:
        >>> [is_remote(text) for text in ("hdfs://name:8020/checkpoint", "file:///checkpoint", "")]
        [True, False, False]
    """
    return bool(location) and not location.startswith(HERE)


def check_services(location: str, remote: RemoteOptions) -> None:
    """Refuse a checkpoint at a URL when journal and outbox would be on this machine.

    Raises:
        RunError: R608.
    """
    if location and not (remote.gateways and remote.egress):
        reason = f"--checkpoint {location} needs a remote gateway and a remote egress"
        raise RunError.of("R608", USAGE, reason=reason, fix="give --gateway and --egress, or a directory")


def check_answer(location: str) -> None:
    """Refuse an HDFS that nobody serves: Hadoop itself would try for long, and Spark would be started for nothing.

    An address without a port may be the name of several servers, which only Hadoop's configuration knows.

    Raises:
        RunError: R684.
    """
    url = urlsplit(location)
    try:
        host, port = url.hostname, url.port
    except ValueError as error:
        raise _no_answer(location, str(error)) from error
    if url.scheme != "hdfs" or not host or port is None:
        return
    try:
        socket.create_connection((host, port), timeout=CONNECT_S).close()
    except OSError as error:
        raise _no_answer(location, f"{host}:{port}: {error.strerror or error}") from error


def _no_answer(location: str, reason: str) -> RunError:
    fix = "start it, or correct the address; run again, and it continues from the checkpoint"
    return RunError.of("R684", path=location, reason=reason, fix=fix)
