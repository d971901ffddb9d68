"""A Goka group in Go on real Spark and Kafka, with what users' topics have, and what happens to their brokers.

Drawn records with and without keys and values, up to 1 MB, in any partition of inputs that have 1 and 32 of them, are
compared with a sum in Python. HTTP asks for what `Get`, visits, a join and a lookup give. The broker ends.
"""

import random
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from support.goka import Processor, build_ours
from support.kafka import Broker, free_port
from support.run import MODES, TESTS, WALLAROO, wait_until

pytestmark = pytest.mark.kafka
PROGRAM = TESTS / "support" / "goka_ledger"
INPUTS = {"ledger-one": 1, "ledger-many": 32}
PRICES = "ledger-prices"
KEYS = [None, b"", b"a", b"b", b"user-1", "né".encode(), b"k" * 300]
SIZES = (0, 1, 20, 1000, 999_000)
AWAY_S, WAIT_S, SMALL = (60.0, 240.0), 300.0, 1001  # the longer outage is longer than any of Kafka's timeouts
Table = dict[bytes, str | None]


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_ours(tmp_path_factory.mktemp("ledger"), PROGRAM)


@pytest.fixture(scope="module")
def topics(broker: Broker) -> None:
    for topic, partitions in {**INPUTS, PRICES: 3}.items():
        broker.create(topic, partitions)
    client = AdminClient({"bootstrap.servers": broker.address})
    wait_until(lambda: {*INPUTS, PRICES} <= set(client.list_topics(timeout=10).topics), lambda: "the topics", WAIT_S)


@pytest.fixture
def ledger(binary: Path, broker: Broker, topics: None, tmp_path: Path) -> Iterator[Processor]:
    inputs, directory = ",".join(INPUTS), tmp_path / "ledger"
    made = Processor(binary, directory, broker, "", "ledger", INPUTS=inputs, TABLE=PRICES)
    yield made
    made.end()


class Accounts:
    """What was written: messages, their bytes, and messages without a value, of each key."""

    def __init__(self, seed: int, broker: Broker) -> None:
        self.source, self.broker, self.sums = random.Random(seed), broker, dict[bytes, list[int]]()

    def write(self, count: int) -> None:
        """Write drawn records to both inputs, a few large ones among them."""
        settings = {"bootstrap.servers": self.broker.address, "message.max.bytes": 1_048_576}
        producer, draw = Producer(settings), self.source
        for number in range(count):
            key, topic = draw.choice(KEYS), draw.choice(list(INPUTS))
            size = draw.choice(SIZES) if number % 20 == 0 else draw.randrange(SMALL)
            value = None if draw.random() < 0.2 else b"x" * size
            producer.produce(topic, value, key, draw.randrange(INPUTS[topic]))
            sums = self.sums.setdefault(key or b"", [0, 0, 0])
            for at, more in enumerate((0, 0, 1) if value is None else (1, size, 0)):
                sums[at] += more
        assert producer.flush(120) == 0

    def table(self) -> Table:
        """Return what the group's table is then."""
        return {key: " ".join(map(str, sums)) for key, sums in self.sums.items()}


def produced(broker: Broker, topic: str, pairs: Mapping[bytes, bytes | None]) -> None:
    """Write records of keys, with the partitioner of Goka."""
    producer = Producer({"bootstrap.servers": broker.address, "partitioner": "fnv1a"})
    for key, value in pairs.items():
        producer.produce(topic, value, key)
    assert producer.flush(60) == 0


def transacted(broker: Broker, topic: str, source: random.Random, count: int) -> dict[bytes, bytes]:
    """Write drawn transactions of which some are aborted, the last one too; returns what is committed."""
    producer = Producer(
        {"bootstrap.servers": broker.address, "partitioner": "fnv1a", "transactional.id": f"{topic}-{source.random()}"}
    )
    producer.init_transactions(60)
    committed: dict[bytes, bytes] = {}
    for number in range(count):
        is_aborted = number == count - 1 or source.random() < 0.3
        values = {key: str(source.randrange(100)).encode() for key in filter(None, source.sample(KEYS, 3))}
        producer.begin_transaction()
        for key, value in values.items():
            producer.produce(topic, value, key)
        assert producer.flush(60) == 0
        if is_aborted:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
            committed |= values
    return committed


class Reader:
    """The group's table as a reader of committed records sees it; a key that was deleted has None."""

    def __init__(self, broker: Broker, group: str) -> None:
        settings = {"bootstrap.servers": broker.address, "group.id": f"reader-{group}", "log_level": 0}
        self.consumer = Consumer({**settings, "auto.offset.reset": "earliest", "isolation.level": "read_committed"})
        self.consumer.subscribe([f"{group}-table"])
        self.table: Table = {}

    def read_until(self, expected: Table, running: Processor) -> None:
        """Read until the table is as it should be, while the program runs."""
        deadline = time.monotonic() + WAIT_S
        while self.table != expected:
            assert time.monotonic() < deadline, f"{self.table} instead of {expected}; {running.output()[-2000:]}"
            assert running.is_alive(), running.output()[-3000:]
            for record in self.consumer.consume(1000, 0.2):
                if record.error() is None:
                    value = record.value()
                    self.table[record.key() or b""] = None if value is None else value.decode()


