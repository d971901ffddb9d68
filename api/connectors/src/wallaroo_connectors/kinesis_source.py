"""Each new record of a shard of an AWS Kinesis stream becomes a message.

    kinesis_source --application-module app --connector feed --feed-stream STREAM --feed-shard SHARD

boto3 finds credentials, region and endpoint as usual. The program ends when the shard is closed.
Needs `wallaroo-connectors[aws]`.

Source: Wallaroo 0.5.3.
"""

from threading import Event

from wallaroo.experimental.script import SourceConnector
from wallaroo_connectors.program import LOOK_S, connect, library, run_source, say


def serve(connector: SourceConnector, stop: Event) -> None:
    """Send the records of the shard."""
    params, kinesis = connector.params, library("boto3", "aws").client("kinesis")
    begin = kinesis.get_shard_iterator(StreamName=params.stream, ShardId=params.shard, ShardIteratorType="LATEST")
    iterator = begin["ShardIterator"]
    connect(connector, stop)
    say(f"reading {params.stream}, {params.shard}")
    while iterator and not stop.is_set():
        answer = kinesis.get_records(ShardIterator=iterator)
        for record in answer["Records"]:
            connector.write(record["Data"])
        iterator = answer.get("NextShardIterator")
        stop.wait(LOOK_S)  # Kinesis allows five reads of a shard per second


def main() -> int:
    """Run this source connector, with the arguments of the command line."""
    return run_source(serve, ["stream", "shard"])
