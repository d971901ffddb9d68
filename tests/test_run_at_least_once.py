"""A connector sends a file to a word count; gateway and connector are killed meanwhile: no word twice or lost."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from run import WAIT_S, Receiver, Run, framed

pytestmark = pytest.mark.jvm
MESSAGES = 6000
APPLICATION = """
import wallaroo
from wallaroo import experimental


class Total:
    def __init__(self):
        self.count = 0


@experimental.octet_message_decoder
def decode(bs):
    return bs.decode()


@wallaroo.computation_multi("split")
def split(line):
    return line.split()


@wallaroo.key_extractor
def word_of(word):
    return word


@wallaroo.state_computation("count", Total)
def count(word, total):
    total.count += 1
    return f"{word} {total.count}\\n"


@wallaroo.encoder
def encode(text):
    return text


def application_setup(args):
    _, port = wallaroo.tcp_parse_input_addrs(args)[0]
    config = experimental.SourceConnectorConfig(
        "feed", None, decode, port, cookie="word", max_credits=500, refill_credits=250
    )
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    lines = wallaroo.source("lines", config).to(split).key_by(word_of).to(count)
    return wallaroo.build_application("words", lines.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode)))
"""
CONNECTOR = """
import sys
from wallaroo import experimental

path, host, port = sys.argv[1:]
source = experimental.FramedFileReader(path)
connector = experimental.MultiSourceConnector("0.0.1", "word", "sender", "one", host, port, delay=0.002)
connector.add_source(source)
connector.start()
connector.join()
sys.exit(f"{connector.failure}" if connector.failure else 0)
"""


def test_counts_are_exact_over_deaths_of_gateway_and_connector(tmp_path: Path) -> None:
    app, file = tmp_path / "app.py", tmp_path / "lines"
    app.write_text(APPLICATION, encoding="utf-8")
    lines = [f"alpha w{number % 700} w{number % 13}" for number in range(MESSAGES)]
    file.write_bytes(framed(line.encode() for line in lines))
    words = Counter(word for line in lines for word in line.split())
    checkpoint = tmp_path / "checkpoint"
    with Receiver() as receiver, ExitStack() as stack:
        with socket.create_server(("127.0.0.1", 0)) as free:  # a gateway that dies must listen there again
            host, port = free.getsockname()
        run = stack.enter_context(Run(app, receiver, checkpoint, source=f"{host}:{port}")).ready()

        def connector() -> "subprocess.Popen[str]":
            command = [sys.executable, "-c", CONNECTOR, str(file), host, str(port)]
            process = stack.enter_context(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
            stack.callback(process.kill)
            return process

        first = connector()
        run.wait_for("messages_in", MESSAGES // 10)
        os.kill(json.loads((checkpoint / "gateway.json").read_bytes())["pid"], signal.SIGKILL)
        run.wait_for("messages_in", MESSAGES // 3)
        assert first.poll() is None, "the first connector was to be killed at work"
        first.kill()
        first.wait(WAIT_S)
        assert run.last("messages_in") < MESSAGES, "all was sent before the connector was killed"
        second = connector()
        assert second.wait(WAIT_S) == 0, second.stderr and second.stderr.read()
        found = receiver.wait_for_lines(words.total(), run)
        assert run.stop() == 0, run.said()
    assert Counter(found) == Counter(f"{word} {count}" for word, most in words.items() for count in range(1, most + 1))
