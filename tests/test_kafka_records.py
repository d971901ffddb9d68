"""Whole records against a real broker: written as they are, topics created, an application of tables and streams."""

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, Producer, TopicPartition

from support import joined
from support.joined import Joined
from support.kafka import Broker, free_port
from support.run import WALLAROO, wait_until
from wallaroo import KafkaRecord
from wallaroo.worker.value.kafka_record import write_record
from wallaroo_runtime.egress import kafka_session, kafka_transaction
from wallaroo_runtime.egress.kafka_session import KafkaRefusal, ProducerSession, Unavailable
from wallaroo_runtime.egress.kafka_transaction import TransactionalSession
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.client import Cluster, kafka_client
from wallaroo_runtime.kafka.record import emit
from wallaroo_runtime.kafka.topic import SET_CLOCKS, RecordLimits, describe_topic
from wallaroo_runtime.run.topics import create_topics
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.position import SinkPosition
from wallaroo_runtime.storage.outbox.sink_record import RecordColumns, whole_record
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology

pytestmark = pytest.mark.kafka
VALID = Path(__file__).parents[1] / "topology-schema" / "vectors" / "topologies" / "valid"
PROGRAM = Path(joined.__file__)
PARTITIONS, ANSWER_S, RUN_S = 3, 60.0, 900.0
ABORTED_S = 6.0  # the broker looks for such transactions each second


def drawn_bytes(draw: random.Random) -> bytes | None:
    return None if draw.random() < 0.2 else draw.randbytes(draw.randrange(4))


def drawn_record(draw: random.Random) -> KafkaRecord:
    """Return a record of which anything may be missing."""
    headers = tuple((draw.choice(["", "a", "größe"]), drawn_bytes(draw)) for _ in range(draw.randrange(4)))
    return KafkaRecord(
        topic="ignored",
        key=drawn_bytes(draw),
        value=drawn_bytes(draw),
        headers=headers,
        timestamp_ms=draw.choice([draw.randrange(1, 1_700_000_000_000), draw.randrange(-62_135_596_800_000, -1)]),
        partition=draw.choice([None, *range(PARTITIONS)]),
        offset=draw.randrange(1 << 60),
    )


def fnv1a(key: bytes) -> int:
    """Return the partition that Goka chooses: FNV-1a as a number with sign, whose absolute value is divided."""
    found = 0x811C9DC5
    for byte in key:
        found = (found ^ byte) * 0x01000193 & 0xFFFFFFFF
    return abs(found - (1 << 32) if found >= 1 << 31 else found) % PARTITIONS


def read_all(broker: Broker, topic: str, count: int) -> list[list[KafkaRecord]]:
    """Return the records that readers of committed ones see, by partition."""
    settings = {"bootstrap.servers": broker.address, "group.id": "r", "isolation.level": "read_committed"}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    found: list[list[KafkaRecord]] = [[] for _ in range(PARTITIONS)]
    for _ in range(count):
        message = consumer.poll(ANSWER_S)
        assert message is not None and message.error() is None, message
        kind, time = message.timestamp()
        assert kind == TIMESTAMP_CREATE_TIME
        at = message.partition()
        assert at is not None
        headers = tuple(message.headers() or ())
        found[at].append(KafkaRecord(key=message.key(), value=message.value(), headers=headers, timestamp_ms=time))
    consumer.close()
    return found


def opened(target: pb.KafkaTopic, name: str) -> TransactionalSession:
    """Return a session, as a sink opens one: again while the broker, which has just started, knows no coordinator."""
    found: list[TransactionalSession] = []

    def is_open() -> bool:
        with contextlib.suppress(Unavailable):
            found.append(TransactionalSession(kafka_client("a test"), target, "out", name))
        return bool(found)

    wait_until(is_open, lambda: f"a session of {name}", ANSWER_S)
    return found[0]


def columns(records: Iterable[KafkaRecord]) -> list[RecordColumns]:
    """Return whole records as a sink writes them."""
    return [RecordColumns.of(map(whole_record, map(write_record, records)))]


