"""Each message of a queue of RabbitMQ, or of another AMQP 0-9-1 broker, becomes a message of the application.

    rabbitmq_source --application-module app --connector feed --feed-amqpurl amqp://guest:guest@broker/%2F
        --feed-queue QUEUE

A queue that does not exist is created, and is durable. A message is acknowledged when it was written to the connection.
Needs `wallaroo-connectors[rabbitmq]`.

Source: Wallaroo 0.5.3.
"""

from threading import Event
from typing import Any

from wallaroo.experimental.script import SourceConnector
from wallaroo_connectors.program import LOOK_S, connect, run_source, say
from wallaroo_connectors.rabbitmq_queue import channel_of

PREFETCH = 1000


def serve(connector: SourceConnector, stop: Event) -> None:
    """Send the messages of the queue."""
    channel = channel_of(connector.params.amqpurl, connector.params.queue)
    connect(connector, stop)

    def take(_: Any, delivery: Any, __: Any, body: bytes) -> None:
        connector.write(body)
        channel.basic_ack(delivery.delivery_tag)

    channel.basic_qos(prefetch_count=PREFETCH)
    channel.basic_consume(connector.params.queue, take)
    say(f"consuming {connector.params.queue}")
    while not stop.is_set():
        channel.connection.process_data_events(time_limit=LOOK_S)
    channel.connection.close()


def main() -> int:
    """Run this source connector, with the arguments of the command line."""
    return run_source(serve, ["amqpurl", "queue"])
