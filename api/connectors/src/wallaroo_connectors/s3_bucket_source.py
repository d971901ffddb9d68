"""The objects of an S3 bucket become messages, in the order of their names: the present objects, then new ones.

    s3_bucket_source --application-module app --connector feed --feed-bucket BUCKET
        [--feed-prefix PREFIX] [--feed-start-after NAME]

A new object is ignored if its name comes before a name that was read already, so name objects by time or number. boto3
finds credentials, region and endpoint as usual. Needs `wallaroo-connectors[aws]`.
"""

from threading import Event

from wallaroo.experimental.script import SourceConnector
from wallaroo_connectors.program import connect, library, run_source, say

POLL_S = 1.0


def serve(connector: SourceConnector, stop: Event) -> None:
    """Send the objects of the bucket."""
    params, s3 = connector.params, library("boto3", "aws").client("s3")
    s3.head_bucket(Bucket=params.bucket)
    connect(connector, stop)
    say(f"reading {params.bucket}")
    last = params.start_after or ""
    while not stop.is_set():
        listing = s3.list_objects_v2(Bucket=params.bucket, Prefix=params.prefix or "", StartAfter=last)
        for entry in listing.get("Contents", ()):
            if stop.is_set():
                return
            last = entry["Key"]
            connector.write(s3.get_object(Bucket=params.bucket, Key=last)["Body"].read())
        if not listing["IsTruncated"]:
            stop.wait(POLL_S)


def main() -> int:
    """Run this source connector, with the arguments of the command line."""
    return run_source(serve, ["bucket"], ["prefix", "start_after"])
