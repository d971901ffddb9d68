"""The value of each record of some Kafka topics becomes a message. A consumer group shares the partitions.

    kafka_source --application-module app --connector feed --feed-topics A,B
        [--feed-bootstrap_brokers HOST:PORT,...] [--feed-consumer_group GROUP] [--feed-auto_offset_reset earliest]

By default the broker is at 127.0.0.1:9092, the group is `wallaroo`, and a new group begins with new records. A record's
offset is committed once the record was written to the connection. The alternative `KafkaSourceConfig` reads Kafka
without a separate program, and processes each record exactly once. Needs `wallaroo-connectors[kafka]`.

Source: Wallaroo 0.5.3.
"""

from threading import Event

from wallaroo.experimental.script import SourceConnector
from wallaroo_connectors.program import LOOK_S, connect, library, run_source, say


def serve(connector: SourceConnector, stop: Event) -> None:
    """Send the values of the records of the topics. Skip records without a value."""
    kafka, params = library("confluent_kafka", "kafka"), connector.params
    consumer = kafka.Consumer(
        {
            "bootstrap.servers": params.bootstrap_brokers or "127.0.0.1:9092",
            "group.id": params.consumer_group or "wallaroo",
            "auto.offset.reset": params.auto_offset_reset or "latest",
            "enable.auto.offset.store": False,
            "receive.message.max.bytes": (1 << 31) - 1,  # librdkafka's limit makes a record of 100 MB an outage
        }
    )
    # The first error follows a long wait for an application that takes no messages.
    passing = [getattr(kafka.KafkaError, name) for name in ("_MAX_POLL_EXCEEDED", "_TRANSPORT", "_ALL_BROKERS_DOWN")]
    connect(connector, stop)
    consumer.subscribe([topic.strip() for topic in params.topics.split(",")])
    say(f"consuming {params.topics}")
    try:
        while not stop.is_set():
            record = consumer.poll(LOOK_S)
            if record is None:
                continue
            if (error := record.error()) is not None and error.code() not in passing:
                raise kafka.KafkaException(error)
            if error is not None:
                say(f"reading goes on after an error: {error.str()}")
                continue
            if record.value() is not None:
                connector.write(record.value())
            consumer.store_offsets(record)
    finally:
        consumer.close()


def main() -> int:
    """Run this source connector, with the arguments of the command line."""
    return run_source(serve, ["topics"], ["bootstrap_brokers", "consumer_group", "auto_offset_reset"])