def test_drawn_records_are_written_as_they_are(broker: Broker) -> None:
    draw = random.Random(7)
    topic = "whole"
    broker.create(topic, PARTITIONS)
    options = {"kafka.partitioner": "fnv1a"}
    target = pb.KafkaTopic(application="app", brokers=[broker.address], topic=topic, options=options, records=True)
    records = [drawn_record(draw) for _ in range(300)]
    session = opened(target, "whole-records")
    for at in range(0, len(records), 100):
        session.write(columns(records[at : at + 100]), SinkPosition(0, 0, 0, at + 100, 0, "whole-records"))
    session.close()
    found = read_all(broker, topic, len(records))
    for number in range(PARTITIONS):
        for record in found[number]:
            same = [each for each in records if (each.key, each.value) == (record.key, record.value)]
            same = [each for each in same if (each.headers, each.timestamp_ms) == (record.headers, record.timestamp_ms)]
            assert same, record
            records.remove(same[0])
            if same[0].partition is not None:
                assert same[0].partition == number
            elif record.key:
                assert fnv1a(record.key) == number
    assert not records


def test_a_record_without_a_time_gets_kafka_s(broker: Broker) -> None:
    broker.create("untimed", PARTITIONS)
    target = pb.KafkaTopic(application="app", brokers=[broker.address], topic="untimed", records=True)
    session = opened(target, "untimed")
    records = [KafkaRecord(key=b"k", timestamp_ms=none) for none in (0, -1)]
    session.write(columns(records), SinkPosition(0, 0, 0, 2, 0, "untimed"))
    session.close()
    found = [record for part in read_all(broker, "untimed", 2) for record in part]
    assert min(record.timestamp_ms for record in found) > 1_600_000_000_000
    assert {(record.key, record.value, record.headers) for record in found} == {(b"k", None, ())}


