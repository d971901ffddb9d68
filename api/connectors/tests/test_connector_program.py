"""Tests the connector programs: required libraries and parameters, results of decoders, accepted connectors."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo import WallarooParameterError
from wallaroo_connectors import kafka_sink, kafka_source, kinesis_source, program

FOLDER = Path(program.__file__).parent
SECONDS = 90
RESET = b"\1\0\0\0\0\0\0\0"
APPLICATION = """
import wallaroo
from wallaroo import experimental


def application_setup(args):
    source = experimental.SourceConnectorConfig("feed", text, read, {feed})
    careful = experimental.SourceConnectorConfig("careful", octets, octets, 7101, cookie="word")
    sink = experimental.SinkConnectorConfig("out", text, read, 7200)
    lines = [wallaroo.source(f"line {{number}}", config) for number, config in enumerate((source, careful))]
    return wallaroo.build_application("app", lines[0].merge(lines[1]).to_sink(sink))


@experimental.stream_message_encoder
def text(data):
    return data


@experimental.stream_message_decoder
def read(bs):
    return bs


@experimental.octet_message_decoder
def octets(bs):
    return bs
"""
# The signal comes at a moment when the main thread holds the lock of the event that the signal sets.
LOCKED = """
import os, sys

caller = sys._getframe()
while caller.f_code.co_name != "_run":
    caller = caller.f_back
with caller.f_locals["stop"]._cond:
    os.kill(os.getpid(), 15)
