"""Each message becomes a record of an AWS Kinesis stream.

    kinesis_sink --application-module app --connector out --out-stream STREAM

The decoder must return a pair: the partition key, a text, and the data, bytes or text. boto3 finds credentials, region
and endpoint as usual. Needs `wallaroo-connectors[aws]`.

Source: Wallaroo 0.5.3.
"""

from threading import Event

from wallaroo.experimental.script import SinkConnector
from wallaroo_connectors.program import library, octets, pair, run_sink, say, values


def serve(connector: SinkConnector, stop: Event) -> None:
    """Put the application's messages into the stream."""
    kinesis = library("boto3", "aws").client("kinesis")
    connector.listen()
    say(f"putting into {connector.params.stream}")
    for value in values(connector, stop):
        key, data = pair(value)
        kinesis.put_record(StreamName=connector.params.stream, PartitionKey=str(key), Data=octets(data))


def main() -> int:
    """Run this sink connector, with the arguments of the command line."""
    return run_sink(serve, ["stream"])
