"""A drawn case of a group, with a joined table, a lookup, a loop and a visit: the same on Spark as in memory."""

import random
import shutil
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from support.kafka import Broker
from support.run import Run, wallaroo
from wallaroo import KafkaRecord
from wallaroo_runtime.case.case import read_case
from wallaroo_runtime.case.record_line import record_line
from wallaroo_runtime.case.topics import steps
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.kafka.record import follow

pytestmark = [pytest.mark.jvm, pytest.mark.kafka]
PROGRAM = Path(__file__).parent / "support" / "goka_case"
KEYS = ["Ann", "Bob", "", "two words", "Cid"]
GIVEN = ("deposits", "factors", "names", "receipts")
WRITTEN = ("balances-table", "receipts", "balances-loop")
SETTINGS = f"""
order = "key"
dead_letters = 1
topics = {[*WRITTEN]}
[[input]]
file = "input.txt"
kind = "records"
"""


def deposits(draw: random.Random, count: int) -> Iterator[str]:
    """Yield deposits to drawn accounts."""
    for _ in range(count):
        amount = str(draw.randint(-9, 30))
        yield record_line(KafkaRecord("deposits", draw.choice(KEYS).encode(), amount.encode()))


def drawn(seed: int) -> Iterator[str]:
    """Yield the lines of an input: tables, deposits, a visit, more deposits of which one is none."""
    draw = random.Random(seed)
    for key in draw.sample(KEYS, 3):
        yield record_line(KafkaRecord("names", key.encode(), f"name {draw.randint(0, 9)}".encode()))
        yield record_line(KafkaRecord("factors", key.encode(), str(draw.randint(2, 4)).encode()))
    yield ""
    yield from deposits(draw, 200)
    yield f"visit forget {draw.randint(200, 2000)}"
    yield from deposits(draw, 200)
    yield "deposits Bob nothing"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a case of a group in Python and Go; what is expected is what came in memory."""
    made = tmp_path / "balances"
    shutil.copytree(PROGRAM, made)
    (made / "case.toml").write_text(SETTINGS)
    seed = int(time.time())
    (made / "input.txt").write_text("".join(f"{line}\n" for line in drawn(seed)))
    print(f"seed {seed}")
    assert main(["test", str(made), "--write"]) == 0
    return made


@pytest.fixture
def topics(broker: Broker) -> Iterator[None]:
    """Give the topics that the group does not make itself; all are gone afterwards."""
    for topic in GIVEN:
        broker.create(topic)
    yield
    broker.delete(*{*GIVEN, *WRITTEN} & {*broker.cluster.metadata().topics})


def write(broker: Broker, records: Iterable[KafkaRecord]) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "partitioner": "fnv1a"})
    for record in records:
        producer.produce(record.topic, record.value, key=record.key)
    assert producer.flush(120) == 0


def messages(records: Iterable[KafkaRecord]) -> int:
    """Return how many messages the group gets of records: a bonus for each fifth unit, and no lookups."""
    read = [record for record in records if record.topic != "names"]
    amounts = [record.value or b"" for record in read if record.topic == "deposits"]
    return len(read) + sum(amount != b"nothing" and int(amount) % 5 == 0 for amount in amounts)


@pytest.mark.usefixtures("topics")
@pytest.mark.parametrize("language", [pytest.param("python", marks=pytest.mark.long), "go"])
def test_a_case_is_the_same_on_both_engines(language: str, folder: Path, broker: Broker, tmp_path: Path) -> None:
    case, checkpoint, count = read_case(folder), tmp_path / "checkpoint", 0
    tables, *rest = steps(folder / "input.txt")
    # What is looked up is read before a worker serves; nothing says when workers see what comes later.
    write(broker, [record for record in tables if isinstance(record, KafkaRecord)])
    app = case.apps()[language]
    with Run(app, None, checkpoint, source="", WALLAROO_BROKERS=broker.address) as run:
        run.ready()
        for step in [tables, *rest]:
            if isinstance(step, str):
                name, metadata = step.split()
                assert wallaroo("visit", checkpoint, name, "--metadata", metadata, "--wait").returncode == 0
                continue
            if step is not tables:
                write(broker, step)
            count += messages(step)
            run.wait_for("messages_in", count)
        run.wait_for("dead_letters", 1)
        assert run.stop() == 0, run.said()
        assert run.last("dead_letters") == 1
    found = [
        record_line(KafkaRecord(topic, record.key, record.value, record.headers))
        for topic in WRITTEN
        for record in follow(broker.cluster, topic, from_beginning=True, to_end=True)
    ]
    assert case.arranged(found) == case.arranged(case.expected(language))
