"""A group moves from Goka's own processor to ours: it goes on with its table's values, at its committed offsets.

Drawn messages, some of which delete their key or come back by the group's loop, are sent before Goka's processor ends
or is killed, while nothing runs, and to ours, which is killed on its way at a drawn point. What the table must be at
the end is computed of what Kafka has at the border: the last values, and all records from the committed offsets on.
"""

import json
import random
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from support.case import Case
from support.goka import InPython, Processor, build_ours, build_own
from support.kafka import Broker
from support.peak import Peaks
from support.run import TESTS, wait_until, wallaroo
from wallaroo import goka
from wallaroo_runtime.kafka.topic import create_topic

pytestmark = [pytest.mark.kafka, pytest.mark.long]
CASE = Case("goka_clicks")
PROGRAM, IN_PYTHON = TESTS / "support" / "goka_move", TESTS / "support" / "goka_move.py"
POINTS = ["none:1", "states.before_commit:1", "goka.after_tables:1", "goka.before_record:1", "goka.after_record:1"]
# Keys of which messages come in one order alone: they may be deleted. Keys whose messages come back by the loop.
DELETED, LOOPED, PLAIN = ["", "d1", "né"], ["again-1", "again-2"], [f"user-{number}" for number in range(12)]
MESSAGES, WAIT_S, KEYS = 300, 300.0, 1_000_000
READING, TAKEN = "reading the tables of Goka's groups", "keys begin with Goka's values"
Offsets = dict[tuple[str, int], int]
Values = Iterable[tuple[int | None, bytes, bytes | None]]  # of a table: partition, key, value


class Ours(Processor):
    """Our processor in Go, of a group that is there."""

    def __init__(
        self, binary: Path, directory: Path, broker: Broker, topics: list[str], group: str, **more: str
    ) -> None:
        super().__init__(binary, directory, broker, ",".join(topics), "", **more)
        self.group = self.environment["GROUP"] = group

    def begin(self) -> None:
        """Start it until it processes, again where it was killed before."""
        for _ in range(3):
            try:
                self.start()
            except AssertionError:
                self.end()
            else:
                return
        raise AssertionError(self.output()[-3000:])

    def positions(self) -> Offsets:
        """Return the offsets of its checkpoint, as docs/goka.md has them for the way back."""
        (commits,) = self.directory.rglob("spark/commits")
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        _version, _head, *lines = (commits.parent / "offsets" / str(last)).read_text().splitlines()
        topics = {
            topic: places for line in lines if '"journal"' not in line for topic, places in json.loads(line).items()
        }
        return {(topic, int(number)): at for topic, places in topics.items() for number, at in places.items() if at}

    def refusal(self) -> str:
        """Start it; returns why it does not start."""
        with pytest.raises(AssertionError):
            self.start()
        self.end()
        return self.output()


class OursInPython(InPython, Ours):
    """The same in Python."""

    def command(self) -> list[str | Path]:
        """Return what starts it."""
        return [*super().command(), "--continue-goka", "--on-error", "dead_letter"]


class Group:
    """A group as Kafka has it: topics and committed offsets."""

    def __init__(self, broker: Broker, name: str, inputs: list[str]) -> None:
        self.broker, self.name, self.inputs, self.loop = broker, name, inputs, f"{name}-loop"

    def ends(self, *topics: str) -> Offsets:
        """Return the next offset of each partition that has had records."""
        with self._consumer() as consumer:
            found = {
                (topic, number): consumer.get_watermark_offsets(TopicPartition(topic, number), 30)[1]
                for topic in topics
                for number in consumer.list_topics(topic, 30).topics[topic].partitions
            }
        return {place: end for place, end in found.items() if end}

    def committed(self) -> Offsets:
        """Return the offsets that the group has committed."""
        places = [TopicPartition(*place) for place in self.ends(*self.inputs, self.loop)]
        with self._consumer() as consumer:
            found = consumer.committed(places, 30) if places else []
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def table(self) -> Counter[str]:
        """Return the last value of each key."""
        return Counter({key: int(value) for key, value in self.values().items()})

    def values(self) -> dict[str, bytes]:
        """Return the bytes of the last value of each key."""
        found: dict[str, bytes] = {}
        for key, value in self.records([f"{self.name}-table"], {}):
            found.pop(key, None)
            if value is not None:
                found[key] = value
        return found

    def records(self, topics: list[str], begin: Mapping[tuple[str, int], int]) -> Iterator[tuple[str, bytes | None]]:
        """Yield key and value of what topics have, those of a partition in order."""
        ends = self.ends(*topics)
        with self._consumer() as consumer:
            for place, end in ends.items():
                for record in _read(consumer, TopicPartition(*place, begin.get(place, 0)), end):
                    yield (record.key() or b"").decode(), record.value()

    def _consumer(self) -> Consumer:
        settings = {"bootstrap.servers": self.broker.address, "group.id": self.name, "enable.auto.commit": False}
        return Consumer({**settings, "auto.offset.reset": "earliest", "isolation.level": "read_committed"})


