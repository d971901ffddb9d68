"""Records of topics: reads them as they arrive, and writes them."""

import base64
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any

from wallaroo.message.kafka_record import KafkaRecord, too_large
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.kafka.client import ANSWER_S, MOST_RECEIVED, Cluster
from wallaroo_runtime.kafka.offset import check_partitions
from wallaroo_runtime.kafka.topic import batch_settings, record_limits

READ_S, READ_RECORDS = 0.2, 500
# The partitioners of Kafka's own clients and of Goka: programs that join topics must use the same one.
PARTITIONERS = {"murmur2": "murmur2_random", "fnv1a": "fnv1a_random", "random": "random"}


def record_json(record: KafkaRecord) -> dict[str, Any]:
    r"""Return a record as JSON. Bytes that are not UTF-8 are in base64, under a name with `_base64`.

    Example:
        >>> record_json(KafkaRecord(key=b"k", value=b"\xff"))["value_base64"]
        '/w=='
    """
    headers = [{"name": name, **_json("value", value)} for name, value in record.headers]
    position = {"partition": record.partition, "offset": record.offset, "timestamp_ms": record.timestamp_ms}
    return {**position, **_json("key", record.key), **_json("value", record.value), "headers": headers}


def _json(name: str, data: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if data is None else data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data or b"").decode()}


def follow(
    cluster: Cluster,
    topic: str,
    *,
    from_beginning: bool,
    to_end: bool = False,
    partitions: Iterable[int] = (),
    is_stopped: Callable[[], bool] = lambda: False,
    ready: Callable[[], None] = lambda: None,
) -> Iterator[KafkaRecord]:
    """Yield records of a topic. Records of one partition are in order.

    Args:
        from_beginning: Whether to begin with the first records; otherwise with records that arrive from now on.
        to_end: Whether to end at the present end of the topic; otherwise waits for further records.
        partitions: Numbers of the partitions to read; empty for all.
        ready: Is called as soon as every record that arrives from then on will be read.

    Raises:
        RunError: R673 if there is no such topic or partition, R672 if no broker answers, R727 if a broker refuses.
    """
    kafka = cluster.kafka
    known = cluster.partitions(topic)
    chosen = list(partitions) or known
    check_partitions(topic, cluster.name, known, chosen)
    settings = {
        **cluster.settings,
        "group.id": f"wallaroo-topics-{secrets.token_hex(8)}",  # Kafka does not store a group that commits nothing
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "receive.message.max.bytes": MOST_RECEIVED,
        "isolation.level": "read_committed",
    }
    with cluster.translated():
        consumer = kafka.Consumer(settings)
        try:
            places = []
            for number in chosen:
                partition = kafka.TopicPartition(topic, number)
                begin, end = cluster.retried(
                    partial(consumer.get_watermark_offsets, partition, timeout=ANSWER_S), *cluster.passing
                )
                partition.offset = begin if from_beginning else end
                places.append(partition)
            consumer.assign(places)
            ready()
            yield from _read(kafka, consumer, len(chosen) if to_end else 0, is_stopped)
        finally:
            consumer.close()


def _read(kafka: Any, consumer: Any, ends: int, is_stopped: Callable[[], bool]) -> Iterator[KafkaRecord]:
    """Yield records until `ends` partitions are read to their ends; for `ends` 0, until `is_stopped` returns True."""
    ended: set[int] = set()
    while not is_stopped():
        for message in consumer.consume(READ_RECORDS, READ_S):
            error = message.error()
            if error is None:
                yield KafkaRecord(
                    message.topic(),
                    message.key(),
                    message.value(),
                    tuple(message.headers() or ()),
                    message.timestamp()[1],
                    message.partition(),
                    message.offset(),
                )
            elif error.code() == kafka.KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            elif not error.retriable():
                raise kafka.KafkaException(error)
        if ends and len(ended) >= ends:
            return


def emit(
    cluster: Cluster,
    topic: str,
    records: Iterable[KafkaRecord],
    *,
    partitioner: str = "murmur2",
    partition: int | None = None,
) -> dict[int, int]:
    """Write records to a topic, and wait until Kafka has acknowledged all. Return their number by partition.

    Args:
        records: Records, whose partitions and offsets are ignored.
        partitioner: A name of PARTITIONERS; records without a key go to any partition.
        partition: Partition for all records; None chooses it by the key.

    Raises:
        RunError: R673 if there is no such topic or partition, R672 if no broker answers, R727 if a broker refuses. If a
            record is too large, the records before it are written.
    """
    cluster.partitions(topic)
    kafka, failed, counts = cluster.kafka, list[Any](), dict[int, int]()
    limit, large = record_limits(cluster.settings, topic).max_bytes, 0

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(error)
        else:
            counts[message.partition()] = counts.get(message.partition(), 0) + 1

    chosen = {"partitioner": PARTITIONERS[partitioner], "enable.idempotence": True, "linger.ms": 5}
    with cluster.translated():
        producer = kafka.Producer({**cluster.settings, **chosen, **batch_settings(limit)})
        place = {} if partition is None else {"partition": partition}
        for number, record in enumerate(records, 1):
            headers = list(record.headers)
            if size := too_large(limit, record.key, record.value, headers):
                large = number
                break
            _produce(producer, failed, topic, record.value, record.key, headers=headers, on_delivery=delivered, **place)
            producer.poll(0)
            if failed:
                break
        while producer.flush(1.0):
            continue
        if failed:
            raise kafka.KafkaException(failed[0])
    if large:
        written = sum(counts.values())
        reason = f"record {large} is not written to {topic}: it has {size} bytes, the topic takes {limit}; "
        reason += f"records before it: {written} written"
        fix = "split it, or raise max.message.bytes of the topic; go on with this record"
        raise RunError.of("R727", USAGE, what=cluster.what, brokers=cluster.name, reason=reason, fix=fix)
    return counts


def _produce(producer: Any, failed: Collection[Any], *record: Any, **more: Any) -> None:
    """Give a record to the client. Wait while the client's queue is full. Do nothing if a record has failed."""
    while not failed:
        try:
            producer.produce(*record, **more)
            break
        except BufferError:
            producer.poll(READ_S)
