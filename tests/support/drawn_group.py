"""Groups that a file describes, drawn, and their messages."""

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from model.goka import Group, Record, World
from support.goka_drawn import KEYS, perform
from support.kafka import Broker
from support.kafka_application import Application
from support.run import READY, wait_until
from wallaroo import goka
from wallaroo_runtime.kafka.topic import create_topic

TESTS = Path(__file__).parents[1]


DRAWN = TESTS / "support" / "goka_drawn.py"


USERS, DEADLINE_S, ASK_S = 40, 400.0, 10.0


FRESH = {"topic.metadata.refresh.interval.ms": 1000}  # topics may come later than their reader


MESSAGES = 150


def send(broker: Broker, records: list[tuple[str, str | bytes, str | bytes]]) -> None:
    """Write records (topic, key, value), with the partitioner of Goka."""
    producer = Producer({"bootstrap.servers": broker.address, "partitioner": "fnv1a"})
    for topic, key, value in records:
        producer.produce(topic, value, key=key)
    assert producer.flush(120) == 0


class Reader:
    """Topics as a reader of committed records sees them: `records` of each, and the last value of each key."""

    def __init__(self, broker: Broker, topics: list[str]) -> None:
        settings = {"bootstrap.servers": broker.address, "group.id": f"reader-{time.time_ns()}", "log_level": 0}
        self.consumer = Consumer(
            {**settings, "auto.offset.reset": "earliest", "isolation.level": "read_committed", **FRESH}
        )
        self.consumer.subscribe(topics)
        self.records: dict[str, Counter[Record]] = {topic: Counter() for topic in topics}
        self.tables: dict[str, dict[bytes, bytes | None]] = {topic: {} for topic in topics}

    def look(self) -> None:
        for found in self.consumer.consume(1000, 0.2):
            if found.error() is None:
                topic, key, value = found.topic(), found.key() or b"", found.value()
                self.records[topic][Record(topic, key, value)] += 1
                self.tables[topic][key] = value

    def read_until(self, holds: Callable[[], bool], running: list[Application], seconds: float = DEADLINE_S) -> bool:
        """Read until it holds, while the applications run; returns whether it came in time."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                return False
            for each in running:
                assert each.process is None or each.process.poll() is None, each.output()
            self.look()
        return True


def wait_until_ready(running: Application, times: int = 1) -> None:
    """Wait until an application processes, or has ended."""
    process = running.process
    assert process is not None
    wait_until(lambda: running.output().count(READY) >= times or process.poll() is not None, running.output, DEADLINE_S)
    assert process.poll() is None, running.output()


def actions_of(draw: random.Random, outputs: list[str], depth: int = 2) -> list[Any]:
    """Draw what a message says: sums, messages to the loop and to other groups, which say more."""
    found: list[Any] = []
    for _ in range(draw.randrange(1, 4)):
        kind = draw.choice(("add", "add", "loop", "emit") if depth else ("add",))
        if kind == "add":
            found.append(["add", draw.randrange(-5, 10)])
        elif kind == "loop":
            found.append(["loop", draw.randrange(len(KEYS)), actions_of(draw, outputs, depth - 1)])
        else:
            place = draw.choice(outputs), draw.randrange(len(KEYS))
            found.append(["emit", *place, actions_of(draw, outputs, depth - 1)])
    return found


class Drawn:
    """Groups that depend on each other, what they are sent, and what the reference makes of it.

    Args:
        seed: Of all that is drawn; part of all names, too.
        broker: Gets the topics of inputs; also those of tables and loops, which no application makes for another one.
    """

    def __init__(self, seed: int, broker: Broker) -> None:
        self.source, self.broker, self.codec = random.Random(seed), broker, goka.Json()
        draw = self.source
        names = [f"g{number}-{seed}" for number in range(draw.randrange(2, 4))]
        raw, between = [f"raw{number}-{seed}" for number in range(2)], [f"x{number}-{seed}" for number in range(2)]
        self.inputs = [*raw, *between]
        self.groups = [self.group(name, names, raw, between) for name in names]
        # Whatever is drawn, each of the first two depends on the other: by a table, and by messages.
        first, second = self.groups[:2]
        for one, other, topic in ((first, second, between[0]), (second, first, between[1])):
            one.outputs = sorted({*one.outputs, topic})
            other.inputs = sorted({*other.inputs, topic})[-3:]
            one.joins = sorted({*one.joins, other.table})
        for topic in self.inputs:
            broker.create(topic, draw.randrange(1, 4))
        for group in self.groups:
            create_topic(broker.cluster, group.table, draw.randrange(1, 4), 1, {"cleanup.policy": "compact"})
            if group.has_loop:
                broker.create(group.loop, draw.randrange(1, 4))
        written = [topic for group in self.groups for topic in (group.table, group.loop)]
        codecs = dict.fromkeys([*self.inputs, *written], self.codec)
        self.world = World(self.groups, codecs, lambda ctx, actions: perform(ctx, actions, ctx.group_graph))
        self.reader = Reader(broker, [topic for topic in codecs if self.exists(topic)])

    def group(self, name: str, names: list[str], raw: list[str], between: list[str]) -> Group:
        draw, tables = self.source, [f"{other}-table" for other in names if other != name]
        return Group(
            name,
            inputs=sorted(draw.sample([*raw, *between], draw.randrange(1, 4))),
            outputs=sorted(draw.sample(between, draw.randrange(3))),
            joins=sorted(draw.sample(tables, draw.randrange(len(tables) + 1))),
            lookups=sorted(draw.sample(tables, draw.randrange(1, len(tables) + 1))),
            has_loop=draw.random() < 0.7,
        )

    def exists(self, topic: str) -> bool:
        return not topic.endswith("-loop") or any(group.has_loop and group.loop == topic for group in self.groups)

    def write(self, count: int) -> None:
        """Send drawn messages to the inputs, and to the reference."""
        draw = self.source
        records = []
        for _ in range(count):
            value = self.codec.encode(actions_of(draw, self.inputs[2:]))
            records.append(Record(draw.choice(self.inputs), draw.choice(KEYS).encode(), value))
        self.world.produce(records)
        send(self.broker, [(each.topic, each.key or b"", each.value or b"") for each in records])

    def is_counted(self) -> bool:
        """Say whether each topic has as many records as the reference."""
        return all(found.total() >= len(self.world.topics[topic]) for topic, found in self.reader.records.items())

    def check_topics(self) -> None:
        """Compare all but tables, whose values between depend on the order, record by record; of those the sums."""
        for topic, found in self.reader.records.items():
            wanted = Counter(self.world.topics[topic])
            if topic.endswith("-table"):
                assert found.total() == wanted.total(), topic
            else:
                assert found == wanted, topic
        for group in self.groups:
            assert self.reader.tables[group.table] == self.world.values[group.name], group

    def ask(self, running: list[Application]) -> None:
        """Let each group look at the tables of the others until it sees their sums: lookups follow a table later."""
        asks = [Record(group.inputs[0], key.encode(), b'[["ask"]]') for group in self.groups for key in KEYS]
        self.world.produce(asks)
        deadline = time.monotonic() + DEADLINE_S

        def holds() -> bool:
            return all(self.reader.tables[group.table] == self.world.values[group.name] for group in self.groups)

        while time.monotonic() < deadline:
            send(self.broker, [(each.topic, each.key or b"", each.value or b"") for each in asks])
            if self.reader.read_until(holds, running, ASK_S):
                return
        tables = {group.name: self.reader.tables[group.table] for group in self.groups}
        pytest.fail(f"{tables} instead of {dict(self.world.values)}; {self.groups}")
