"""Connectors of the connector protocol in a running application: no message twice or lost over deaths of both sides."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.kafka import free_port
from support.run import WAIT_S, Receiver, Run, framed

pytestmark = [pytest.mark.jvm, pytest.mark.long]
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
        assert first.poll() is None, "the first connector was to be killed in flight"
        first.kill()
        first.wait(WAIT_S)
        assert run.last("messages_in") < MESSAGES, "all was sent before the connector was killed"
        second = connector()
        assert second.wait(WAIT_S) == 0, second.stderr and second.stderr.read()
        found = receiver.wait_for_lines(words.total(), run)
        assert run.stop() == 0, run.said()
    assert Counter(found) == Counter(f"{word} {count}" for word, most in words.items() for count in range(1, most + 1))


TABLE = Path(__file__).parent / "connector" / "sqlite_sink.py"
COUNTING = """
import wallaroo
from wallaroo import experimental


class Total:
    count = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(bs):
    return bs.decode()


@wallaroo.key_extractor
def word_of(word):
    return word


@wallaroo.state_computation("count", Total)
def count(word, total):
    total.count += 1
    return f"{word} {total.count}"


@experimental.octet_message_encoder
def encode(text):
    return text


@experimental.octet_message_decoder
def read(bs):
    return bs.decode()


def application_setup(args):
    lines = wallaroo.source("words", wallaroo.TCPSourceConfig("127.0.0.1", "0", decode)).key_by(word_of).to(count)
    sink = experimental.SinkConnectorConfig("table", encode, read, %d, cookie="word")
    return wallaroo.build_application("counting", lines.to_sink(sink))
"""


def test_a_table_has_each_result_once_over_deaths_of_sink_and_egress(tmp_path: Path) -> None:
    app, file, checkpoint = tmp_path / "counting_app.py", tmp_path / "out.sqlite", tmp_path / "checkpoint"
    port = free_port()
    app.write_text(COUNTING % port, encoding="utf-8")
    words = [f"w{number % 37}" for number in range(3000)]

    def rows() -> list[str]:
        with contextlib.closing(sqlite3.connect(file)) as database:
            return [text for (text,) in database.execute("SELECT text FROM result ORDER BY number")]

    with ExitStack() as stack:

        def started(**environment: str) -> "subprocess.Popen[bytes]":
            command = [sys.executable, TABLE, "--application-module", app, "--connector", "table", "--table-file", file]
            sink = subprocess.Popen(list(map(str, command)), env=os.environ | environment)
            stack.callback(lambda: (sink.kill(), sink.wait(WAIT_S)))
            return sink

        sink = started(WALLAROO_FAULT="sink.after_prepare:2")
        run = stack.enter_context(Run(app, None, checkpoint, source="")).ready()
        run.send(framed(word.encode() for word in words[:1000]))
        run.wait_while_alive(lambda: len(rows()) > 0, lambda: "the first rows")
        os.kill(json.loads((checkpoint / "egress.json").read_bytes())["pid"], signal.SIGKILL)
        run.send(framed(word.encode() for word in words[1000:2000]))
        run.wait_while_alive(lambda: sink.poll() is not None, lambda: "the sink to die at its point")
        run.send(framed(word.encode() for word in words[2000:]))
        started()
        run.wait_while_alive(lambda: len(rows()) >= len(words), lambda: f"all rows, have {len(rows())}")
        assert run.stop() == 0, run.said()
    totals: Counter[str] = Counter()
    expected = []
    for word in words:
        totals[word] += 1
        expected.append(f"{word} {totals[word]}")
    found = rows()
    assert sorted(found) == sorted(expected)
    assert [line for line in found if line.startswith("w5 ")] == [line for line in expected if line.startswith("w5 ")]
