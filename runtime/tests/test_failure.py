"""What becomes of Spark's reports of failed queries."""

from tempfile import gettempdir

import pytest

from wallaroo_runtime.spark.failure import translated

JAVA = """org.apache.spark.SparkException: [STREAM_FAILED] Query [id = 5] terminated with exception: {text}
	at org.apache.spark.sql.execution.streaming.StreamExecution.run(StreamExecution.scala:1)
Caused by: java.io.IOException: {text}
	at java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""


@pytest.mark.parametrize(
    "text", ["No space left on device", "/c/spark/offsets/.7.tmp (No space left on device)", "Disk quota exceeded"]
)
def test_a_full_disk_of_sparks_is_told_with_its_remedy(text: str) -> None:
    (finding,) = translated(JAVA.format(text=text), "/c/spark").diagnostics
    assert finding.code == "R630"
    assert finding.message.startswith("no room on a disk that Spark writes to; ")
    assert finding.message.endswith(text)
    assert finding.fix == (
        f"its checkpoint is /c/spark, its temporary files are in {gettempdir()}: free some space and run again; "
        "it continues from the checkpoint and nothing is lost"
    )


def test_other_failures_say_what_spark_says() -> None:
    (finding,) = translated("java.lang.IllegalStateException: no such thing\n\tat x.y.Z").diagnostics
    assert (finding.code, finding.message) == (
        "R611",
        "the query stopped; java.lang.IllegalStateException: no such thing",
    )
