"""The gateway reads topics into its journal, as in real-time mode: each record once, from where it shall begin."""

import os
import random
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewPartitions
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.kafka import Broker, free_port
from support.kafka_gateway import DEADLINE_S, QUIET, TopicGateway, new_topic, produce
from support.run import wait_until
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.source_progress import POINT_HEADER
from wallaroo_runtime.kafka.identity import is_other
from wallaroo_runtime.run.topics import first_offsets, topic_id, topic_start
from wallaroo_runtime.storage.outbox.sink_record import SinkRecord
from wallaroo_runtime.topology.model import KafkaSource

pytestmark = pytest.mark.kafka
Sent = dict[int, list[tuple[bytes | None, bytes | None]]]  # partition to keys and values
POINTS = ("gateway.after_append", "gateway.after_sync", "gateway.before_publish")


@pytest.fixture
def gateway(tmp_path: Path, broker: Broker) -> Iterator[TopicGateway]:
    made = TopicGateway(tmp_path, broker.address)
    yield made
    if made.is_alive():
        made.end()


class Writer:
    """Writes drawn transactions, some of which it aborts."""

    def __init__(self, broker: Broker, topic: str, source: random.Random, partitions: int) -> None:
        self.topic, self.source, self.partitions = topic, source, partitions
        self.kept: Sent = {number: [] for number in range(partitions)}
        self._number = 0
        self._producer = Producer({**QUIET, "bootstrap.servers": broker.address, "transactional.id": topic})
        self._producer.init_transactions(60)

    def write(self) -> None:
        """Write one transaction."""
        self._producer.begin_transaction()
        written: Sent = {number: [] for number in range(self.partitions)}
        chosen = self.source.sample(range(self.partitions), self.source.randrange(1, self.partitions + 1))  # some rest
        for _ in range(self.source.randrange(1, 300)):
            partition, self._number = self.source.choice(chosen), self._number + 1
            key = None if self.source.random() < 0.1 else b"key %d" % self.source.randrange(9)
            value = None if self.source.random() < 0.1 else b"%d" % self._number * self.source.randrange(1, 40)
            self._producer.produce(self.topic, value, key=key, partition=partition)
            written[partition].append((key, value))
        if self.source.random() < 0.3:
            self._producer.flush(60)
            self._producer.abort_transaction(60)
            return
        self._producer.commit_transaction(60)
        for partition, records in written.items():
            self.kept[partition] += records


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 1 << 30), st.integers(1, 4))
def test_each_committed_record_is_journaled_once_whatever_kills_the_gateway(
    tmp_path_factory: pytest.TempPathFactory, broker: Broker, seed: int, partitions: int
) -> None:
    source, topic = random.Random(seed), new_topic(broker, partitions)
    gateway = TopicGateway(tmp_path_factory.mktemp("drawn"), broker.address)
    gateway.read(topic, dict.fromkeys(range(partitions), 0))
    writer, journaled = Writer(broker, topic, source, partitions), list[SinkRecord]()
    for _ in range(4):
        fault = (
            {"WALLAROO_FAULT": f"{source.choice(POINTS)}:{source.randrange(1, 12)}"} if source.random() < 0.6 else {}
        )
        gateway.start(**fault)
        for _ in range(source.randrange(4)):
            writer.write()
        time.sleep(source.uniform(0.2, 1.5))
        journaled += gateway.processed()  # segments go, and the gateway must know what they said
        time.sleep(source.uniform(0.0, 2.0))
        gateway.end()
    gateway.start()
    writer.write()
    wait_until(lambda: gateway.status().get("kafka", [{}])[0].get("at_end"), gateway.log, DEADLINE_S)
    gateway.wait_messages(sum(map(len, writer.kept.values())) - len(journaled))
    assert gateway.end(signal.SIGTERM) == 0, gateway.log()
    found: Sent = {number: [] for number in range(partitions)}
    for record in [*journaled, *gateway.processed()]:
        assert record.partition is not None
        found[record.partition].append((record.key, record.value))
    assert found == writer.kept


