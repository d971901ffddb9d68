"""What becomes of Spark's reports of failed queries."""

from pathlib import Path
from tempfile import gettempdir

import pytest

from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import translated

JAVA = """org.apache.spark.SparkException: [STREAM_FAILED] Query [id = 5] terminated with exception: {text}
	at org.apache.spark.sql.execution.streaming.StreamExecution.run(StreamExecution.scala:1)
Caused by: java.io.IOException: {text}
	at java.base/java.io.FileOutputStream.writeBytes(Native Method)
"""


@pytest.mark.parametrize(
    "text", ["No space left on device", "/c/spark/offsets/.7.tmp (No space left on device)", "Disk quota exceeded"]
)
def test_a_full_disk_of_sparks_is_told_with_its_remedy(text: str) -> None:
    (finding,) = translated(causes_of(JAVA.format(text=text)), "/c/spark").diagnostics
    assert finding.code == "R626"
    assert finding.message.startswith("the disk of Spark takes nothing more; ")
    assert finding.message.endswith(text)
    assert finding.fix == (
        f"free some space (the checkpoint is /c/spark, temporary files are in {gettempdir()}), and repeat it; a"
        " run continues from its checkpoint, and nothing that was acknowledged is lost"
    )


@pytest.mark.parametrize(
    "text",
    [
        # Cut or changed: Hadoop's checksum, next to each file of a local disk, does not fit.
        "org.apache.hadoop.fs.ChecksumException: Checksum error: file:/c/spark/state/0/0/2.changelog at 0",
        "org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.CANNOT_READ_STREAMING_STATE_FILE] An error occurred "
        "during loading state. Error reading streaming state file of file:/c/spark/state/0/0/2.changelog is gone",
    ],
)
def test_a_state_file_that_cannot_be_read_is_named(text: str, tmp_path: Path) -> None:
    (finding,) = translated(causes_of(JAVA.format(text=text)), "/c/spark", tmp_path / "spark.log").diagnostics
    assert finding.code == "R698"
    assert finding.message.startswith("checkpoint /c/spark is damaged; Spark cannot read it: ")
    assert "/c/spark/state/0/0/2.changelog" in finding.message
    assert finding.fix.startswith("restore all of the checkpoint from one backup")
    (other,) = translated(causes_of(JAVA.format(text=text)), "/d/spark").diagnostics
    assert other.code == "R611", "a file of somebody else's"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("org.apache.kafka.common.errors", "Timeout of 3000ms expired before the position could be found"),
        ("java.util.concurrent", "Cannot fetch record for offset 7 in 120000 milliseconds"),
    ],
)
def test_kafka_without_an_answer_is_named(kind: str, text: str) -> None:
    report = JAVA.format(text=f"Lost task 1.3 in stage 5.0 (TID 17) (host): {kind}.TimeoutException: {text}")
    (finding,) = translated(
        causes_of(f"py4j.protocol.Py4JJavaError: An error occurred\n{report}"), "/c/spark"
    ).diagnostics
    assert (finding.code, finding.message) == ("R611", f"the query stopped; Kafka gave no answer: {text}")
    assert finding.fix == "start the brokers; run again to continue from the checkpoint"


def test_a_record_with_an_impossible_time_is_named() -> None:
    """Its producer took nanoseconds for milliseconds. Spark cannot read it, and no encoder can mend that."""
    text = "Record at topic t partition 1 offset 12 has timestamp value 1 that overflows"
    report = f"org.apache.spark.sql.kafka010.KafkaIllegalStateException: [KAFKA_MALFORMED_RECORD_TIMESTAMP] {text}"
    (finding,) = translated(causes_of(JAVA.format(text=report)), "/c/spark").diagnostics
    assert finding.code == "R611" and finding.message.startswith("the query stopped; Spark cannot read the time of ")
    assert finding.message.endswith(text)
    assert finding.fix.startswith("continue in real-time mode, which reads it: `wallaroo state rescale CHECKPOINT ")


def test_other_failures_say_what_spark_says() -> None:
    (finding,) = translated(causes_of("java.lang.IllegalStateException: no such thing\n\tat x.y.Z")).diagnostics
    assert (finding.code, finding.message) == (
        "R611",
        "the query stopped; java.lang.IllegalStateException: no such thing",
    )
