"""Each message becomes a record of a Kafka topic.

    kafka_sink --application-module app --connector out --out-topic TOPIC [--out-bootstrap_brokers HOST:PORT,...]

The decoder must return a pair: the key, None or bytes or text, and the value, bytes or text. The default broker is at
127.0.0.1:9092. `KafkaSinkConfig` writes to Kafka without a separate program. Needs `wallaroo-connectors[kafka]`.

Source: Wallaroo 0.5.3.
"""

from threading import Event
from typing import Any

from wallaroo.experimental.script import SinkConnector
from wallaroo_connectors.program import library, octets, pair, run_sink, say, values

FLUSH_S = 30.0
MOST_WAITING = 10_000


def serve(connector: SinkConnector, stop: Event) -> None:
    """Write the application's messages to the topic."""
    kafka, params = library("confluent_kafka", "kafka"), connector.params
    producer = kafka.Producer(
        {
            "bootstrap.servers": params.bootstrap_brokers or "127.0.0.1:9092",
            "enable.idempotence": True,
            "queue.buffering.max.messages": MOST_WAITING,
        }
    )
    failed: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error)

    def look(timeout_s: float = 0) -> None:
        producer.poll(timeout_s)
        if failed:
            raise kafka.KafkaException(failed[0])

    connector.listen()
    say(f"producing to {params.topic}")
    for value in values(connector, stop, idle=look):
        key, data = pair(value)
        record = octets(data), None if key is None else octets(key)
        while True:
            try:
                producer.produce(params.topic, *record, on_delivery=delivered)
                break
            except BufferError:  # too many records, or too many bytes, wait for the broker
                look(1.0)
        look()
    left = producer.flush(FLUSH_S)
    look()
    if left:
        msg = f"{left} records were not taken by the broker within {FLUSH_S:g} s"
        raise TimeoutError(msg)


def main() -> int:
    """Run this sink connector, with the arguments of the command line."""
    return run_sink(serve, ["topic"], ["bootstrap_brokers"])
