"""The two groups of Goka's introduction on real Spark and Kafka, from an archive.

Topics have 32 and 3 partitions; values have up to 1 MB; a group joins and looks up the table of the other.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from support.kafka import Broker
from support.run import READY, wait_until, wallaroo
from test_kafka import Application, Make, application

pytestmark = [pytest.mark.kafka, pytest.mark.long]
__all__ = ["application"]  # the fixture
PROGRAM = Path(__file__).parents[1] / "examples" / "goka" / "user_status"
CLICKS, STATUS = "user-clicks", "user-status-updates"
USERS, DEADLINE_S = 40, 400.0
LONG = "x" * 999_000
FRESH = {"topic.metadata.refresh.interval.ms": 1000}  # topics may come later than their reader
Tables = dict[str, dict[str, str | None]]


def send(broker: Broker, topic: str, pairs: list[tuple[str, str]]) -> None:
    """Write records, with the partitioner of Goka."""
    producer = Producer({"bootstrap.servers": broker.address, "partitioner": "fnv1a"})
    for key, value in pairs:
        producer.produce(topic, value, key=key)
    assert producer.flush(120) == 0


class Reader:
    """The tables of both groups, as a reader of committed records sees them."""

    def __init__(self, broker: Broker) -> None:
        settings = {"bootstrap.servers": broker.address, "group.id": "reader", "auto.offset.reset": "earliest"}
        self.consumer = Consumer({**settings, "isolation.level": "read_committed", "log_level": 0, **FRESH})
        self.consumer.subscribe(["click-count-table", "user-status-table"])
        self.tables: Tables = {"click-count-table": {}, "user-status-table": {}}

    def read_until(self, holds: Callable[[Tables], bool], running: Application) -> None:
        """Read until the tables are as they should be, while the application runs."""
        deadline = time.monotonic() + DEADLINE_S
        while not holds(self.tables):
            assert time.monotonic() < deadline, running.output()
            assert running.process is None or running.process.poll() is None, running.output()
            for record in self.consumer.consume(1000, 0.2):
                key, value, topic = record.key(), record.value(), record.topic()
                if record.error() is None and key is not None and topic is not None:
                    self.tables[topic][key.decode()] = None if value is None else value.decode()


def counts(number: int) -> dict[str, str | None]:
    return {f"user-{user}": str(number) for user in range(USERS)}


def clicks(number: int) -> list[tuple[str, str]]:
    return [(f"user-{user}", "click") for user in range(USERS)] * number


@pytest.fixture
def reader(broker: Broker) -> Iterator[Reader]:
    for topic, partitions in ((CLICKS, 32), (STATUS, 3)):
        broker.create(topic, partitions)
    made = Reader(broker)
    yield made
    made.consumer.close()


def wait_until_ready(running: Application) -> None:
    """Wait until an application processes, or has ended."""
    process = running.process
    assert process is not None
    wait_until(lambda: READY in running.output() or process.poll() is not None, running.output, DEADLINE_S)
    assert process.poll() is None, running.output()


def test_two_groups_of_goka_from_an_archive(
    broker: Broker, application: Make, reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKERS", broker.address)
    archive = tmp_path / "users.tar.gz"
    packed = wallaroo("pack", PROGRAM, "-o", archive, "--arch", "amd64", seconds=DEADLINE_S)
    assert packed.returncode == 0, packed.stderr
    running = application(archive)
    running.start()
    wait_until_ready(running)
    send(broker, CLICKS, clicks(3))
    reader.read_until(lambda tables: tables["click-count-table"] == counts(3), running)
    send(broker, STATUS, [("user-1", "away"), ("user-2", "@user-3"), ("user-4", LONG), ("nobody", "new")])
    expected = {
        "user-1": "away after 3 clicks", "user-2": "user-3 has clicked 3 times", "user-4": f"{LONG} after 3 clicks",
        "nobody": "new after 0 clicks",
    }  # fmt: skip
    reader.read_until(lambda tables: len(tables["user-status-table"]) == len(expected), running)
    assert reader.tables["user-status-table"] == expected
    assert running.end() == 0, running.output()