def asked(ledger: Processor, path: str) -> str:
    """Ask the program's service."""
    address = re.findall(r"SERVES AT (\S+)", ledger.output())[-1]
    with urllib.request.urlopen(f"http://{address}/{path}", timeout=120) as answer:
        return str(answer.read().decode())


@pytest.mark.long
def test_drawn_records_and_a_broker_that_goes_away(ledger: Processor, broker: Broker) -> None:
    ledger.start()
    seed = random.randrange(1_000_000)
    away_s = AWAY_S[seed % 2]
    print(f"seed {seed}, away for {away_s} s")
    accounts, reader = Accounts(seed, broker), Reader(broker, ledger.group)
    accounts.write(400)
    reader.read_until(accounts.table(), ledger)
    broker.stop()
    back = time.monotonic() + away_s
    wait_until(lambda: "R613 " in ledger.output(), ledger.output, away_s)
    wait_until(lambda: time.monotonic() > back, str, away_s + 10, every=1.0)
    assert ledger.is_alive(), ledger.output()[-3000:]
    broker.start()
    accounts.write(400)
    reader.read_until(accounts.table(), ledger)


@pytest.mark.jvm
def test_tables_that_end_with_ends_of_transactions(ledger: Processor, broker: Broker) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    prices = transacted(broker, PRICES, random.Random(seed), 12)
    ledger.start()
    reader, asks = (
        Reader(broker, ledger.group),
        {b"about-%d" % number: key for number, key in enumerate(sorted(prices))},
    )
    produced(broker, "ledger-many", {key: b"about " + about for key, about in asks.items()})
    expected = {key: f"joined <nil>, looked up {prices[about].decode()}" for key, about in asks.items()}
    reader.read_until(reader.table | expected, ledger)
    for key, value in expected.items():
        assert asked(ledger, f"get/{key.decode()}") == value
    assert asked(ledger, "visit/delete?meta=0") == str(len(expected))
    reader.read_until(dict.fromkeys(reader.table), ledger)


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_visits_joins_and_lookups(mode: str, ledger: Processor, broker: Broker) -> None:
    ledger.environment["MODE"] = mode
    ledger.start()
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    accounts, reader = Accounts(seed, broker), Reader(broker, ledger.group)
    accounts.write(100)
    reader.read_until(accounts.table(), ledger)
    assert asked(ledger, "visit/add?meta=7") == str(len(accounts.sums))
    for sums in accounts.sums.values():
        sums[0] += 7
    expected = accounts.table()
    reader.read_until(expected, ledger)
    produced(broker, PRICES, {b"a": b"5", b"b": b"6"})
    produced(broker, "ledger-many", {b"user-1": b"delete"})
    reader.read_until(expected | {b"user-1": None}, ledger)
    produced(broker, "ledger-many", {b"a": b"about b"})
    about = {b"a": "joined 5, looked up 6", b"user-1": None}
    reader.read_until(expected | about, ledger)
    assert asked(ledger, "visit/delete?meta=0") == str(len(expected) - 1)
    reader.read_until(dict.fromkeys(expected), ledger)


def failure(binary: Path, tmp_path: Path, **environment: str) -> str:
    """Run the program, which fails; returns what it printed."""
    own = {"GROUP": "failing", "XDG_STATE_HOME": str(tmp_path), "WALLAROO": str(WALLAROO), "PATH": "/usr/bin:/bin"}
    ended = subprocess.run([binary], env=own | environment, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1, ended.stderr
    return ended.stderr


def test_a_topic_that_does_not_exist(binary: Path, broker: Broker, tmp_path: Path) -> None:
    said = failure(binary, tmp_path, BROKERS=broker.address, INPUTS="nowhere")
    assert "Error fetching partitions for topic nowhere: requested topic was not found" in said


def test_a_joined_table_that_does_not_exist(binary: Path, broker: Broker, topics: None, tmp_path: Path) -> None:
    said = failure(binary, tmp_path, BROKERS=broker.address, INPUTS="ledger-one", TABLE="nowhere-table")
    assert "Error fetching partitions for topic nowhere-table: requested topic was not found" in said


def test_a_broker_that_is_not_there(binary: Path, tmp_path: Path) -> None:
    said = failure(binary, tmp_path, BROKERS=f"127.0.0.1:{free_port()}", INPUTS="nowhere")
    assert "Error creating topic manager" in said and "client has run out of available brokers" in said


@pytest.mark.long
@pytest.mark.parametrize("line", ["SERVES AT", "wallaroo: "])
def test_sigterm_while_spark_starts(line: str, ledger: Processor) -> None:
    with (ledger.directory / "output").open("ab") as output:
        ledger.process = subprocess.Popen(
            [ledger.binary], stdout=output, stderr=output, env=ledger.environment, start_new_session=True
        )
    wait_until(lambda: line in ledger.output() or not ledger.is_alive(), ledger.output, WAIT_S)
    ledger.end(signal.SIGTERM)
    assert ledger.process.returncode == 0, ledger.output()[-3000:]
    assert "READY" not in ledger.output() and not ledger.parts()
