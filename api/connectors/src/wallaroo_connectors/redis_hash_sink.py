"""Each message sets a field of a hash of Redis, so that the hash has the latest value of each key.

    redis_hash_sink --application-module app --connector out --out-key HASH
        [--out-host HOST] [--out-port PORT] [--out-password WORD]

The decoder must return a pair of key and value, each bytes, text or a number. Needs `wallaroo-connectors[redis]`.

Source: Wallaroo 0.5.3.
"""

from threading import Event

from wallaroo.experimental.script import SinkConnector
from wallaroo_connectors.program import pair, run_sink, say, values
from wallaroo_connectors.redis_client import OPTIONS, client


def serve(connector: SinkConnector, stop: Event) -> None:
    """Set a field of the hash for each message of the application."""
    with client(connector.params) as redis:
        connector.listen()
        say(f"setting fields of {connector.params.key}")
        for value in values(connector, stop):
            redis.hset(connector.params.key, *pair(value))


def main() -> int:
    """Run this sink connector, with the arguments of the command line."""
    return run_sink(serve, ["key"], OPTIONS)
