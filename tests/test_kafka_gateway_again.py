"""A gateway that reads a topic, and a broker that is silent, or a topic that has lost what was read already."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from support.kafka import Broker
from support.kafka_gateway import DEADLINE_S, QUIET, TopicGateway, new_topic, produce
from support.run import wait_until
from wallaroo_runtime.kafka.client import LATEST

pytestmark = pytest.mark.kafka


@pytest.fixture
def gateway(tmp_path: Path, broker: Broker) -> Iterator[TopicGateway]:
    made = TopicGateway(tmp_path, broker.address)
    yield made
    if made.is_alive():
        made.end()


def test_markers_of_transactions_that_are_gone_are_no_lost_records(broker: Broker, gateway: TopicGateway) -> None:
    """All records were read. Retention removes them while the gateway is stopped, and what follows them."""
    topic = new_topic(broker)
    writer = Producer({**QUIET, "bootstrap.servers": broker.address, "transactional.id": topic})
    writer.init_transactions(60)
    for is_kept in (True, False):
        writer.begin_transaction()
        writer.produce(topic, b"kept" if is_kept else b"aborted", partition=0)
        writer.flush(60)
        writer.commit_transaction(60) if is_kept else writer.abort_transaction(60)
    gateway.read(topic, {0: 0})
    gateway.start()
    wait_until(lambda: gateway.status().get("kafka", [{}])[0].get("at_end"), gateway.log, DEADLINE_S)
    assert gateway.end(signal.SIGTERM) == 0
    broker.truncate(topic, broker.cluster.offsets(topic, [0], LATEST))
    gateway.start()
    produce(broker, topic, [b"after"])
    gateway.wait_messages(2)
    assert gateway.values() == [b"kept", b"after"]
    assert gateway.findings() == []


def test_a_broker_that_takes_connections_and_does_not_answer_is_reported(broker: Broker, gateway: TopicGateway) -> None:
    topic = new_topic(broker)
    gateway.read(topic, {0: 0})
    produce(broker, topic, [b"before"])
    gateway.start()
    gateway.wait_messages(1)
    broker.freeze()
    try:
        wait_until(lambda: gateway.findings() == ["R791"], gateway.log, DEADLINE_S)
    finally:
        broker.thaw()
    produce(broker, topic, [b"after"])
    gateway.wait_messages(2)
    assert gateway.values() == [b"before", b"after"]
    assert gateway.findings() == ["R791"], "once for an outage"


@pytest.mark.parametrize("runs", [True, False])
def test_first_records_of_a_new_partition_that_are_gone(runs: bool, broker: Broker, gateway: TopicGateway) -> None:
    """The partition is added, and loses records, before the gateway has seen it."""
    topic = new_topic(broker)
    gateway.read(topic, {0: 0})
    gateway.start()
    wait_until(lambda: gateway.status().get("kafka"), gateway.log, DEADLINE_S)
    assert gateway.process is not None
    gateway.process.send_signal(signal.SIGSTOP) if runs else gateway.end()
    broker.grow(topic, partitions=2)
    produce(broker, topic, [b"lost", b"lost", b"left"], partition=1)
    broker.truncate(topic, {1: 2})
    gateway.process.send_signal(signal.SIGCONT) if runs else gateway.start()
    assert gateway.process.wait(60) == 1
    (finding,) = gateway.status()["diagnostics"]
    told = "are gone, in partition 1 from offset 0 on; 2 records are gone, and the first one is now 2"
    assert finding["message"].endswith(told)
    gateway.kafka[0]["reset"] = "start"
    gateway.start()
    gateway.wait_messages(1)
    assert (gateway.values(), gateway.findings()) == ([b"left"], ["R792"])