def test_a_source_of_values_reads_committed_records_alone(broker: Broker, gateway: TopicGateway) -> None:
    topic, seed = new_topic(broker), random.randrange(1 << 30)
    print(f"seed {seed}")
    port = gateway.read(topic, {0: 0}, records=False)
    writer, found = Writer(broker, topic, random.Random(seed), 1), list[bytes]()
    for _ in range(3):
        gateway.start()
        for _ in range(4):
            writer.write()
        time.sleep(writer.source.uniform(0.0, 2.0))
        gateway.end()
    writer.write()
    gateway.start()
    wait_until(lambda: gateway.status().get("kafka", [{}])[0].get("at_end"), gateway.log, DEADLINE_S)
    gateway.wait_messages(len(writer.kept[0]))
    assert gateway.end(signal.SIGTERM) == 0, gateway.log()
    for frame in gateway.frames():
        found += [bytes(value or b"") for value in frame.values() if frame.header.port == port]
    assert found == [value or b"" for _, value in writer.kept[0]]


def source_of(broker: Broker, topic: str, start: str, **more: object) -> KafkaSource:
    made = KafkaSource(
        path="0/sources/0", name=topic, kind="kafka", codec="", worker="main", topic=topic, brokers=(broker.address,),
        start=start, options={}, max_message_bytes=1000, content="record",
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("start", "partitions", "expected"),
    [
        ("start", None, {0: 0, 1: 0}),
        ("end", None, {0: 5, 1: 2}),
        ("-3", None, {0: 2, 1: 0}),
        ("start", ((1, "1"),), {1: 1}),
        ("start", ((0, "end"), (1, "-1")), {0: 5, 1: 1}),
    ],
)
def test_where_a_source_begins(
    broker: Broker, start: str, partitions: tuple[tuple[int, str], ...] | None, expected: dict[int, int]
) -> None:
    topic = new_topic(broker, 2)
    produce(broker, topic, [b"%d" % number for number in range(5)])
    produce(broker, topic, [b"a", b"b"], partition=1)
    assert first_offsets(source_of(broker, topic, start, partitions=partitions)) == expected


def test_a_partition_and_a_topic_that_are_not_there(broker: Broker) -> None:
    topic = new_topic(broker)
    with pytest.raises(RunError, match="R673.*it has partitions 0, not 4"):
        first_offsets(source_of(broker, topic, "start", partitions=((4, "start"),)))
    with pytest.raises(RunError, match="R673.*it does not exist"):
        first_offsets(source_of(broker, "no-such-topic", "start"))
    with pytest.raises(RunError, match="R716.*No such configuration property"):
        first_offsets(source_of(broker, topic, "start", options={"kafka.max.poll.interval": "1"}))
    with pytest.raises(RunError, match=f'R672 source "{topic}": no answer from Kafka'):
        first_offsets(source_of(broker, topic, "start", brokers=(f"127.0.0.1:{free_port()}",)))


def test_where_it_begins_is_decided_once(broker: Broker, gateway: TopicGateway) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [b"before"] * 3)
    gateway.read(topic, first_offsets(source_of(broker, topic, "end")))
    gateway.start()
    wait_until(lambda: gateway.status().get("kafka"), gateway.log, DEADLINE_S)
    gateway.end()
    produce(broker, topic, [b"first"])
    gateway.kafka[0]["starts"] = first_offsets(source_of(broker, topic, "end"))
    assert gateway.kafka[0]["starts"] == {0: 4}
    gateway.start()
    gateway.wait_messages(1)
    assert gateway.values() == [b"first"]


def test_a_new_partition_is_read_from_its_first_record(broker: Broker, gateway: TopicGateway) -> None:
    topic = new_topic(broker)
    gateway.read(topic, {0: 0})
    gateway.start()
    wait_until(lambda: gateway.status().get("kafka"), gateway.log, DEADLINE_S)
    admin = broker.cluster.admin()  # the answer comes as long as there is the client
    for done in admin.create_partitions([NewPartitions(topic, 2)]).values():
        done.result(60)
    wait_until(lambda: len(broker.cluster.partitions(topic)) == 2, lambda: "the partition", DEADLINE_S)
    produce(broker, topic, [b"new"], partition=1)
    gateway.wait_messages(1)
    gateway.end()
    produce(broker, topic, [b"newer"], partition=1)
    gateway.start()
    gateway.wait_messages(2)
    assert [(record.partition, record.value) for record in gateway.records()] == [(1, b"new"), (1, b"newer")]


