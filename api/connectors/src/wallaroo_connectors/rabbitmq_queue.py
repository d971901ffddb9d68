"""The connection that the RabbitMQ programs share."""

from typing import Any

from wallaroo_connectors.program import library


def channel_of(url: str, queue: str) -> Any:
    """Connect to a broker of AMQP 0-9-1 and return a channel. A queue that does not exist is created, and is durable.

    Raises:
        WallarooParameterError: R728 if the library is not installed.
    """
    pika = library("pika", "rabbitmq")
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    try:
        channel.queue_declare(queue, passive=True)
    except pika.exceptions.ChannelClosedByBroker:
        channel = connection.channel()
        channel.queue_declare(queue, durable=True)
    return channel
