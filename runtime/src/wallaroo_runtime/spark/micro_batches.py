"""Runs functions of this process for the micro-batches of a query; Java is asked for them and never calls Python.

PySpark's own `foreachBatch` opens a server at a port of loopback that asks for no secret: through it each user of the
machine can have code run here.
"""

import json
import threading
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from wallaroo_runtime.spark.machine.jar import java_class

ASK_MS = 500  # for which one question to Java waits
Rows = Sequence[str]
Publish = Callable[[Rows, int], None]


def drop(rows: Rows, batch: int) -> None:
    """Take the rows of a micro-batch for nothing."""


def admit(batch: int) -> None:
    """Let a micro-batch run at once."""


class MicroBatches:
    """The micro-batches of a query, in a thread of this process.

    Args:
        publish: Takes the rows of a micro-batch, whose only column is a text in bytes; Spark commits it when this has
            returned. What it raises ends the query.
        begin: Called before a micro-batch runs.
    """

    def __init__(self, session: SparkSession, publish: Publish = drop, begin: Callable[[int], None] = admit) -> None:
        self._publish, self._begin, self._has_ended = publish, begin, False
        self._java: Any = java_class(session, "publish.MicroBatches")()
        self._thread = threading.Thread(target=self._answer_all, name="micro-batches", daemon=True)

    def start(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start a query whose micro-batches come here."""
        self._thread.start()
        try:
            return writer.format(self._java.sink()).option("questions", self._java.open()).start()
        except BaseException:
            self.end()
            raise

    def run_one(self, writer: DataStreamWriter) -> None:
        """Run a query for one micro-batch: the planned one, or else the next one.

        Raises:
            PySparkException: It has failed.
        """
        query = self.start(writer.trigger(once=True))
        try:
            query.awaitTermination()
        finally:
            self.end()

    def end(self) -> None:
        """Wait for the publishing in progress; nothing is published after it. The query is to be stopped before.

        Spark does not wait for this process: what it published later would meet the outbox of the next run.
        """
        self._has_ended = True
        with suppress(Py4JError, ConnectionError):
            self._java.end()
        self._thread.join()

    def _answer_all(self) -> None:
        try:
            while not self._has_ended:
                if text := self._java.next(ASK_MS):
                    question = json.loads(text)
                    self._java.answer(question["number"], self._failure(question["batch"], question["rows"]))
        except (Py4JError, ConnectionError):
            pass  # Java is gone, which ends the run; if it is not, its questions fail from now on
        finally:
            with suppress(Py4JError, ConnectionError):
                self._java.end()

    def _failure(self, batch: int, rows: Rows | None) -> str:
        """Do the work that Java asks for; return why that failed, or an empty text."""
        try:
            if rows is None:
                self._begin(batch)
            else:
                self._publish(rows, batch)
        except BaseException:
            return traceback.format_exc()
        return ""
