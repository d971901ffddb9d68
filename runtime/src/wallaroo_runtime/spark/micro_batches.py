"""Calls functions of this process before and after each micro-batch. Python asks Java for work; Java calls no Python.

PySpark's own `foreachBatch` opens a server at a port of loopback that asks for no secret: through this port each user
of the machine could run code in this process.
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

ASK_MS = 500  # how long one call of Java waits for work
Rows = Sequence[str]
Publish = Callable[[Rows, int], None]


class MicroBatches:
    """Calls functions of this process for each micro-batch of a query, in a thread, in place of `foreachBatch`.

    Args:
        publish: Gets the rows of a micro-batch, whose only column is a text in bytes. Spark commits the micro-batch
            when `publish` has returned. An exception ends the query.
        begin: Called before a micro-batch runs.
    """

    def __init__(
        self, session: SparkSession, publish: Publish, begin: Callable[[int], None] = lambda batch: None
    ) -> None:
        self._publish, self._begin, self._has_ended = publish, begin, False
        self._java: Any = java_class(session, "sink.MicroBatches")()
        self._thread = threading.Thread(target=self._answer_all, name="micro-batches", daemon=True)

    def start(self, writer: DataStreamWriter) -> StreamingQuery:
        """Start a query whose micro-batches this object handles."""
        self._thread.start()
        try:
            return writer.format(self._java.sinkFormat()).option("questions", self._java.open()).start()
        except BaseException:
            self.end()
            raise

    def run_one(self, writer: DataStreamWriter) -> None:
        """Run one micro-batch of a query: the planned micro-batch if there is one, else the next.

        Raises:
            PySparkException: The query fails.
        """
        query = self.start(writer.trigger(once=True))
        try:
            query.awaitTermination()
        finally:
            self.end()

    def end(self) -> None:
        """Wait until the running micro-batch is published, and publish no other. Call this after the stop of the query.

        Spark does not wait for this process. Without this wait, it could publish after the next run has begun.
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
            pass  # Java has ended, so the run ends; otherwise `end` makes Java's next calls fail
        finally:
            with suppress(Py4JError, ConnectionError):
                self._java.end()

    def _failure(self, batch: int, rows: Rows | None) -> str:
        """Call `begin`, or `publish` if there are rows. Return the traceback if this fails, else an empty text."""
        try:
            if rows is None:
                self._begin(batch)
            else:
                self._publish(rows, batch)
        except BaseException:
            return traceback.format_exc()
        return ""