def test_a_transaction_that_kafka_has_aborted_after_its_time_is_no_other_egress(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine may sleep, or a process be stopped, in the middle of a transaction."""
    broker.create("slow", PARTITIONS)
    options = {"kafka.transaction.timeout.ms": "1000"}
    target = pb.KafkaTopic(application="app", brokers=[broker.address], topic="slow", options=options, records=True)
    session, records = opened(target, "slow"), columns([KafkaRecord(key=b"k", value=b"v")])
    monkeypatch.setattr(kafka_transaction, "reach", lambda point: time.sleep(ABORTED_S * point.endswith("positioned")))
    with pytest.raises(Unavailable, match="transaction.timeout.ms"):
        session.write(records, SinkPosition(0, 0, 0, 1, 0, "slow"))
    session.close()
    monkeypatch.undo()
    session = opened(target, "slow")
    assert session.position is None
    session.write(records, SinkPosition(0, 0, 0, 1, 0, "slow"))
    session.close()
    assert sum(map(len, read_all(broker, "slow", 1))) == 1


def test_more_records_than_the_client_holds_are_written(broker: Broker) -> None:
    broker.create("held", 1)
    cluster = Cluster([broker.address], {"queue.buffering.max.messages": "10"})
    assert emit(cluster, "held", [KafkaRecord(key=b"k", value=b"v")] * 100) == {0: 100}


def test_a_record_that_kafka_never_takes_is_told_apart_from_those_in_its_batch(broker: Broker) -> None:
    broker.create("future", 1)
    target = pb.KafkaTopic(application="app", brokers=[broker.address], topic="future", records=True)
    session = opened(target, "future")
    records = [KafkaRecord(key=b"k", timestamp_ms=number) for number in (1, 2, 1 << 42, 3)]
    with pytest.raises(KafkaRefusal, match="s in the future, message.timestamp.after.max.ms is 3600000") as refused:
        session.write(columns(records), SinkPosition(0, 0, 0, 4, 0, "future"))
    assert [*refused.value.numbers] == [2]
    session.close()


@pytest.mark.parametrize(("exactly_once", "knows_limits"), [(True, True), (True, False), (False, True)])
def test_a_time_of_the_data_that_only_the_broker_refuses(
    exactly_once: bool, knows_limits: bool, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of this machine is two hours ahead of the broker's. A user may write a topic and not see its limits."""
    topic, now = f"clocks-{exactly_once}-{knows_limits}", time.time_ns()
    broker.create(topic, 1)
    target = pb.KafkaTopic(application="app", brokers=[broker.address], topic=topic, records=True)
    monkeypatch.setattr(kafka_session, "time", Mock(wraps=time, time_ns=lambda: now + 7200 * 10**9))
    if not knows_limits:
        monkeypatch.setattr(kafka_session, "record_limits", lambda *_: RecordLimits())
    session = opened(target, topic) if exactly_once else ProducerSession(kafka_client("a test"), target, "out")
    record = KafkaRecord(key=b"k", timestamp_ms=now // 10**6 + 6_000_000)
    with pytest.raises(Unavailable if knows_limits else KafkaRefusal) as refused:
        session.write(columns([record] * (5000 if knows_limits else 1)), SinkPosition(0, 0, 0, 1, 0, topic))
    session.close()
    if isinstance(refused.value, Unavailable):
        assert refused.value.fix == SET_CLOCKS
        told = f"topic {topic} refuses the time of a record; .*Invalid timestamp.*; this machine's "
        assert re.match(told, str(refused.value)), refused.value
    else:
        assert [*refused.value.numbers] == [0]
        assert str(refused.value) == "Broker: Invalid timestamp (a wrong time in the data, or wrong clocks)"


@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize("topic_bytes", [20_000, 3_000_000])
def test_records_that_only_the_broker_refuses(
    topic_bytes: int, exactly_once: bool, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user may write a topic and not see its limits: each record that is too large is found, also in one batch."""
    topic, draw = f"unseen-{topic_bytes}-{exactly_once}", random.Random(topic_bytes)
    broker.create(topic, PARTITIONS)
    broker.alter(topic, "max.message.bytes", str(topic_bytes))
    options = {"kafka.max.request.size": str(2 * topic_bytes)}
    target = pb.KafkaTopic(application="app", brokers=[broker.address], topic=topic, records=True, options=options)
    monkeypatch.setattr(kafka_session, "record_limits", lambda *_: RecordLimits())
    session = opened(target, topic) if exactly_once else ProducerSession(kafka_client("a test"), target, "out")
    records = [
        whole_record(write_record(KafkaRecord(key=b"%d" % number, value=bytes(int(topic_bytes * size)))))
        for number, size in enumerate(draw.choice([0.1, 0.3, 0.8, 1.2]) for _ in range(20))
    ]
    large = {number for number, record in enumerate(records) if len(record.value or b"") > topic_bytes}
    refused = dict[int, str]()
    while True:
        try:
            session.write([RecordColumns.of(records)], SinkPosition(0, 0, 0, 20, 0, topic), refused)
        except KafkaRefusal as error:
            assert error.numbers, error
            assert error.is_too_large
            refused |= error.numbers
        else:
            break
    session.close()
    assert refused.keys() == large
    if exactly_once:
        found = sum(read_all(broker, topic, len(records) - len(large)), [])
        assert {int(record.key or b"-1") for record in found} == {*range(20)} - large


def creating(broker: str, **creations: dict[str, Any]) -> Topology:
    """Return an application whose first topics are created so."""
    document = json.loads((VALID / "records.json").read_bytes())
    pipeline = document["pipelines"][0]
    for part in (*pipeline["sources"], *pipeline["sinks"]):
        part["brokers"] = [broker]
        part.pop("create", None)
    for part, (topic, create) in zip((*pipeline["sources"], *pipeline["sinks"]), creations.items(), strict=False):
        part |= {"topic": topic, "create": create}
    return load_document(document)


def test_topics_are_created_once_each_after_the_one_that_it_is_like(broker: Broker) -> None:
    compact = {"cleanup.policy": "compact"}
    topology = creating(
        broker.address, third={"like": "second"}, second={"like": "first", "options": compact}, first={"partitions": 5}
    )
    notes: list[str] = []
    create_topics(topology, notes.append)
    assert sorted(notes) == [f'topic "{name}" created, 5 partitions' for name in ("first", "second", "third")]
    assert len(describe_topic(broker.cluster, "third").partitions) == 5
    assert describe_topic(broker.cluster, "second").settings["cleanup.policy"] == "compact"
    create_topics(topology, notes.append)
    create_topics(creating(broker.address, first={"partitions": 9}), notes.append)
    assert len(notes) == 3
    assert len(describe_topic(broker.cluster, "first").partitions) == 5


def test_topics_that_cannot_be_created(broker: Broker) -> None:
    with pytest.raises(RunError) as caught:
        create_topics(creating(broker.address, fourth={"like": "nothing"}), print)
    assert f'R673 Kafka at {broker.address} has no such topic "nothing"; topic "fourth" shall be like it' in str(
        caught.value
    )
    options = {"cleanup.policy": "sometimes"}
    with pytest.raises(RunError, match="R727") as caught:
        create_topics(creating(broker.address, fifth={"partitions": 1, "options": options}), print)
    assert "sometimes" in str(caught.value)
    with pytest.raises(RunError, match="R672") as caught:
        create_topics(creating(f"127.0.0.1:{free_port()}", sixth={"partitions": 1}), print)
    assert 'R672 source "users" that creates topic "sixth": no answer from Kafka at ' in str(caught.value)


class Played:
    """What the program must give: each click with how often and in which order its key's tables have changed."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self.draw = broker, random.Random(11)
        self.states: dict[bytes, Joined] = {}
        self.expected: list[tuple[bytes | None, bytes, int, bytes]] = []
        self.offsets = [0] * PARTITIONS
        self.number = 0

    def write(self, table_records: int, clicks: int) -> None:
        """Write what one micro-batch reads: tables precede the clicks, whatever the order in which they come."""
        producer = Producer({"bootstrap.servers": self.broker.address, "linger.ms": 50})
        keys = [b"key %d" % number for number in range(40)]
        for _ in range(table_records):
            self.number += 1
            topic, key = self.draw.choice(["users", "prices"]), self.draw.choice(keys)
            value = None if self.draw.random() < 0.1 else b"%d" % self.number
            producer.produce(topic, value, key, partition=fnv1a(key))
            producer.poll(0)
            self.states.setdefault(key, Joined()).change(topic, value)
        for _ in range(clicks):
            chosen = None if self.draw.random() < 0.1 else self.draw.choice(keys)
            at = self.draw.randrange(PARTITIONS)
            producer.produce("clicks", None, chosen, partition=at, headers=[("via", None), ("via", b"test")])
            text = self.states.setdefault(chosen or b"", Joined()).text()
            self.expected.append((chosen, text, at, str(self.offsets[at]).encode()))
            self.offsets[at] += 1
        assert producer.flush(ANSWER_S) == 0

    def abort(self) -> None:
        """Write clicks in a transaction that is aborted: they are none, and it takes an offset for its end."""
        producer = Producer({"bootstrap.servers": self.broker.address, "transactional.id": "aborted"})
        producer.init_transactions(ANSWER_S)
        producer.begin_transaction()
        for _ in range(5):
            producer.produce("clicks", b"aborted", b"key 1", partition=0)
        producer.flush(ANSWER_S)
        producer.abort_transaction(ANSWER_S)
        self.offsets[0] += 5 + 1

    def check(self) -> None:
        """Compare with what readers of committed records see."""
        found = read_all(self.broker, "seen", len(self.expected))
        seen = [(record.key, record.value, record.headers) for part in found for record in part]
        wanted = [
            (key, text, (("via", None), ("via", b"test"), ("offset", offset))) for key, text, _, offset in self.expected
        ]
        assert Counter(seen) == Counter(wanted)


def run(directory: Path, broker: Broker, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [WALLAROO, "run", PROGRAM, "--checkpoint", directory / "checkpoint", "--master", "local[2]"]
    command += ["--stop-when-idle", "2", "--", broker.address]
    variables = {**os.environ, "TMPDIR": str(directory), **environment}
    return subprocess.run(
        list(map(str, command)), env=variables, capture_output=True, text=True, timeout=RUN_S, check=False
    )


@pytest.mark.jvm
@pytest.mark.timeout(2700)
def test_tables_precede_streams_in_each_micro_batch_whatever_dies(broker: Broker, tmp_path: Path) -> None:
    """The driver ends when the first micro-batch is published and not committed: it is the same when it is repeated."""
    played = Played(broker)
    create_topics(
        creating(broker.address, users={"partitions": 3}, clicks={"partitions": 3}, prices={"partitions": 3}), print
    )
    played.abort()
    played.write(table_records=40_000, clicks=3_000)
    died = run(tmp_path, broker, WALLAROO_FAULT="driver.before_commit:1", WALLAROO_FAULT_DIR=str(tmp_path))
    assert died.returncode == -signal.SIGKILL, died.stdout + died.stderr
    assert 'topic "seen" created, 3 partitions' in died.stderr
    again = run(tmp_path, broker)
    assert again.returncode == 0, again.stderr
    played.check()
    played.write(table_records=2_000, clicks=500)
    last = run(tmp_path, broker)
    assert last.returncode == 0, last.stderr
    played.check()
