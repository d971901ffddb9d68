"""PySpark's own way to count each key: `transformWithState` with one row per message."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle


class Counter(StatefulProcessor):
    """Keeps one number per key in a ValueState."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Take hold of the state."""
        self.count = handle.getValueState("count", "value LONG")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Count the rows of a key."""
        found = self.count.get()
        value = found[0] if found else 0
        for _ in rows:
            value += 1
            yield Row(line=f"{key[0]} {value}")
        self.count.update((value,))

    def close(self) -> None:
        """Have nothing to give back."""


def run(session: SparkSession, directory: Path, deadline_s: float) -> list[tuple[int, float]]:
    """Count the lines of the text files in `input`, one file per micro-batch; returns rows and seconds of each."""
    lines = session.readStream.schema("value STRING").option("maxFilesPerTrigger", 1).text(str(directory / "input"))
    query = (
        lines.groupBy("value")
        .transformWithState(Counter(), "line STRING", "Append", "None")
        .writeStream.format("noop")  # the fastest sink that Spark has
        .option("checkpointLocation", str(directory / "checkpoint"))
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )
    began = time.monotonic()
    if not query.awaitTermination(int(deadline_s)):
        query.stop()
    reports = [report for report in query.recentProgress if report["numInputRows"]]
    if not reports:
        message = f"no micro-batch was done within {time.monotonic() - began:.0f} s"
        raise TimeoutError(message)
    return [(report["numInputRows"], report["durationMs"]["triggerExecution"] / 1000) for report in reports]
