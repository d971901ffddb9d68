"""Each message goes to a queue of RabbitMQ, or of another broker of AMQP 0-9-1.

    rabbitmq_sink --application-module app --connector out --out-amqpurl amqp://guest:guest@broker/%2F
        --out-queue QUEUE

A queue that does not exist is created, and is durable. Messages survive a restart of the broker. If the broker supports
confirms, it confirms each message. The decoder must return bytes or text. Needs `wallaroo-connectors[rabbitmq]`.
"""

from threading import Event

from wallaroo.experimental.script import SinkConnector
from wallaroo_connectors.program import library, octets, run_sink, say, values
from wallaroo_connectors.rabbitmq_queue import channel_of


def serve(connector: SinkConnector, stop: Event) -> None:
    """Publish the application's messages."""
    queue = connector.params.queue
    channel = channel_of(connector.params.amqpurl, queue)
    properties = library("pika", "rabbitmq").BasicProperties(delivery_mode=2)
    if channel.connection.publisher_confirms_supported:
        channel.confirm_delivery()
    connector.listen()
    say(f"publishing to {queue}")
    for value in values(connector, stop, idle=channel.connection.process_data_events):
        channel.basic_publish("", queue, octets(value), properties, mandatory=True)
    channel.connection.close()


def main() -> int:
    """Run this sink connector, with the arguments of the command line."""
    return run_sink(serve, ["amqpurl", "queue"])
