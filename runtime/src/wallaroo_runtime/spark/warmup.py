"""A short run of the same operators on nothing, before the first message.

Spark's first micro-batch takes seconds: classes are loaded, code is generated and compiled, Python processes start, the
state store's library is loaded. That is better done before the application says that it is initialized.
"""

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import translated
from wallaroo_runtime.spark.machine.hadoop import spark_path
from wallaroo_runtime.spark.machine.temporary import temporary_directory
from wallaroo_runtime.spark.micro_batches import MicroBatches
from wallaroo_runtime.spark.task.level import Level
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.storage.place import JournalPlace, OutputPlace

ROUNDS = 2

_rehearsed: set[str] = set()  # Spark applications of this process


def rehearse(
    session: SparkSession, levels: Sequence[Level], lower: Callable[[SparkSession, Sequence[Level]], DataFrame]
) -> None:
    """Run the operators of some levels in a directory of their own, without workers; once in a Spark application.

    Raises:
        RunError: They do not run.
    """
    application = session.sparkContext.applicationId
    if application in _rehearsed:
        return
    _rehearsed.add(application)
    directory = Path(tempfile.mkdtemp(prefix="rehearsal-", dir=temporary_directory()))
    writer = JournalWriter(directory / "journal")
    journal = JournalPlace(str(directory / "journal"))
    try:
        own = [
            replace(level, journals=(journal,), output=OutputPlace(str(directory)), counts=None, is_rehearsal=True)
            for level in levels
        ]
        batches = MicroBatches(session)
        query = batches.start(
            lower(session, own)
            .writeStream.option("checkpointLocation", spark_path(directory / "spark"))
            .outputMode("append")
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
