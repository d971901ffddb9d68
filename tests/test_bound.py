"""The bounds of a run: a sink that does not read, a journal that is full, an outbox that is full."""

import json
import re
import socket
import threading
from contextlib import closing
from pathlib import Path

import pytest

from support.case import CASES
from support.run import TESTS, WAIT_S, Receiver, Run, finish, framed, wallaroo

pytestmark = [pytest.mark.jvm, pytest.mark.long]
MESSAGES, PAYLOAD = 24_000, 1000  # more than the kernel's buffers, journal and outbox hold together
JOURNAL, OUTBOX = 2 << 20, 64 << 10
COUNT = TESTS / "bench" / "count"
RUN_AHEAD = 4 << 20  # what the gateway reads and gathers beyond its limit, and one journal frame


class Sluggish:
    """A receiver that accepts and reads nothing until it is asked to."""

    def __init__(self) -> None:
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.data = bytearray()
        self.wakes = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        connection = self.listener.accept()[0]
        with connection:
            if self.wakes.wait(2 * WAIT_S):
                while block := connection.recv(1 << 20):
                    self.data += block

    def close(self) -> None:
        self.wakes.set()
        self.listener.close()


def conf(*settings: str) -> tuple[str, ...]:
    return tuple(f"--conf=spark.wallaroo.{each}" for each in settings)


def size_of(directory: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in directory.glob(pattern))


def test_a_sink_that_does_not_read_stops_the_sender_and_loses_nothing(tmp_path: Path) -> None:
    payloads = [b"%08d" % number * (PAYLOAD // 8) for number in range(MESSAGES)]
    options = conf("journal.maxBytes=2MiB", "outbox.maxBytes=64KiB", "journal.fsync=never")
    with (
        closing(Sluggish()) as sink,
        Run(CASES / "reverse" / "app.py", sink, tmp_path / "c", *options) as run,  # type: ignore[arg-type]
        run.ready().connect() as connection,
    ):
        config = json.loads((tmp_path / "c" / "gateway" / "attachment.json").read_text(encoding="utf-8"))["config"]
        assert (config["fsync"], config["backlog_bytes"]) == ("never", str(JOURNAL))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        sender = threading.Thread(target=connection.sendall, args=(framed(payloads),), daemon=True)
        sender.start()
        run.wait_while_alive(lambda: "R625" in "".join(run.errors), lambda: "R625")
        status = tmp_path / "c" / "gateway.json"
        run.wait_while_alive(
            lambda: not json.loads(status.read_bytes())["reads"], lambda: f"a full journal: {status.read_text()}"
        )
        assert sender.is_alive(), "nothing holds the sender back"
        assert size_of(tmp_path / "c" / "journal", "*.journal") < 2 * JOURNAL + RUN_AHEAD
        assert size_of(tmp_path / "c" / "outbox", "*.frames") < OUTBOX + JOURNAL + 2 * RUN_AHEAD
        sink.wakes.set()
        sender.join(WAIT_S)
        finish(connection)
        expected = MESSAGES * (8 * (PAYLOAD // 8) + 1)
        run.wait_while_alive(lambda: len(sink.data) >= expected, lambda: f"{expected} bytes, have {len(sink.data)}")
        assert sink.data.decode().splitlines() == [payload.decode()[::-1] for payload in payloads]
        findings = [line for line in run.errors if "R625" in line]
        pattern = r"the outbox holds \d+ bytes that no sink has accepted; the limit is 65536; the query waits"
        assert all(re.search(pattern, line) for line in findings)
        assert run.stop() == 0, run.said()


def test_a_run_that_waits_for_a_sink_can_be_stopped_and_goes_on(tmp_path: Path) -> None:
    """The sink is down at the start; the second run has one and delivers everything."""
    down, options, checkpoint = Receiver(), conf("outbox.maxBytes=0"), tmp_path / "c"
    down.close()
    with Run(CASES / "reverse" / "app.py", down, checkpoint, *options) as run:
        run.ready().send(framed([b"abc"]))
        run.wait_for("messages_processed", 1)
        run.send(framed([b"def"]))
        run.wait_while_alive(lambda: "R625" in "".join(run.errors), lambda: "R625")
        assert run.last("messages_processed") == 1
        assert run.stop() == 0, run.said()
    with Receiver() as receiver, Run(CASES / "reverse" / "app.py", receiver, checkpoint, *options) as run:
        run.ready()
        assert receiver.wait_for_lines(2, run) == ["cba", "fed"]
        assert run.stop() == 0, run.said()


def test_a_run_that_waits_for_a_sink_that_is_away_is_idle(tmp_path: Path) -> None:
    down, checkpoint = Receiver(), tmp_path / "c"
    options = (*conf("outbox.maxBytes=0"), "--stop-when-idle", "20")
    down.close()
    with Run(CASES / "reverse" / "app.py", down, checkpoint, *options) as run:
        run.ready().send(framed([b"abc"]))
        run.wait_for("messages_processed", 1)
        run.send(framed([b"def"]))
        assert run.end(WAIT_S) == 0, run.said()
        assert "R625" in "".join(run.errors)
        assert run.last("messages_processed") == 1
    with Receiver() as receiver, Run(CASES / "reverse" / "app.py", receiver, checkpoint, *options) as run:
        assert receiver.wait_for_lines(2, run.ready()) == ["cba", "fed"]
        assert run.end(WAIT_S) == 0, run.said()


@pytest.mark.parametrize("program", [COUNT, COUNT / "app.py"], ids=["go", "python"])
def test_a_cache_smaller_than_the_state_is_exact(program: Path, tmp_path: Path) -> None:
    """With room for nothing every call reads its bucket's log again."""
    with Receiver() as receiver, Run(program, receiver, tmp_path / "c", *conf("state.cacheBytes=1")) as run:
        run.ready()
        for batch in range(1, 4):
            run.send(framed(b"k%d" % key for key in range(500)))
            lines = receiver.wait_for_lines(500 * batch, run)[500 * (batch - 1) :]
            assert sorted(lines) == sorted(f"k{key} {batch}" for key in range(500))
        assert run.stop() == 0, run.said()


@pytest.mark.parametrize(
    ("setting", "fix"),
    [
        ("journal.maxBytes=lots", "give bytes, e.g. 1000000 or 64MiB"),
        ("outbox.maxBytes=-1", "give bytes, e.g. 1000000 or 64MiB"),
        ("journal.fsync=often", "give one of batch, interval, never"),
        ("outbox.maxByte=1", "did you mean spark.wallaroo.outbox.maxBytes?"),
    ],
)
def test_settings_of_ours_are_checked(setting: str, fix: str) -> None:
    ended = wallaroo("run", "app.py", *conf(setting))
    assert ended.returncode == 2
    assert f"R608 --conf spark.wallaroo.{setting}" in ended.stderr and f"fix: {fix}\n" in ended.stderr
