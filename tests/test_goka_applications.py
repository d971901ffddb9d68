"""Applications of several groups on real Spark and Kafka, which depend on each other through topics.

Groups are drawn: their inputs, outputs, loops, and which tables of the others they join and look up, in one application
or one for each group. Sums are compared with a sequential reference, over a kill as well. The two groups of Goka's
introduction run from an archive, with 32 and 3 partitions and values of 1 MB.
"""

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from model.goka import Group, Record, World
from support.goka_drawn import KEYS, perform
from support.kafka import Broker
from support.run import READY, wait_until, wallaroo
from test_kafka import Application, Make, application
from wallaroo import goka
from wallaroo_runtime.kafka.topic import create_topic

pytestmark = pytest.mark.kafka
__all__ = ["application"]  # the fixture
TESTS = Path(__file__).parent
PROGRAM = TESTS.parent / "examples" / "tutorial" / "user_status"
DRAWN = TESTS / "support" / "goka_drawn.py"
CLICKS, STATUS = "user-clicks", "user-status-updates"
USERS, DEADLINE_S, ASK_S = 40, 400.0, 10.0
LONG = "x" * 999_000
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


def drawn_run(
    seed: int, broker: Broker, make: Make, tmp_path: Path, *, apart: bool = False, kills: bool = False
) -> None:
    """Run drawn groups, in one application or each in its own, and compare."""
    print(f"seed {seed}")
    drawn = Drawn(seed, broker)
    described = tmp_path / "groups.json"
    described.write_text(json.dumps([asdict(group) for group in drawn.groups]), encoding="utf-8")
    names = [[group.name] for group in drawn.groups] if apart else [[]]
    running = []
    drawn.write(MESSAGES)
    for each in names:
        running.append(make(DRAWN, broker.address, str(described), *each))
        running[-1].directory = tmp_path / "-".join(["run", *each])
        running[-1].directory.mkdir()
        running[-1].start()
    for one in running:
        wait_until_ready(one)
    drawn.write(MESSAGES)
    if kills:
        assert running[0].end(signal.SIGKILL) == -signal.SIGKILL
        drawn.write(MESSAGES)
        running[0].start()
        wait_until_ready(running[0], times=2)
    with ExitStack() as ends:
        ends.callback(drawn.reader.consumer.close)
        assert drawn.reader.read_until(drawn.is_counted, running), [one.output() for one in running]
        drawn.check_topics()
        drawn.ask(running)
        for one in running:
            assert one.end() == 0, one.output()


def test_drawn_groups_that_depend_on_each_other(broker: Broker, application: Make, tmp_path: Path) -> None:
    drawn_run(random.randrange(1_000_000), broker, application, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("apart", "kills"), [(True, False), (False, True), (True, True)])
def test_drawn_groups_apart_and_over_a_kill(
    apart: bool, kills: bool, broker: Broker, application: Make, tmp_path: Path
) -> None:
    drawn_run(random.randrange(1_000_000), broker, application, tmp_path, apart=apart, kills=kills)


@pytest.fixture
def reader(broker: Broker) -> Iterator[Reader]:
    for topic, partitions in ((CLICKS, 32), (STATUS, 3)):
        broker.create(topic, partitions)
    made = Reader(broker, ["click-count-table", "user-status-table"])
    yield made
    made.consumer.close()


@pytest.mark.long
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
    users = [f"user-{user}" for user in range(USERS)]
    send(broker, [(CLICKS, user, "click") for user in users] * 3)
    counts = {user.encode(): b"3" for user in users}
    assert reader.read_until(lambda: reader.tables["click-count-table"] == counts, [running]), running.output()
    texts = [("user-1", "away"), ("user-2", "@user-3"), ("user-4", LONG), ("nobody", "new")]
    send(broker, [(STATUS, user, text) for user, text in texts])
    expected = {
        b"user-1": b"away after 3 clicks", b"user-2": b"user-3 has clicked 3 times",
        b"user-4": f"{LONG} after 3 clicks".encode(), b"nobody": b"new after 0 clicks",
    }  # fmt: skip
    found = reader.tables["user-status-table"]
    assert reader.read_until(lambda: len(found) == len(expected), [running]), running.output()
    assert found == expected
    assert running.end() == 0, running.output()
