"""Notices that the executor of a local Spark has ended although its Java virtual machine still runs."""

import os
import re
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from wallaroo_runtime.spark.machine.settings import is_local

_NO_MEMORY = re.compile(r"java\.lang\.OutOfMemoryError: [^\n]+")
_LOOK_BYTES = 256 * 1024  # the last bytes of the log, which are searched
HEARTBEATS = "executor-heartbeater"  # name of a thread of Java that lives exactly as long as its executor


class ExecutorWatch:
    """Watches the executor in this driver's Java virtual machine.

    A local Spark gives tasks even to an executor that has ended, and waits for them forever. On a cluster Spark
    replaces executors that have ended, so they are not watched.

    Args:
        session: A running session.
    """

    def __init__(self, session: SparkSession) -> None:
        self._heartbeats: Any = None
        self._is_watched = is_local(session.sparkContext.master)
        if self._is_watched:
            jvm: Any = session.sparkContext._jvm
            threads = jvm.java.lang.Thread.getAllStackTraces().keySet()
            self._heartbeats = next((thread for thread in threads if thread.getName() == HEARTBEATS), None)

    def is_gone(self) -> bool:
        """Say whether the executor has ended. Raises the errors of Py4J if Java does not answer."""
        return self._is_watched and (self._heartbeats is None or not self._heartbeats.isAlive())


def last_memory_error(log: Path) -> str:
    """Return the line of the last OutOfMemoryError in Spark's log; empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOOK_BYTES))
            lines = _NO_MEMORY.findall(file.read().decode(errors="replace"))
    except OSError:
        return ""
    return lines[-1] if lines else ""