def _read(consumer: Consumer, place: TopicPartition, end: int) -> Iterator[Message]:
    """Yield the records of a partition before an offset."""
    consumer.assign([place])
    at = place.offset
    while at < end:
        found = consumer.consume(1000, 1.0)
        assert not any(record.error() for record in found), [record.error() for record in found]
        yield from (record for record in found if record.offset() < end)
        at = max(at, *(each.offset for each in consumer.position([place])))


class Border:
    """What Goka's processor has left: its table, with what is in its loop, and where the inputs go on."""

    def __init__(self, group: Group) -> None:
        self._group, self._begin, self._table = group, group.committed(), group.table()
        for key, _ in group.records([group.loop], self._begin):
            self._table[key] += 1

    def table(self) -> dict[str, int]:
        """Return the table when all that the inputs have now has been processed."""
        found = self._table.copy()
        for key, value in self._group.records(self._group.inputs, self._begin):
            if value == b"delete":
                found.pop(key, None)
            else:
                found[key] += 2 if value == b"again" else 1
        return dict(found)


def send(draw: random.Random, broker: Broker, topics: list[str], count: int) -> None:
    """Send drawn messages with Goka's partitioner."""
    with ExitStack() as stack:
        emitters = [stack.enter_context(goka.Emitter([broker.address], topic, goka.String())) for topic in topics]
        for _ in range(count):
            key = draw.choice([*DELETED, *LOOPED, *PLAIN])
            if key in DELETED:
                emitters[0].emit(key, draw.choice(["click", "click", "click", "delete"]))
            else:
                draw.choice(emitters).emit(key, "again" if key in LOOPED else "click")


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("move")
    return {"goka": build_own(folder, PROGRAM), "go": build_ours(folder, PROGRAM), "python": IN_PYTHON}


@pytest.fixture
def ends() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("language", ["go", "python"])
def test_a_running_group_moves(
    language: str, binaries: dict[str, Path], broker: Broker, ends: ExitStack, tmp_path: Path
) -> None:
    seed = random.randrange(1_000_000)
    draw = random.Random(seed)
    partitions, point, pause = draw.randrange(1, 9), draw.choice(POINTS), draw.uniform(0, 0.5)
    number = draw.choice([signal.SIGTERM, signal.SIGKILL])
    print(f"seed {seed}: {partitions} partitions, {number.name} for Goka's, ours killed at {point}")
    topics = [f"moves-{seed}-{each}" for each in "ab"]
    for topic in topics:
        broker.create(topic, partitions)
    own = Processor(binaries["goka"], tmp_path / "own", broker, ",".join(topics), "moves")
    ends.callback(own.end)
    own.start()
    group = Group(broker, own.group, topics)
    send(draw, broker, topics, MESSAGES)
    wait_until(lambda: group.committed() == group.ends(*topics, group.loop) != {}, own.output, WAIT_S, every=0.5)
    faults = tmp_path / "faults"
    faults.mkdir()
    kind = Ours if language == "go" else OursInPython
    more = {"WALLAROO_FAULT": point, "WALLAROO_FAULT_DIR": str(faults)}
    ours = kind(binaries[language], tmp_path / "ours", broker, topics, own.group, **more)
    ends.callback(ours.end)
    assert f"R788 {own.group} cannot continue from the data of Goka's own processors; its consumer" in ours.refusal()
    send(draw, broker, topics, MESSAGES)
    time.sleep(pause)  # some of them are counted
    own.end(number)
    wait_until(lambda: not is_active(broker, own.group), lambda: "the end of the group", 60, every=0.5)
    send(draw, broker, topics, MESSAGES)
    border = Border(group)
    ours.begin()
    send(draw, broker, topics, MESSAGES)
    wait_until(
        lambda: dict(group.table()) == border.table(),
        lambda: f"{border.table()} instead of {dict(group.table())}; {ours.output()[-3000:]}",
        WAIT_S,
        every=1.0,
    )
    assert [each.name for each in faults.iterdir()] == [each for each in (point,) if each != "none:1"]
    ours.end()
    ours.begin()  # later runs are as all others
    send(draw, broker, topics, MESSAGES)
    wait_until(lambda: dict(group.table()) == border.table(), ours.output, WAIT_S, every=1.0)
    time.sleep(2)
    assert dict(group.table()) == border.table()
    ours.end()
    assert {place: at for place, at in ours.positions().items() if place[0] in topics} == group.ends(*topics)