def test_chosen_partitions_are_read_alone(broker: Broker, gateway: TopicGateway) -> None:
    topic = new_topic(broker, 2)
    produce(broker, topic, [b"no"])
    produce(broker, topic, [b"yes", b"yes"], partition=1)
    gateway.read(topic, {1: 1}, chosen=True)
    gateway.start()
    wait_until(lambda: gateway.status().get("kafka", [{}])[0].get("at_end"), gateway.log, DEADLINE_S)
    assert [(record.partition, record.value) for record in gateway.records()] == [(1, b"yes")]


def test_a_broker_that_is_away_is_reported_and_waited_for(broker: Broker, gateway: TopicGateway) -> None:
    topic = new_topic(broker)
    gateway.read(topic, {0: 0})
    produce(broker, topic, [b"before"])
    gateway.start()
    gateway.wait_messages(1)
    broker.kill()
    try:
        wait_until(lambda: gateway.findings() == ["R791"], gateway.log, DEADLINE_S)
        gateway.end()
        gateway.start()  # it waits as well where there is none at its start
        wait_until(lambda: gateway.findings() == ["R791"], gateway.log, DEADLINE_S)
        assert "127.0.0.1" in gateway.status()["diagnostics"][0]["message"]
    finally:
        broker.start()
    produce(broker, topic, [b"after"])
    gateway.wait_messages(2)
    assert gateway.values() == [b"before", b"after"]
    assert gateway.findings() == ["R791"], "once for an outage"


def test_a_topic_that_is_deleted_while_nothing_comes_is_reported(broker: Broker, gateway: TopicGateway) -> None:
    topic = new_topic(broker)
    gateway.read(topic, {0: 0})
    produce(broker, topic, [b"before"])
    gateway.start()
    gateway.wait_messages(1)
    broker.delete(topic)
    wait_until(lambda: gateway.findings() == ["R791"], gateway.log)
    time.sleep(7)  # longer than from one look to the next
    assert gateway.findings() == ["R791"], "once for an outage"


def test_tables_precede_all_other_sources(broker: Broker, gateway: TopicGateway) -> None:
    table, stream, port = new_topic(broker, 2), new_topic(broker), free_port()
    for partition in range(2):
        produce(broker, table, [b"row"] * 20_000, partition)
    produce(broker, stream, [b"event"] * 100)
    ports = [gateway.read(stream, {0: 0}), gateway.read(table, {0: 0, 1: 0}, table=True)]
    tcp = {"port": 9, "path": "0/sources/9", "name": "tcp", "host": "127.0.0.1", "tcpPort": port}
    gateway.more["sources"] = [tcp | {"framing": "newline", "maxMessageBytes": 100}]
    gateway.start()
    wait_until(lambda: _sends(port), gateway.log, DEADLINE_S)
    gateway.wait_messages(40_000 + 100 + 1)
    found = gateway.ports()
    assert set(found[:40_000]) == {ports[1]}
    assert sorted(found[40_000:]) == [ports[0]] * 100 + [9]


def _sends(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port)) as sender:
            sender.sendall(b"line\n")
    except OSError:
        return False
    return True


@pytest.mark.parametrize(
    ("offset", "first", "lost"),
    [(7, 0, "7 on; the partition ends at 2"), (0, 2, "0 on; 2 records are gone, and the first")],
)
def test_records_that_are_gone_end_it(
    offset: int, first: int, lost: str, broker: Broker, gateway: TopicGateway
) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [b"one", b"two"])
    broker.truncate(topic, {0: first})
    gateway.read(topic, {0: offset})
    gateway.start()
    assert gateway.process is not None
    assert gateway.process.wait(60) == 1
    (finding,) = gateway.status()["diagnostics"]
    assert finding["code"] == "R792"
    begin = f'source "{topic}": unread records of topic {topic} are gone, in partition 0 from offset {lost}'
    assert finding["message"].startswith(begin)


