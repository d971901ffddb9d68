"""Reads whole topics again and again: each time what has come since."""

import secrets
import time
from collections.abc import Iterable
from typing import Any

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.client import ANSWER_S, Cluster
from wallaroo_runtime.kafka.record import READ_RECORDS, READ_S, Record
from wallaroo_runtime.kafka.topic import offsets

Place = tuple[str, int]  # topic and partition


class Reader:
    """A client that has read topics up to some moment; it sees what is committed alone.

    Args:
        topics: Which must exist, with all their partitions.

    Raises:
        RunError: R673, R726, R727.
    """

    def __init__(self, cluster: Cluster, topics: Iterable[str]) -> None:
        kafka, self._cluster = cluster.kafka, cluster
        settings = {
            "group.id": f"wallaroo-reader-{secrets.token_hex(8)}",  # never written to Kafka: nothing is committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
        self._admin = cluster.admin()
        self._reached = dict.fromkeys(((name, part) for name in topics for part in cluster.partitions(name)), 0)
        self._records: dict[Place, list[Record]] = {place: [] for place in self._reached}
        with cluster.translated():
            self._consumer = kafka.Consumer({**cluster.settings, **settings})
            self._consumer.assign([kafka.TopicPartition(*place, 0) for place in self._reached])

    def records(self, topic: str) -> list[Record]:
        """Return the records of a topic up to the last `read`, partition by partition."""
        return [record for place in sorted(self._records) if place[0] == topic for record in self._records[place]]

    def read(self) -> None:
        """Read to where the topics end now.

        Raises:
            RunError: R726, that takes too long; R727.
        """
        deadline = time.monotonic() + ANSWER_S
        with self._cluster.translated():
            ends = self._ends() if self._reached else {}
            while any(self._reached[place] < end for place, end in ends.items()):
                for message in self._consumer.consume(READ_RECORDS, READ_S):
                    self._take(message)
                    deadline = time.monotonic() + ANSWER_S
                if time.monotonic() > deadline:
                    raise RunError.of("R726", brokers=self._cluster.name, reason=f"no record for {ANSWER_S:g} s")

    def _ends(self) -> dict[Place, int]:
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec

        # Not by the consumer: the broker answers it when its fetch is over.
        wanted = {TopicPartition(*place): OffsetSpec.latest() for place in self._reached}
        return offsets(self._cluster, self._admin, wanted)

    def _take(self, message: Any) -> None:
        place: Place = message.topic(), message.partition()
        error = message.error()
        if error is None:
            headers = tuple(message.headers() or ())
            record = Record(message.key(), message.value(), headers, place[1], message.offset())
            self._records[place].append(record)
            self._reached[place] = message.offset() + 1
        elif error.code() == self._cluster.kafka.KafkaError._PARTITION_EOF:
            self._reached[place] = max(self._reached[place], message.offset())  # markers of transactions count, too
        elif not error.retriable():
            raise self._cluster.kafka.KafkaException(error)

    def close(self) -> None:
        """End it."""
        self._consumer.close()
