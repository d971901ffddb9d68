"""A real Kafka broker for tests: that of `wallaroo broker`, at a port that the system chooses."""

import secrets
import signal
import time
from collections.abc import Mapping
from pathlib import Path

from support import life
from wallaroo_runtime.kafka.broker import Broker as Node
from wallaroo_runtime.kafka.client import Cluster
from wallaroo_runtime.kafka.topic import create_topic


def free_port() -> int:
    """Return a port that nothing uses. The system gives it to no connection, e.g. to one that looks for a broker."""
    return life.free_port(secrets.randbits(64))


# By default Kafka looks every ten seconds for transactions that are to be aborted, and gives 128 MB to its cleaner.
QUICK = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "log.cleaner.dedupe.buffer.size": "8000000",
}


class Broker(Node):
    """One Kafka node with its files in a directory; topics are made by `create`."""

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(directory / "kafka", port=free_port(), settings=QUICK | dict(settings or {}))

    @property
    def cluster(self) -> Cluster:
        """A client's view of it."""
        return Cluster([self.address], {})

    def freeze(self) -> None:
        """Let it answer nothing, with its connections open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on after `freeze`."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once; it may be started again."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(60)
        self._process = None

    def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        create_topic(self.cluster, topic, partitions, 1, {})

    def grow(self, *topics: str, partitions: int) -> None:
        """Add partitions to topics, up to a number; returns when the new ones have leaders."""
        from confluent_kafka.admin import NewPartitions

        client = self.cluster.admin()
        for done in client.create_partitions([NewPartitions(topic, partitions) for topic in topics]).values():
            done.result(60)
        deadline = time.monotonic() + 60
        while any(self._leaders(topic) < partitions for topic in topics):
            assert time.monotonic() < deadline, f"partitions of {topics} have no leader"
            time.sleep(0.05)

    def _leaders(self, topic: str) -> int:
        """Return how many partitions of a topic have a leader."""
        return sum(each.leader >= 0 for each in self.cluster.metadata().topics[topic].partitions.values())

    def alter(self, topic: str, name: str, value: str) -> None:
        """Change a setting of a topic."""
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        client = self.cluster.admin()
        for done in client.incremental_alter_configs([resource]).values():
            done.result(60)

    def truncate(self, topic: str, first: dict[int, int]) -> None:
        """Remove the records of partitions that precede an offset, as retention does."""
        from confluent_kafka import TopicPartition

        places = [TopicPartition(topic, number, offset) for number, offset in first.items()]
        client = self.cluster.admin()
        for done in client.delete_records(places).values():
            done.result(60)

    def delete(self, *topics: str) -> None:
        """Remove topics; returns when they are gone."""
        if not topics:
            return
        cluster = self.cluster
        client = cluster.admin()  # the answer comes as long as there is the client
        for done in client.delete_topics([*topics]).values():
            done.result(60)
        deadline = time.monotonic() + 60
        while set(topics) & set(cluster.metadata().topics):
            assert time.monotonic() < deadline, f"{topics} are still there"
            time.sleep(0.05)
