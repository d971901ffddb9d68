"""A short run of the same operators on nothing, before the first message.

Spark's first micro-batch takes seconds: classes are loaded and compiled, connections to workers are opened, the state
store's library is loaded. That is better done before the application says that it is initialized.
"""

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import translated
from wallaroo_runtime.spark.machine.hadoop import spark_path
from wallaroo_runtime.spark.machine.jar import java_class
from wallaroo_runtime.spark.machine.temporary import temporary_directory
from wallaroo_runtime.spark.micro_batches import MicroBatches
from wallaroo_runtime.storage.journal.writer import JournalWriter

ROUNDS = 2

_rehearsed: set[str] = set()  # Spark applications of this process


def rehearse(session: SparkSession, settings: str) -> None:
    """Run the operators of a query in a directory of their own, on no messages; once in a Spark application.

    Args:
        settings: Of the query.

    Raises:
        RunError: They do not run.
    """
    application = session.sparkContext.applicationId
    if application in _rehearsed:
        return
    _rehearsed.add(application)
    directory = Path(tempfile.mkdtemp(prefix="rehearsal-", dir=temporary_directory()))
    writer = JournalWriter(directory / "journal")
    journals = [{"directory": str(directory / "journal")}]
    own = {**json.loads(settings), "journals": journals, "staging": str(directory), "is_rehearsal": True}
    operators: Any = java_class(session, "microbatch.MicroBatch")
    try:
        batches = MicroBatches(session)
        frame = DataFrame(operators.lower(session._jsparkSession, json.dumps(own), []), session)
        query = batches.start(
            frame.writeStream.option("checkpointLocation", spark_path(directory / "spark")).outputMode("append")
        )
        try:
            for _ in range(ROUNDS):
                writer.append(0, 1, [b"\0"], timestamp_ms=0)
                writer.sync()
                writer.publish()
                query.processAllAvailable()
        finally:
            query.stop()
            batches.end()
    except PySparkException as error:
        raise translated(causes_of(error)) from error
    finally:
        writer.close()
        shutil.rmtree(directory, ignore_errors=True)
