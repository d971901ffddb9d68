"""Checks a checkpoint whose location is a URL, in a file system that Hadoop reaches."""

import socket
from urllib.parse import urlsplit

from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.peer.remote import RemoteOptions

CONNECT_S = 5.0
HERE = "file:"


def is_remote(location: str) -> bool:
    """Say whether the location of a checkpoint is a URL of a file system of other machines.

    Example:
        >>> [is_remote(text) for text in ("hdfs://name:8020/checkpoint", "file:///checkpoint", "")]
        [True, False, False]
    """
    return bool(location) and not location.startswith(HERE)


def check_services(location: str, remote: RemoteOptions) -> None:
    """Check that a run with a checkpoint at a URL has a remote gateway and egress: journal and outbox are there.

    Raises:
        RunError: R608 if there is no remote gateway or no remote egress.
    """
    if location and not (remote.gateways and remote.egress):
        reason = f"--checkpoint {location} needs a remote gateway and a remote egress"
        raise RunError.of("R608", USAGE, reason=reason, fix="give --gateway and --egress, or a directory")


def check_answer(location: str) -> None:
    """Check that the HDFS of a checkpoint answers. Without this check Hadoop would try for a long time.

    An address without a port is not checked: it may name several servers in the configuration of Hadoop.

    Raises:
        RunError: R684 if the server does not answer.
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
