"""Kafka at both ends on three nodes: leaders that die and move, quotas, compaction. Each word is counted once."""

import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from support.kafka_application import DEADLINE_S, PARTITIONS, Make, Topic, application, send, words
from support.kafka_nodes import NODES, Nodes
from support.run import wait_until
from wallaroo_runtime.kafka.topic import create_topic

__all__ = ["application"]  # the fixture

pytestmark = [pytest.mark.jvm, pytest.mark.kafka]
APP = Path(__file__).parent / "support" / "kafka_words.py"
TURN = 2000
LONG_BATCHES = [pytest.param("microbatch", marks=pytest.mark.long), "realtime"]
LONG_REALTIME = ["microbatch", pytest.param("realtime", marks=pytest.mark.long)]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Give the cluster."""
    found = Nodes(tmp_path_factory.mktemp("nodes"))
    try:
        found.start_all()
        yield found
    finally:
        found.stop()


@pytest.mark.parametrize("mode", LONG_REALTIME)
def test_leaders_that_die_and_move(mode: str, nodes: Nodes, application: Make) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    source, name = random.Random(seed), f"moves-{mode}"
    topics = (f"{name}-in", f"{name}-out", "__transaction_state")
    for topic in topics[:2]:
        nodes.create(topic, PARTITIONS)
    running = application(APP, name, *nodes.address.split(","))
    running.start("--mode", mode)
    topic, sent = Topic(nodes, topics[1]), list[str]()

    def write() -> None:
        batch = words(len(sent), len(sent) + TURN)
        sent.extend(batch)
        send(nodes, topics[0], batch)

    try:
        write()
        topic.read_words(len(sent), running)
        # Micro-batches stand still for up to a minute when a leader is gone.
        for victim in source.sample(range(2, NODES + 1), NODES - 1 if mode == "realtime" else 1):
            write()
            time.sleep(source.uniform(0.0, 2.0))  # the moment is what is drawn
            nodes.nodes[victim].kill()
            write()
            topic.read_words(len(sent), running)
            assert victim not in nodes.leaders(topics[0]).values()
            write()
            nodes.restore(victim, *topics)
            assert victim in nodes.leaders(topics[0]).values()
            write()
            topic.read_words(len(sent), running)
        assert topic.counts == {word: {1} for word in sent}
        assert topic.records == len(sent), "a record was written twice, and committed"
        assert running.end() == 0, running.output()
        assert "dead letters 0\n" in running.output()
    finally:
        topic.close()


@pytest.mark.parametrize("mode", LONG_BATCHES)
def test_status_names_a_partition_without_leader(mode: str, nodes: Nodes, application: Make) -> None:
    """The other partitions are read meanwhile, in real-time mode."""
    name = f"leaderless-{mode}"
    create_topic(nodes.cluster, f"{name}-in", PARTITIONS, 1, {})
    nodes.create(f"{name}-out", PARTITIONS)
    running = application(APP, name, *nodes.address.split(","))
    running.start("--mode", mode)
    topic, sent = Topic(nodes, f"{name}-out"), words(0, TURN)
    try:
        send(nodes, f"{name}-in", sent)
        topic.read_words(len(sent), running)
        led = [number for number, node in nodes.leaders(f"{name}-in").items() if node == NODES]
        nodes.nodes[NODES].kill()
        reason = f"partition {led[0]} of topic {name}-in has no leader"
        away = f'source "words": Kafka at {nodes.address} gives no records now; {reason}; reading goes on by itself'
        wait_until(lambda: running.away() == [away], running.output, DEADLINE_S, every=1.0)
        nodes.nodes[NODES].start()
        wait_until(lambda: not running.away(), running.output, DEADLINE_S, every=1.0)
        more = words(TURN, TURN + 30)
        send(nodes, f"{name}-in", more)
        topic.read_words(len(sent) + len(more), running)
        assert running.end() == 0, running.output()
        assert running.output().count("R791") == 1, running.output()
    finally:
        topic.close()


@pytest.mark.long
@pytest.mark.parametrize("mode", ["microbatch", "realtime"])
def test_quotas_of_clients(mode: str, nodes: Nodes, application: Make) -> None:
    """All clients together may write and read a tenth of what they would: the run waits, and nothing is refused."""
    name = f"quota-{mode}"
    for topic in ("in", "out"):
        nodes.create(f"{name}-{topic}", PARTITIONS)
    batch = words(0, 20_000)
    send(nodes, f"{name}-in", batch)
    limits = "producer_byte_rate=30000,consumer_byte_rate=60000"
    everyone = ("--entity-type", "clients", "--entity-default")
    nodes.configure(*everyone, "--add-config", limits)
    topic = Topic(nodes, f"{name}-out")
    try:
        running = application(APP, name, *nodes.address.split(","))
        running.start("--mode", mode, "--stop-when-idle", "10")
        assert running.wait() == 0, running.output()
        running.process = None
    finally:
        nodes.configure(*everyone, "--delete-config", "producer_byte_rate,consumer_byte_rate")
    try:
        topic.read_words(len(batch), running)
        assert topic.counts == {word: {1} for word in batch}
        assert topic.records == len(batch), "a record was written twice, and committed"
    finally:
        topic.close()
    assert f"stopped: in {len(batch):,}  out {len(batch):,}  " in running.output(), running.output()


@pytest.mark.parametrize("mode", LONG_BATCHES)
def test_a_topic_that_kafka_compacts(mode: str, nodes: Nodes, application: Make) -> None:
    """Offsets without records are not reported as lost records."""
    name = f"compact-{mode}"
    fast = {"segment_ms": "100", "min_cleanable_dirty_ratio": "0.01", "delete_retention_ms": "100"}
    nodes.create(f"{name}-in", PARTITIONS, cleanup_policy="compact", **fast)
    nodes.create(f"{name}-out", PARTITIONS)
    latest: dict[tuple[int, str], str] = {}
    producer, written, deadline = Producer({"bootstrap.servers": nodes.address}), 0, time.monotonic() + 120
    while number_of_records(nodes, f"{name}-in") == written:
        assert time.monotonic() < deadline, "Kafka compacts nothing"
        for number in range(PARTITIONS * 20):
            partition, key = number % PARTITIONS, str(number // PARTITIONS)
            latest[partition, key] = f"v-{written + number}"
            producer.produce(f"{name}-in", latest[partition, key], key=key, partition=partition)
        assert producer.flush(60) == 0
        written += PARTITIONS * 20
    running = application(APP, name, *nodes.address.split(","))
    topic = Topic(nodes, f"{name}-out")
    try:
        running.start("--mode", mode)
        topic.read_until(lambda: set(latest.values()) <= set(topic.counts), "the latest values", running)
        more = words(0, 30)
        send(nodes, f"{name}-in", more)
        topic.read_until(lambda: set(more) <= set(topic.counts), "what came later", running)
        assert running.end() == 0, running.output()
        assert all(counts == {1} for counts in topic.counts.values())
    finally:
        topic.close()
    assert "R792" not in running.output(), running.output()


def number_of_records(nodes: Nodes, topic: str) -> int:
    """Return how many records a topic has: fewer than its offsets once Kafka has compacted it."""
    consumer = Consumer({"bootstrap.servers": nodes.address, "group.id": topic, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    count, ends = 0, 0
    with contextlib.closing(consumer):
        while ends < PARTITIONS:
            for record in consumer.consume(1000, 0.2):
                count += record.error() is None
                ends += record.error() is not None
    return count
