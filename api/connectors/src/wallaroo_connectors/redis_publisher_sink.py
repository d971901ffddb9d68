"""Each message is published on a channel of Redis.

    redis_publisher_sink --application-module app --connector out --out-topic CHANNEL
        [--out-host HOST] [--out-port PORT] [--out-password WORD]

The decoder must return bytes or text. Needs `wallaroo-connectors[redis]`.
"""

from threading import Event

from wallaroo.experimental.script import SinkConnector
from wallaroo_connectors.program import octets, run_sink, say, values
from wallaroo_connectors.redis_client import OPTIONS, client


def serve(connector: SinkConnector, stop: Event) -> None:
    """Publish the application's messages."""
    with client(connector.params) as redis:
        connector.listen()
        say(f"publishing on {connector.params.topic}")
        for value in values(connector, stop):
            redis.publish(connector.params.topic, octets(value))


def main() -> int:
    """Run this sink connector, with the arguments of the command line."""
    return run_sink(serve, ["topic"], OPTIONS)