@pytest.mark.parametrize(("reset", "expected"), [("start", [b"one", b"two", b"more"]), ("end", [b"more"])])
def test_records_that_are_gone_are_passed_over_if_that_is_said(
    broker: Broker, gateway: TopicGateway, reset: str, expected: list[bytes]
) -> None:
    topic = new_topic(broker, 2)
    produce(broker, topic, [b"one", b"two"])
    produce(broker, topic, [b"beside"], partition=1)
    gateway.read(topic, {0: 7, 1: 0}, reset=reset)
    gateway.start()
    wait_until(lambda: gateway.findings() == ["R792"], gateway.log, DEADLINE_S)
    wait_until(lambda: gateway.status()["kafka"][0]["at_end"], gateway.log, DEADLINE_S)
    produce(broker, topic, [b"more"])
    gateway.wait_messages(len(expected) + 1)
    assert sorted(filter(None, gateway.values())) == sorted([*expected, b"beside"])
    gateway.end()
    gateway.start()
    produce(broker, topic, [b"last"])
    gateway.wait_messages(len(expected) + 2)
    assert gateway.findings() == []


def test_a_topic_that_is_created_again_is_noticed_and_read_once(broker: Broker, gateway: TopicGateway) -> None:
    topic = new_topic(broker)
    source = source_of(broker, topic, "end")
    known = {source.path: topic_id(source)}
    produce(broker, topic, [b"old"] * 2)
    gateway.read(topic, {0: 0}, topicId=known[source.path])
    gateway.start()
    gateway.wait_messages(2)
    gateway.end()
    broker.delete(topic)
    broker.create(topic)
    produce(broker, topic, [b"1", b"2", b"3"])
    with pytest.raises(RunError, match=f"R738 .*topic {topic} was deleted .*its id was {known[source.path]} and is "):
        topic_start(source, known)
    begin = topic_start(source, known, "start")
    assert (begin.offsets, begin.reset, is_other(known[source.path], begin.topic_id)) == ({0: 0}, "start", True)
    assert topic_start(source, known, "end").offsets == {0: 3}
    assert topic_start(source, {}).offsets == {0: 3}, "an earlier version kept no ids"
    gateway.kafka[0] |= {"starts": begin.offsets, "topicId": begin.topic_id, "reset": begin.reset}
    gateway.start()
    gateway.wait_messages(2 + 3)
    gateway.end()
    gateway.start()
    produce(broker, topic, [b"4"])
    gateway.wait_messages(2 + 4)
    assert gateway.values() == [b"old", b"old", b"1", b"2", b"3", b"4"]


def test_a_full_journal_holds_reading_up(broker: Broker, gateway: TopicGateway) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [os.urandom(900) for _ in range(3000)])
    gateway.read(topic, {0: 0})
    gateway.more["backlog_bytes"] = 300_000
    gateway.start()
    wait_until(lambda: gateway.status().get("reads") is False, gateway.log, DEADLINE_S)
    time.sleep(1.0)
    count = len(gateway.ports())
    assert 0 < count < 1500
    gateway.end()
    gateway.more["backlog_bytes"] = 1 << 30
    gateway.start()
    gateway.wait_messages(3000)
    assert len({record.value for record in gateway.records()}) == 3000


def test_values_alone_have_keys_and_headers_and_none_of_ours_from_outside(
    broker: Broker, gateway: TopicGateway
) -> None:
    topic = new_topic(broker)
    forged = POINT_HEADER.decode(), (0).to_bytes(8, "big") + (99).to_bytes(8, "big")
    producer = Producer({**QUIET, "bootstrap.servers": broker.address})
    producer.produce(topic, b"1", key=b"a", headers=[("via", b"web"), forged], timestamp=5000)
    producer.produce(topic, None, key=b"b", timestamp=5002)
    producer.flush(60)
    gateway.read(topic, {0: 0}, records=False)
    gateway.start()
    gateway.wait_messages(2)
    (frame,) = gateway.frames()
    assert (frame.keys, frame.values(), frame.absent) == ([b"a", b"b"], [b"1", b""], [1])
    assert frame.times() == [5000, 5002]
    assert b"via" in frame.headers[0] and POINT_HEADER not in frame.headers[0]
    gateway.end()
    gateway.start()
    producer.produce(topic, b"3", key=b"a")
    producer.flush(60)
    gateway.wait_messages(3)
    assert len(gateway.ports()) == 3
