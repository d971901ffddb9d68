"""Rehearses a query: runs its operators for a short time without input, before the first message.

Spark's first micro-batch takes seconds: Java loads and compiles classes, tasks connect to workers, and the library of
the state store is loaded. The rehearsal does this before the application reports that it is initialized.
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

_rehearsed: set[str] = set()  # ids of the Spark applications that have rehearsed


def rehearse(session: SparkSession, settings: str) -> None:
    """Run the operators of a query without messages, in a temporary directory. Do this once for each Spark application.

    Args:
        settings: The settings of the query's operators, as JSON.

    Raises:
        RunError: The operators fail.
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
