"""An application between topics of a real broker."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from support.kafka import Broker
from support.run import WALLAROO, wallaroo
from wallaroo_runtime.topology.canonical import interface_hash
from wallaroo_runtime.topology.load import load_document

ROOT = Path(__file__).parents[2]


PLAIN_WORKER = ROOT / "runtime" / "tests" / "plain_worker.py"


VALID = ROOT / "topology-schema" / "vectors" / "topologies" / "valid"


WORKER = json.loads((VALID / "word_count.json").read_bytes())["workers"][0]


DEADLINE_S = 400.0


PARTITIONS = 3


def document(broker: Broker, name: str, *, once: bool = False, **source: Any) -> dict[str, Any]:
    """Return an application that counts the words of topic NAME-in into topic NAME-out, with `once` exactly once."""
    part = {"codec": "native", "worker": "main"}
    key = {"kind": "partition", "values": [], "unknown": "create"}
    kafka = {"kind": "kafka", "brokers": [broker.address], "options": {}}
    records = {"topic": f"{name}-in", "start": "start", "max_message_bytes": 1000, **source}
    steps = [
        {"name": "split", "kind": "computation_multi", "inputs": ["0/sources/0"]},
        {"name": "count", "kind": "state_computation", "inputs": ["0/steps/0"],
         "state": {"name": "counts", "codec": "native", "key": key}},
    ]  # fmt: skip
    pipeline = {
        "name": name,
        "sources": [{"path": "0/sources/0", "name": "in", **part, **kafka, **records}],
        "steps": [{"path": f"0/steps/{number}", **step, **part} for number, step in enumerate(steps)],
        "sinks": [{"path": "0/sinks/0", "name": "out", **kafka, "topic": f"{name}-out", "inputs": ["0/steps/1"],
                   "worker": "main"}],
    }  # fmt: skip
    if once:
        pipeline["sinks"][0]["exactly_once"] = True
    worker = {**WORKER, "language": "plain", "command": ["{python}", str(PLAIN_WORKER)], "directory": "/"}
    worker |= {"components": [], "args": ["any-hash"]}
    value = {"topology_version": 1, "name": name, "workers": [worker], "pipelines": [pipeline]}
    worker["interface_hash"] = interface_hash(load_document(value))
    return value


class Application:
    """A run of the command `wallaroo`, which may be started again on its checkpoint."""

    def __init__(self, directory: Path, app: Path, *arguments: str) -> None:
        self.directory, self.app, self.arguments = directory, app, arguments
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str) -> None:
        """Start it; returns at once."""
        command = [WALLAROO, "run", self.app, *self.arguments, "--checkpoint", self.directory / "checkpoint", *options]
        with (self.directory / "output").open("ab") as output:
            self.process = subprocess.Popen(
                ["env", f"TMPDIR={self.directory}", *map(str, [*command, "--master", "local[2]"])],
                stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip

    def output(self) -> str:
        """Return what it has printed."""
        return (self.directory / "output").read_text()

    def away(self) -> list[str]:
        """Return the lines of `wallaroo status` about sources and sinks that are away now."""
        done = wallaroo("status", self.directory / "checkpoint")
        return [line for line in done.stdout.splitlines() if line.startswith(("source ", "sink "))]

    def end(self, number: int = signal.SIGTERM) -> int:
        """End it by a signal."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)

    def wait(self) -> int:
        """Wait until it ends by itself."""
        assert self.process is not None
        return self.process.wait(DEADLINE_S)


Make = Callable[..., Application]


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Make]:
    """Give a function that makes an application of a document or a program; what runs is ended afterwards."""
    made: list[Application] = []

    def make(app: dict[str, Any] | Path, *arguments: str) -> Application:
        if isinstance(app, dict):
            (tmp_path / "topology.json").write_text(json.dumps(app))
            app = tmp_path / "topology.json"
        made.append(Application(tmp_path, app, *arguments))
        return made[-1]

    yield make
    for each in made:
        if each.process is not None and each.process.poll() is None:
            each.end()


class Topic:
    """The records `WORD => COUNT NONCE` of a topic, read as they come.

    Attributes:
        records: How many there are.
        counts: Each word's counts.
    """

    def __init__(self, broker: Broker, topic: str) -> None:
        settings = {"bootstrap.servers": broker.address, "group.id": topic, "auto.offset.reset": "earliest"}
        self._consumer = Consumer({**settings, "reconnect.backoff.ms": 1000, "log_level": 0})
        self._consumer.subscribe([topic])
        self.records = 0
        self.counts: dict[str, set[int]] = {}

    def read_words(self, count: int, application: Application) -> None:
        """Read until there are so many words."""
        self.read_until(lambda: len(self.counts) >= count, f"{count} words", application)

    def read_until(self, holds: Callable[[], bool], what: str, application: Application) -> None:
        """Read until a condition holds."""
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            output = application.output
            assert time.monotonic() < deadline, f"waited for {what}; got {len(self.counts)} words; {output()}"
            assert application.process is None or application.process.poll() is None, output()
            for record in self._consumer.consume(1000, 0.2):
                if record.error() is None:
                    word, _, rest = record.value().decode().partition(" => ")
                    self.counts.setdefault(word, set()).add(int(rest.split()[0]))
                    self.records += 1

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


def send(broker: Broker, topic: str, texts: list[str]) -> None:
    """Send texts to the partitions of a topic in turn, with keys and headers."""
    producer = Producer({"bootstrap.servers": broker.address})
    for number, text in enumerate(texts):
        producer.produce(topic, text, key=text[:1], partition=number % PARTITIONS, headers={"source": b"test"})
    assert producer.flush(60) == 0


def words(begin: int, end: int) -> list[str]:
    """Return words of which each is sent once."""
    return [f"{chr(97 + number % 26)}{number}" for number in range(begin, end)]
