"""Sockets of Spark's master, as the documentation starts it.

Those of runs: test_run_word_count.py and test_run_shared_state.py (micro-batches, Python and Go), test_monitor_modes.py
(real-time mode).
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from support.run import TESTS, wait_until
from support.sockets import Listener, as_stranger, listeners_of
from support.standalone import SPARK_CLASS
from support.strangers import QUESTIONS, REFUSED
from wallaroo_runtime.system.java import QUICK_JAVA

pytestmark = pytest.mark.jvm


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
            [str(SPARK_CLASS), "org.apache.spark.deploy.master.Master", *host], stdin=subprocess.DEVNULL,
            stdout=output, stderr=output,
            env={**os.environ, "SPARK_CONF_DIR": str(tmp_path), "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA},
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
