"""Sockets of a run: SECURITY.md has each, and they give another user of the machine nothing."""

import re
import struct
from collections import Counter

from support.run import TESTS
from support.sockets import CLOSED, SILENT, Listener, as_stranger, listeners_of, processes_with

MARK = "WALLAROO_TEST_SOCKETS"
OPEN = "sources"
# Beginnings of names in SECURITY.md, by what has the socket: its command line and its address.
TCP = {
    "monitor": r"/wallaroo run |cli\.driver run ",
    OPEN: r"wallaroo_runtime\.gateway ",
    "Py4J of the driver's Java": r"bin/java .*pyspark-shell",  # and two of Spark's
}
UNIX = {
    "gateway and egress of a local run": r"wallaroo_runtime\.(gateway|egress) .*",
    "worker and supervisor": r".*/\w+-[0-9a-f]+/\.?(worker|supervisor)[-.\w]*",
    "the driver's accumulators": r".*/\.[-0-9a-f]{36}\.sock",
}
RPC_REQUEST, RPC_RESPONSE, BODY = 3, 4, b"\0"
QUESTIONS = {
    "a command of Py4J": b"r\nu\njava\ne\n",
    "a command for PySpark's callback server": b"g\np0\ne\n",
    "a page": b"GET /api/v1/status HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",
    "a request of Spark's RPC": struct.pack(">QBQI", 8 + 13 + len(BODY), RPC_REQUEST, 7, len(BODY)) + BODY,
}
REFUSED = re.compile(
    rb"HTTP/1.\d 40[0134]|<!DOCTYPE HTML>.*Error response|![xz]|.{8}\x05.*(?i:auth|sasl|challenge)|"
    + CLOSED
    + b"|"
    + SILENT,
    re.DOTALL,
)


def name_of(listener: Listener) -> str:
    """Return what SECURITY.md calls a socket; empty: it has no name."""
    patterns = UNIX if listener.is_unix else TCP
    text = f"{listener.command} {listener.address}" if listener.is_unix else listener.command
    return next((name for name, pattern in patterns.items() if re.search(pattern + "$" * listener.is_unix, text)), "")


def check_sockets(mark: str, sources: int = 1) -> None:
    """Compare the sockets of a run's processes with those that are expected, and knock at each of TCP.

    Args:
        mark: Value of the variable MARK in the environment of the run.
        sources: How many sources listen.
    """
    found = listeners_of(processes_with(f"{MARK}={mark}"))
    expected = Counter({"monitor": 1, OPEN: sources, "Py4J of the driver's Java": 3})
    listed = re.findall(r"^\| ([^|]+?) \|", (TESTS.parent / "SECURITY.md").read_text(encoding="utf-8"), re.MULTILINE)
    names = {listener: name_of(listener) for listener in found}
    for listener, name in names.items():
        assert name and any(row.startswith(name) for row in listed), f"SECURITY.md has no line for {listener}"
    counts = Counter(name for listener, name in names.items() if not listener.is_unix)
    assert counts == expected, "\n".join(f"{each.pid} {each.address} {each.command[-200:]}" for each in found)
    for listener, name in names.items():
        if listener.is_unix:
            assert listener.is_closed_to_others(), listener
        elif name != OPEN:
            for what, question in QUESTIONS.items():
                answer = as_stranger(listener, question)
                assert REFUSED.match(answer), f"{listener} takes {what} of another user: {answer[:200]!r}"
