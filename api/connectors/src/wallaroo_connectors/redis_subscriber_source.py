"""Each message on a channel of Redis becomes a message of the application.

    redis_subscriber_source --application-module app --connector feed --feed-topic CHANNEL
        [--feed-host HOST] [--feed-port PORT] [--feed-password WORD]

Redis does not keep messages while the program does not run. Needs `wallaroo-connectors[redis]`.

Source: Wallaroo 0.5.3.
"""

from threading import Event

from wallaroo.experimental.script import SourceConnector
from wallaroo_connectors.program import LOOK_S, connect, run_source, say
from wallaroo_connectors.redis_client import OPTIONS, client


def serve(connector: SourceConnector, stop: Event) -> None:
    """Send each message that is published on the channel of Redis to the application."""
    with client(connector.params).pubsub() as subscription:
        connect(connector, stop)
        subscription.subscribe(connector.params.topic)
        while not stop.is_set():
            event = subscription.get_message(timeout=LOOK_S)
            if event is not None and event["type"] == "subscribe":
                say(f"subscribed to {connector.params.topic}")
            elif event is not None and event["type"] == "message":
                connector.write(event["data"])


def main() -> int:
    """Run this source connector, with the arguments of the command line."""
    return run_source(serve, ["topic"], OPTIONS)
