"""Writes records of several topics at once, in transactions."""

import secrets
from collections.abc import Iterable

from wallaroo.kafka_record import MAX_RECORD_BYTES, KafkaRecord
from wallaroo_runtime.kafka.client import ANSWER_S, Cluster
from wallaroo_runtime.kafka.record import MAX_WAITING, PARTITIONERS, READ_S
from wallaroo_runtime.kafka.topic import batch_settings


class Writer:
    """A client whose writes are whole: who reads what is committed sees all records of one, or none.

    Args:
        partitioner: A name of PARTITIONERS.

    Raises:
        RunError: R726, R727.
    """

    def __init__(self, cluster: Cluster, partitioner: str) -> None:
        self._cluster = cluster
        name = f"wallaroo-writer-{secrets.token_hex(8)}"
        chosen = {"partitioner": PARTITIONERS[partitioner], "transactional.id": name, "linger.ms": 5}
        with cluster.translated():
            self._producer = cluster.kafka.Producer({**cluster.settings, **chosen, **batch_settings(MAX_RECORD_BYTES)})
            self._producer.init_transactions(ANSWER_S)

    def write(self, records: Iterable[KafkaRecord]) -> None:
        """Write records; returns when Kafka has them all.

        Raises:
            RunError: R726, R727; none of them is to be seen.
        """
        with self._cluster.translated():
            self._producer.begin_transaction()
            for record in records:
                self._producer.produce(record.topic, record.value, record.key, headers=list(record.headers))
                while len(self._producer) >= MAX_WAITING:
                    self._producer.poll(READ_S)
            self._producer.commit_transaction(ANSWER_S)