def left(broker: Broker, topic: str, table: str, group: str, values: Values, partitions: int) -> None:
    """Make what a processor leaves: records of its table, and offsets at the end of its input."""
    broker.create(topic, partitions)
    create_topic(broker.cluster, table, partitions, 1, {"cleanup.policy": "compact"})
    begin = time.time_ns() // 1_000_000
    producer = Producer(
        {"bootstrap.servers": broker.address, "partitioner": "fnv1a", "queue.buffering.max.messages": 10_000_000}
    )
    refused: list[Any] = []
    for at, (partition, key, value) in enumerate(values):
        place: dict[str, Any] = {} if partition is None else {"partition": partition}
        told = lambda error, _: refused.append(error) if error else None  # noqa: E731
        producer.produce(table, value, key, timestamp=begin + at, on_delivery=told, **place)
    assert (producer.flush(120), refused) == (0, [])
    commit(broker, group, {(topic, number): 0 for number in range(partitions)})


def commit(broker: Broker, group: str, offsets: Offsets) -> None:
    """Commit offsets of a group."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(*place, at) for place, at in offsets.items()], asynchronous=False)
    consumer.close()


def test_values_that_goka_never_reads(broker: Broker, ends: ExitStack, tmp_path: Path) -> None:
    """One that the codec cannot read is the message's that meets it; one in another partition is not passed over."""
    group, topic = "strange", "strange-clicks"
    twice = next(key for key in map(str, range(100)) if goka.partition_of(key.encode(), 3) == 2).encode()
    values = [
        *((None, b"a", b"5"), (None, b"b", b"7"), (None, b"b", None), (None, b"bad", b"no number"), (None, b"", b"3")),
        *((0, twice, b"20"), (1, twice, b"30"), (None, b"idle", b"1")),
    ]
    left(broker, topic, f"{group}-table", group, values, 3)
    keys = [b"a", b"b", b"bad", b"", twice]
    producer = Producer({"bootstrap.servers": broker.address, "partitioner": "fnv1a"})
    for key in keys:
        producer.produce(topic, b"click", key)
    assert producer.flush(60) == 0
    ours = OursInPython(IN_PYTHON, tmp_path / "ours", broker, [topic], group)
    ends.callback(ours.end)
    ours.start()
    moved = Group(broker, group, [topic])
    expected = {"a": b"6", "b": b"1", "": b"4", twice.decode(): b"31", "idle": b"1", "bad": b"no number"}
    wait_until(lambda: moved.values() == expected, lambda: f"{moved.values()} {ours.output()}", WAIT_S, every=1.0)
    assert (
        f"R789 1 keys have values in several partitions of topic {group}-table, e.g. {twice.decode()}" in ours.output()
    )
    assert f"table {group}-table: 5 keys begin with Goka's values" in ours.output()
    ours.end()
    letters = wallaroo("dead-letters", "ls", tmp_path / "ours" / "checkpoint").stdout
    assert "bad" in letters and "error decoding value" in letters, letters


