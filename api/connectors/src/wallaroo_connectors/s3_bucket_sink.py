"""Each message becomes an object of an S3 bucket, which is created if it does not exist.

    s3_bucket_sink --application-module app --connector out --out-bucket BUCKET

The decoder must return a pair: the object's name, a text, and its content, bytes or text. The bucket's settings decide
who can access the objects. boto3 finds credentials, region and endpoint as usual. Needs `wallaroo-connectors[aws]`.

Source: Wallaroo 0.5.3.
"""

from threading import Event
from typing import Any

from wallaroo.experimental.script import SinkConnector
from wallaroo_connectors.program import library, octets, pair, run_sink, say, values

DEFAULT_REGION = "us-east-1"  # S3 refuses this name as the location of a new bucket


def serve(connector: SinkConnector, stop: Event) -> None:
    """Put each message of the application into the bucket as an object."""
    s3, bucket = library("boto3", "aws").client("s3"), connector.params.bucket
    _make(s3, bucket)
    connector.listen()
    say(f"putting into {bucket}")
    for value in values(connector, stop):
        key, content = pair(value)
        s3.put_object(Bucket=bucket, Key=str(key), Body=octets(content))


def _make(s3: Any, bucket: str) -> None:
    try:
        s3.head_bucket(Bucket=bucket)
    except s3.exceptions.ClientError as error:
        if error.response["Error"]["Code"] != "404":
            raise
        region = s3.meta.region_name
        place = {} if region == DEFAULT_REGION else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        s3.create_bucket(Bucket=bucket, **place)


def main() -> int:
    """Run this sink connector, with the arguments of the command line."""
    return run_sink(serve, ["bucket"])