"""


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem.endswith(("_source", "_sink")))


def said(name: str, *arguments: str, **environment: str) -> tuple[int, str]:
    """Run a connector program to its end. Return its exit code and its output."""
    command = [Path(sys.executable).with_name(name), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=SECONDS, check=False, env=os.environ | environment
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def app(tmp_path: Path) -> list[str]:
    file = tmp_path / f"program_app_{tmp_path.name}.py"
    file.write_text(APPLICATION.format(feed=7100), encoding="utf-8")
    return ["--application-module", str(file)]


def test_every_program_is_a_command() -> None:
    commands = {
        entry.name: entry.value
        for entry in metadata.entry_points(group="console_scripts")
        if entry.value.startswith("wallaroo_connectors.")
    }
    assert commands == {name: f"wallaroo_connectors.{name}:main" for name in names()}
    assert len(commands) == 15


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_help_shows_the_command_line(name: str) -> None:
    code, text = said(name, "--help")
    assert code == 0
    assert f"    {name} --application-module" in text


PASSING = ("_MAX_POLL_EXCEEDED", "_TRANSPORT", "_ALL_BROKERS_DOWN")


@given(st.lists(st.sampled_from([b"value", None, *PASSING, "UNKNOWN_TOPIC_OR_PART", "GROUP_AUTHORIZATION_FAILED"])))
def test_a_kafka_source_goes_on_after_errors_that_pass(events: list[Any]) -> None:
    """E.g. the client reports that it was not called for 5 minutes, because the application took no messages."""
    waiting, stop, stored = list(events), mock.Mock(is_set=lambda: not waiting), list[Any]()
    connector = mock.Mock(params=mock.Mock(topics="one"))

    def poll(seconds: float) -> Any:
        event = waiting.pop(0)
        code = getattr(confluent_kafka.KafkaError, event) if isinstance(event, str) else None
        error = None if code is None else confluent_kafka.KafkaError(code)
        return mock.Mock(error=lambda: error, value=lambda: event)

    consumer = mock.Mock(poll=poll, store_offsets=stored.append)
    errors = {name: getattr(confluent_kafka, name) for name in ("KafkaError", "KafkaException")}
    kafka = mock.Mock(Consumer=lambda settings: consumer, **errors)
    lasting = [at for at, event in enumerate(events) if isinstance(event, str) and event not in PASSING]
    expects: Any = pytest.raises(confluent_kafka.KafkaException) if lasting else contextlib.nullcontext()
    of_module = mock.patch.multiple(kafka_source, library=lambda *_: kafka, connect=mock.Mock())
    with of_module, expects:
        kafka_source.serve(connector, stop)
    read = events[: lasting[0]] if lasting else events
    assert connector.write.call_count == read.count(b"value")
    assert len(stored) == read.count(b"value") + read.count(None)
    consumer.close.assert_called_once()


@given(st.lists(st.booleans(), min_size=5, max_size=40))
def test_a_shard_is_read_at_most_five_times_a_second_however_busy_it_is(has_records: list[bool]) -> None:
    """The clock of this test moves only while the program waits."""
    now, reads = 0.0, list[float]()
    stop, connector, sdk = mock.Mock(is_set=lambda: False), mock.Mock(), mock.Mock()

    def wait(seconds: float) -> None:
        nonlocal now
        now += seconds

    def read(ShardIterator: int) -> dict[str, Any]:  # noqa: N803
        reads.append(now)
        records = [{"Data": b"record"}] * has_records[ShardIterator - 1]
        return {"Records": records} | ({"NextShardIterator": ShardIterator - 1} if ShardIterator > 1 else {})

    stop.wait = wait
    sdk.client.return_value = mock.Mock(
        get_records=read, get_shard_iterator=lambda **_: {"ShardIterator": len(has_records)}
    )
    with mock.patch.object(kinesis_source, "library", lambda *_: sdk), mock.patch.object(kinesis_source, "connect"):
        kinesis_source.serve(connector, stop)
    assert connector.write.call_count == sum(has_records)
    assert len(reads) == len(has_records)
    assert all(later - first > 0.99 for first, later in zip(reads, reads[5:], strict=False))


@pytest.mark.slow
def test_a_missing_library_names_its_extra(app: list[str], tmp_path: Path) -> None:
    (tmp_path / "redis.py").write_text("raise ImportError('no redis here')")
    arguments = [*app, "--connector", "out", "--out-key", "k"]
    code, text = said("redis_hash_sink", *arguments, PYTHONPATH=str(tmp_path))
    assert code == 2
    expected = "R728 this connector needs the package redis; no redis here"
    assert text == f"{expected}\n  fix: {sys.executable} -m pip install 'wallaroo-connectors[redis]'\n"


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [(program.octets, 5, "bytes or text"), (program.pair, b"ab", "a pair of key and value"),
     (program.row, (), "a tuple of fields")],
)  # fmt: skip
def test_what_a_decoder_may_not_give(function: Any, value: Any, expected: str) -> None:
    with pytest.raises(WallarooParameterError) as caught:
        function(value)
    (finding,) = caught.value.diagnostics
    assert (finding.code, finding.message) == (
        "C503",
        f"the connector's decoder: returned {value!r}; expected {expected}",
    )


def test_what_a_decoder_may_give() -> None:
    assert [program.octets(value) for value in (b"a", bytearray(b"b"), "é")] == [b"a", b"b", "é".encode()]
    assert (program.pair(["k", 1]), program.row([1, 2, 3])) == (("k", 1), (1, 2, 3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "connector", "expected"),
    [
        ("udp_sink", "feed", 'T269 connector "feed" is a source; this program is for a sink without a cookie'),
        ("udp_source", "out", 'T269 connector "out" is a sink; this program is for a source without a cookie'),
        (
            "udp_source",
            "careful",
            'T269 connector "careful" is a source that has a cookie; this program is for a source without a cookie',
        ),
    ],
)
def test_a_program_refuses_what_it_is_not_for(app: list[str], name: str, connector: str, expected: str) -> None:
    at = [f"--{connector}-host", "127.0.0.1", f"--{connector}-port", "0"]
    code, text = said(name, *app, "--connector", connector, *at)
    assert (code, text.splitlines()[0]) == (2, expected)


@pytest.fixture
def feeding(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Yield a function that starts `udp_source` for an application at a port, with more code."""
    with ExitStack() as stack:

        def started(port: int, more: str = "") -> "subprocess.Popen[str]":
            file = tmp_path / f"feeding_app_{tmp_path.name}.py"
            file.write_text(APPLICATION.format(feed=port) + more, encoding="utf-8")
            command = [str(Path(sys.executable).with_name("udp_source")), "--application-module", str(file)]
            command += ["--connector", "feed", "--feed-host", "127.0.0.1", "--feed-port", "0"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield started


def address_of(process: "subprocess.Popen[str]") -> tuple[str, int]:
    """Return the address at which a program listens, from its output."""
    assert process.stdout is not None
    host, _, port = process.stdout.readline().split()[-1].rpartition(":")
    return host, int(port)


@pytest.fixture
def sender() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as found:
        yield found


@pytest.mark.slow
def test_a_broken_connection_ends_a_program(feeding: Any, sender: socket.socket) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(SECONDS)
        process = feeding(server.getsockname()[1])
        connection, _ = server.accept()
        address = address_of(process)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.close()
    deadline = time.monotonic() + SECONDS
    while process.poll() is None:
        assert time.monotonic() < deadline, "the program did not see the broken connection"
        sender.sendto(b"x", address)
    errors = process.stderr.read()
    assert process.returncode == 1
    assert errors.startswith("R692 the connector ended; UnexpectedSocketError: [Errno ")
    assert errors.endswith("fix: correct the error, and start the connector again\n")


@pytest.mark.slow
def test_a_source_waits_for_its_application_and_ends_when_all_is_safe(feeding: Any, sender: socket.socket) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        process = feeding(server.getsockname()[1])
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        server.listen()
        server.settimeout(SECONDS)
        connection, _ = server.accept()
    connection.settimeout(SECONDS)
    sender.sendto(b"one", address_of(process))
    with connection, connection.makefile("rb") as received:
        assert received.read(15) == b"\x0b\0\0\0" + bytes(8) + b"one"
        process.send_signal(signal.SIGTERM)
        assert received.read() == b""
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
    assert process.wait(SECONDS) == 0


@pytest.mark.slow
def test_a_source_that_waits_for_its_application_can_be_ended(feeding: Any) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        process = feeding(server.getsockname()[1])
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 0
    assert process.stderr.read() == ""


@pytest.mark.slow
def test_a_signal_at_an_unlucky_moment_ends_a_program(feeding: Any) -> None:
    process = feeding(1, LOCKED)
    assert process.wait(SECONDS) == 0
    assert process.stderr.read() == ""


@pytest.mark.slow
def test_programs_need_nothing_but_the_standard_library_to_be_imported() -> None:
    clients = ["redis", "pika", "psycopg", "boto3", "confluent_kafka"]
    code = (
        f"import sys, importlib; sys.modules.update(dict.fromkeys({clients}));"
        f"[importlib.import_module(f'wallaroo_connectors.{{name}}') for name in {names()}]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr


class FullProducer:
    """A client of Kafka that holds few records: it refuses more until it was polled with a time."""

    def __init__(self, room: int) -> None:
        self.room, self.held, self.written = room, list[tuple[bytes, Any]](), list[bytes]()

    def produce(self, topic: str, value: bytes, key: bytes | None, on_delivery: Any) -> None:
        if len(self.held) >= self.room:
            raise BufferError
        self.held.append((value, on_delivery))

    def poll(self, timeout_s: float) -> None:
        if timeout_s:
            self.flush()

    def flush(self, timeout_s: float = 0) -> int:
        for value, on_delivery in self.held:
            self.written.append(value)
            on_delivery(None, None)
        self.held.clear()
        return 0

    def __len__(self) -> int:
        return len(self.held)


@given(st.lists(st.binary(max_size=3)), st.integers(1, 4))
def test_a_kafka_sink_waits_while_the_client_takes_no_more(values: list[bytes], room: int) -> None:
    """Large records fill the client's memory long before there are many."""
    stop, producer, left = threading.Event(), FullProducer(room), [(None, value) for value in values]

    def read(_: float) -> Any:
        if left:
            return left.pop(0)
        stop.set()
        raise TimeoutError

    connector, kafka = mock.Mock(read=read), mock.Mock(Producer=lambda settings: producer)
    with mock.patch.object(kafka_sink, "library", return_value=kafka):
        kafka_sink.serve(connector, stop)
    assert producer.written == values
