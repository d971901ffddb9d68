"""Each socket at which a process of a run listens is in SECURITY.md, and gives another user of the machine nothing."""

import os
import re
import struct
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from support.case import Case
from support.run import MODES, TESTS, Receiver, Run, framed, wait_until
from support.sockets import CLOSED, SILENT, Listener, as_stranger, listeners_of, processes_with
from support.standalone import SPARK_CLASS

pytestmark = pytest.mark.jvm
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


def check(found: list[Listener], expected: Counter[str]) -> None:
    """Compare the sockets of TCP with those that are expected, and knock at each."""
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


@pytest.mark.parametrize(("mode", "language"), [("microbatch", "python"), ("realtime", "go")])
def test_other_users_get_nothing_of_a_run(mode: str, language: str, tmp_path: Path) -> None:
    with (
        Receiver() as receiver,
        Run(Case("word_count").app(language), receiver, tmp_path / "c", *MODES[mode], **{MARK: str(tmp_path)}) as run,
    ):
        run.ready().send(framed([b"a b"]))
        receiver.wait_for_lines(2, run)
        found = listeners_of(processes_with(f"{MARK}={tmp_path}"))
        check(found, Counter({"monitor": 1, OPEN: 1, "Py4J of the driver's Java": 3}))


def test_master_of_the_documentation_has_no_other_sockets(tmp_path: Path) -> None:
    """The master of Spark 4 opens a REST server by default, which runs anyone's programs as its user."""
    text = (TESTS.parent / "docs" / "operators.md").read_text(encoding="utf-8")
    (written,) = re.findall(r"spark-defaults\.conf <<END\n(.*?)^END$", text, re.DOTALL | re.MULTILINE)
    (listed,) = re.findall(r"^```properties\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert re.findall(r"^\S+", listed, re.MULTILINE) == re.findall(r"^\S+", written, re.MULTILINE)
    tmp_path.joinpath("spark-defaults.conf").write_text(written, encoding="utf-8")
    host, log = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"), tmp_path / "log"
    with log.open("wb") as output:
        master = subprocess.Popen(
            [str(SPARK_CLASS), "org.apache.spark.deploy.master.Master", *host], stdout=output, stderr=output,
            stdin=subprocess.DEVNULL, env=os.environ | {"SPARK_CONF_DIR": str(tmp_path)},
        )  # fmt: skip
    try:
        wait_until(lambda: "New state: ALIVE" in log.read_text(), log.read_text)
        rpc, page = sorted(listeners_of([master.pid]), key=lambda each: "'MasterUI'" in line_with(log, each))
        assert REFUSED.match(as_stranger(rpc, QUESTIONS["a request of Spark's RPC"]))
        assert b"POST is not supported" in as_stranger(page, b"POST /app/kill/ HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
    finally:
        master.kill()
        master.wait()


def line_with(log: Path, listener: Listener) -> str:
    """Return the first line of a log with a socket's port."""
    return next(line for line in log.read_text().splitlines() if re.search(rf"\b{listener.target[1]}\b", line))