@pytest.mark.parametrize("is_new", [False, True])
def test_two_groups_of_which_one_joins(is_new: bool, broker: Broker, ends: ExitStack, tmp_path: Path) -> None:
    """Each has its own offsets, or begins as the program says; the joined table is read from its start."""
    clicks, purchases, reports, table = "user-clicks", "purchases", "reports", "click-counts-table"
    for topic in (purchases, reports):
        broker.create(topic, 2)
    values = [(None, b"Ann", b"5"), (None, b"Bob", b"7"), (None, b"Bob", None)]
    left(broker, clicks, table, "click-counts", values, 3)
    buyers = Group(broker, "buyers", [purchases])
    with goka.Emitter([broker.address], purchases, goka.String()) as emitter:
        for user in ("Ann", "Bob", "Ann"):
            emitter.emit_sync(user, "an old hat")
        if not is_new:
            commit(broker, "buyers", {(purchases, number): 0 for number in range(2)} | buyers.ends(purchases))
        for user in ("Ann", "Bob"):
            emitter.emit_sync(user, "a hat")
    ours = OursInPython(CASE.app("python"), tmp_path / "ours", broker, [clicks], "")
    ends.callback(ours.end)
    ours.start()
    expected = [("Ann", b"a hat after 5 clicks"), ("Bob", b"a hat after None clicks")]
    if is_new:
        expected += [("Ann", b"an old hat after 5 clicks")] * 2 + [("Bob", b"an old hat after None clicks")]
    expected.sort()

    def reported() -> list[tuple[str, bytes | None]]:
        return sorted(buyers.records([reports], {}))

    wait_until(lambda: reported() == expected, lambda: f"{reported()} {ours.output()}", WAIT_S, every=1.0)
    with goka.Emitter([broker.address], clicks, goka.String()) as emitter:
        for user in ("Ann", "Bob"):
            emitter.emit(user, "clicked")
    counts = Group(broker, "click-counts", [clicks])
    counted = {"Ann": b"6", "Bob": b"1"}
    wait_until(lambda: counts.values() == counted, lambda: f"{counts.values()} {ours.output()}", WAIT_S, every=1.0)
    assert reported() == expected
    ours.end()
    again = OursInPython(CASE.app("python"), tmp_path / "again", broker, [clicks], "")
    ends.callback(again.end)
    said = again.refusal()
    assert "R788 click-counts cannot continue from the data of Goka's own processors; another check" in said, said
    ours.start()  # the one that has begun with it goes on
    ours.end()
    broker.delete(clicks, purchases, reports, table)  # and the offsets of their partitions


def test_a_table_of_a_million_keys(broker: Broker, ends: ExitStack, tmp_path: Path) -> None:
    """Read at once; prints how long it took, and how much memory which process needed at most."""
    group, topic = "million", "million-clicks"
    values = [(None, b"user-%d" % number, b"%d" % (number % 1000)) for number in range(KEYS)]
    left(broker, topic, f"{group}-table", group, values, 8)
    ours = OursInPython(IN_PYTHON, tmp_path / "ours", broker, [topic], group)
    ends.callback(ours.end)
    with Peaks(ours, READING, TAKEN) as peaks:
        ours.start()
    output = ours.output()
    assert f"table {group}-table: {KEYS:,} keys begin with Goka's values" in output
    print(f"{KEYS:,} keys: {peaks.seconds(READING, TAKEN):.0f} s; {peaks}")
    with goka.Emitter([broker.address], topic, goka.String()) as emitter:
        for number in (7, KEYS - 1):
            emitter.emit(f"user-{number}", "click")
    moved = Group(broker, group, [topic])
    table = moved.ends(f"{group}-table")

    def news() -> dict[str, bytes | None]:
        return dict(moved.records([f"{group}-table"], table))

    expected = {"user-7": b"8", f"user-{KEYS - 1}": b"1000"}
    wait_until(lambda: news() == expected, lambda: f"{news()} {ours.output()}", WAIT_S, every=1.0)


def is_active(broker: Broker, group: str) -> bool:
    """Whether a consumer group has members."""
    client = broker.cluster.admin()  # the answer comes as long as there is the client
    return bool(client.describe_consumer_groups([group])[group].result(30).members)


RENAMED = """
from wallaroo import goka

def count(ctx, message):
    ctx.set_value((ctx.value() or 0) + 1)

def application_setup(args):
    edges = goka.input(args[2], goka.String(), count), goka.persist(goka.Int64())
    return goka.application([args[1]], goka.define_group(args[3], *edges), start="start")
"""


def test_what_is_not_there_is_refused_before_topics_are_created(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(RENAMED)
    topic = f"renamed-{random.randrange(1 << 32)}"
    group, table = f"group-of-{topic}", f"group-of-{topic}-table"
    broker.create(topic, 2)
    arguments = [tmp_path / "app.py", broker.address, topic, group]
    options = ["--continue-goka", "--checkpoint", tmp_path / "c", "--stop-when-idle", "1"]
    done = wallaroo("run", *arguments, *options)
    assert done.returncode == 1
    assert (
        f"R788 {group} cannot continue from the data of Goka's own processors; no table of its groups has records, "
        "and no group has committed offsets"
    ) in done.stderr.splitlines()
    assert table not in broker.cluster.metadata().topics
    commit(broker, group, {(topic, 1): 0})
    done = wallaroo("run", *arguments, *options)
    assert done.returncode == 0 and "  fix: " not in done.stderr, done.stderr
    assert f"{topic}: continues at the offsets of Goka's group" in done.stderr
    assert table in broker.cluster.metadata().topics
