"""Reads the address of the Spark master: how many tasks it runs, and whether a cluster answers there."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.machine.yarn import resource_managers

CLUSTER_PARTITIONS = 16
SUBMITTED = "PYSPARK_GATEWAY_PORT"  # set by spark-submit, which has already reached the master
CONNECT_S = 5.0
STANDALONE_PORT = 7077
REST_PORT, REST_S, REST_BYTES = 6066, 1.0, 4096
REST_QUESTION, REST_MARK = "/v1/submissions/status/none", b"SubmissionStatusResponse"
KINDS = ("local", "local[N]", "spark://HOST:PORT", "yarn", "k8s://https://HOST:PORT")


def cores(master: str) -> int | None:
    """Return the number of tasks that run at once on a local master; None for a cluster, where only Spark knows this.

    Example:
        >>> cores("local"), cores("local[3]"), cores("spark://host:7077")
        (1, 3, None)
    """
    if master == "local":
        return 1
    local = re.fullmatch(r"local\[(\*|0*[1-9][0-9]*)(?:\s*,\s*[0-9]+)?\]", master, re.ASCII)
    if local is None:
        return None
    return len(os.sched_getaffinity(0)) if local[1] == "*" else int(local[1])


def cluster_of(master: str) -> str:
    """Return the master if it is the master of a cluster; empty if it is local.

    Example:
        >>> cluster_of("yarn"), cluster_of("local[2]")
        ('yarn', '')
    """
    return "" if cores(master) else master


def shuffle_partitions(master: str) -> int:
    """Return the number of shuffle partitions of a new checkpoint: one for each core of a local master."""
    return cores(master) or CLUSTER_PARTITIONS


def check_master(master: str) -> None:
    """Refuse a cluster that does not answer. Spark itself would try for a minute and then print many lines.

    Raises:
        RunError: R659 if no address of the master takes a connection.
    """
    if cores(master) or SUBMITTED in os.environ:
        return
    reasons = []
    for host, port in _addresses(master):
        try:
            socket.create_connection((host, port), timeout=CONNECT_S).close()
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    if reasons:
        fix = "check the address; start the master, or open the port for this machine"
        raise RunError.of("R659", master=master, reason="; ".join(reasons), fix=fix)


def open_rest_servers(master: str) -> Iterator[str]:
    """Yield the addresses at which a standalone master takes programs over HTTP from everyone, as Spark 4 does.

    A server at another port than Spark's default is not found.
    """
    if not master.startswith("spark://"):
        return
    for host in dict.fromkeys(host for host, _ in _addresses(master)):
        connection = HTTPConnection(host, REST_PORT, timeout=REST_S)
        with suppress(OSError, HTTPException), closing(connection):
            connection.request("GET", REST_QUESTION)
            if REST_MARK in connection.getresponse().read(REST_BYTES):
                yield f"{host}:{REST_PORT}"


def _addresses(master: str) -> Iterator[tuple[str, int]]:
    """Yield host and port of each address at which a cluster takes connections."""
    if master == "yarn":
        yield from resource_managers(os.environ)
        return
    match = re.fullmatch(r"(spark://|k8s://)(.+)", master)
    if match is None:
        raise _unknown(master, "it is no address of one")
    for text in match[2].split(",") if match[1] == "spark://" else [match[2]]:
        url = urlsplit(text if "://" in text else f"//{text}")
        default = STANDALONE_PORT if match[1] == "spark://" else 80 if url.scheme == "http" else 443
        try:
            port = url.port or default
        except ValueError as error:
            raise _unknown(master, str(error)) from error
        if not url.hostname:
            raise _unknown(master, "it names no host")
        yield url.hostname, port


def _unknown(master: str, reason: str) -> RunError:
    return RunError.of("R659", master=master, reason=reason, fix=f"give one of {', '.join(KINDS)}")
