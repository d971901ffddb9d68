"""A question about states while a worker runs user code."""

import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from support.memory_query import query_of
from wallaroo.worker.host import call
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.memory.start import start

SLOW = """
import threading

import wallaroo

begun, goes_on = threading.Event(), threading.Event()

class Count:
    value = 0

@wallaroo.key_extractor
def key(line):
    return line

@wallaroo.state_computation("count", state=Count)
def count(line, state):
    state.value += 1
    if state.value > 1:
        begun.set()
        goes_on.wait()

@wallaroo.line_decoder
def decode(data):
    return data.decode()

@wallaroo.encoder
def encode(line):
    return line

def application_setup(args):
    end = ("127.0.0.1", "0", decode)
    return wallaroo.build_application(
        "Slow", wallaroo.source("lines", wallaroo.TCPSourceConfig(*end)).key_by(key).to(count)
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", "1", encode)))
"""


def test_a_worker_that_is_busy_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow_program.py").write_text(SLOW)
    monkeypatch.setattr(call, "SHOW_WAIT_S", 0.1)
    with closing(start(str(tmp_path / "slow_program.py"), [])) as run:
        program = sys.modules["slow_program"]
        run.send([b"a"])
        sender = threading.Thread(target=run.send, args=([b"a"],))
        sender.start()
        try:
            assert program.begun.wait(60)
            with pytest.raises(RunError, match='W431 worker "main" has run user code for more than 0.1 s'):
                list(query_of(run).page("count")[1])
        finally:
            program.goes_on.set()
            sender.join()
        _, rows = query_of(run).page("count")
        assert [row["value"] for row in rows] == [{"value": 2}]
