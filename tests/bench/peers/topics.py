"""Topics of the broker: filled, watched, and read by a consumer of committed records."""

import time
from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from bench.peers.workload import RECORDS, WORDS, Record
from support.kafka import Broker
from wallaroo_runtime.kafka.topic import create_topic

PARTITIONS = 4
READ_S, FLUSH_S, ASK_S = 120.0, 120.0, 30.0
BLOCK = 10_000


class Output(NamedTuple):
    """A record that a contender has written, and when the broker took it."""

    key: bytes | None
    value: bytes | None
    time_s: float


def create(broker: Broker, topic: str) -> None:
    """Make a topic whose records have the time at which the broker takes them."""
    create_topic(broker.cluster, topic, PARTITIONS, 1, {"message.timestamp.type": "LogAppendTime"})


def remove(broker: Broker, run: str) -> None:
    """Remove the topics of a run, also those that the contender has made."""
    if names := [name for name in broker.cluster.metadata().topics if run in name]:
        broker.delete(*names)


def producer(broker: Broker, **settings: str | int) -> Producer:
    """Return a client that chooses partitions as Kafka's own does."""
    common = {"bootstrap.servers": broker.address, "partitioner": "murmur2_random", "acks": "1", "log_level": 0}
    return Producer({**common, **settings})


def put(client: Producer, topic: str, records: Iterable[Record]) -> None:
    """Write records; those without a key go to each partition in turn."""
    for number, (key, value) in enumerate(records):
        place = {"key": key} if key else {"partition": number % PARTITIONS}
        while True:
            try:
                client.produce(topic, value, **place)
                break
            except BufferError:
                client.poll(0.05)
        client.poll(0)
    assert client.flush(FLUSH_S) == 0, f"the broker did not take all records of {topic}"


def filled(broker: Broker, kind: str, number: int) -> str:
    """Return a topic that has the first records of a kind; it is filled once."""
    topic = f"in-{kind}-{number}"
    if topic not in broker.cluster.metadata().topics:
        create(broker, topic)
        put(producer(broker, **{"linger.ms": 20}), topic, RECORDS[kind](number))
    return topic


def warm(broker: Broker, seconds: float) -> None:
    """Use a broker that has just started, which is slow at first: transactions, and a reader."""
    create(broker, "warm")
    client = producer(broker, **{"transactional.id": "warm", "acks": "all"})
    client.init_transactions(ASK_S)
    reader, deadline = Reader(broker, "warm"), time.monotonic() + seconds
    while time.monotonic() < deadline:
        client.begin_transaction()
        put(client, "warm", RECORDS[WORDS](1000))
        client.commit_transaction(ASK_S)
        reader.read()
    reader.close()
    broker.delete("warm")


class Reader:
    """Reads the committed records of a topic, in the order of each partition.

    Attributes:
        found: What was read so far, partition by partition within each reading.
    """

    def __init__(self, broker: Broker, topic: str) -> None:
        self.found: list[Output] = []
        self._client = Consumer(
            {
                "bootstrap.servers": broker.address,
                "group.id": "reader",
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self._next = [TopicPartition(topic, number, 0) for number in range(PARTITIONS)]

    def end(self) -> int:
        """Return how many offsets are committed; those of transactions' markers count."""
        deadline = time.monotonic() + ASK_S
        while True:
            try:
                ends = [self._client.get_watermark_offsets(each, timeout=ASK_S) for each in self._next]
                return sum(int(each[1]) for each in ends)
            except KafkaException:  # a new topic has no leaders for a moment
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def read(self) -> int:
        """Read on to the end of the topic; returns how many records were read in all."""
        self._client.assign(self._next)
        open_ends, deadline = {*range(PARTITIONS)}, time.monotonic() + READ_S
        while open_ends and time.monotonic() < deadline:
            for message in self._client.consume(BLOCK, 0.5):
                self._take(message, open_ends)
        self._client.unassign()
        return len(self.found)

    def follow(self) -> None:
        """Begin to read without an end; `take` returns what comes."""
        self._client.assign(self._next)

    def take(self, wait_s: float) -> list[Output]:
        """Return what has come since the last call, or comes soon."""
        before = len(self.found)
        if (first := self._client.poll(wait_s)) is not None:
            for message in (first, *self._client.consume(BLOCK, 0)):
                self._take(message, set())
        return self.found[before:]

    def _take(self, message: Message, open_ends: set[int]) -> None:
        error, partition, offset = message.error(), message.partition(), message.offset()
        assert partition is not None and offset is not None
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            open_ends.discard(partition)
            return
        self._next[partition].offset = offset + 1
        self.found.append(Output(message.key(), message.value(), message.timestamp()[1] / 1000))

    def close(self) -> None:
        """End the client."""
        self._client.close()
