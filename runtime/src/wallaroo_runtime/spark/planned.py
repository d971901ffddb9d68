"""The micro-batches that Spark's checkpoint has planned and committed, as files of it say."""

import json
from pathlib import Path

from pyspark.sql import SparkSession

from wallaroo_runtime.spark.hadoop import HadoopDirectory


class Planned:
    """What a running query has planned; the outbox keeps it with the output, for Spark's files may be lost.

    Args:
        session: Reaches the checkpoint when it is at a URL.
        checkpoint: Spark's own.
    """

    def __init__(self, session: SparkSession, checkpoint: str) -> None:
        self._path = Path(checkpoint)
        self._remote = HadoopDirectory(session, checkpoint) if "://" in checkpoint else None
        self._query = ""

    def _read(self, name: str) -> str:
        if self._remote is None:
            return (self._path / name).read_text(encoding="utf-8")
        return (self._remote.read(name) or b"").decode("utf-8")

    @property
    def query(self) -> str:
        """Id of the query."""
        self._query = self._query or str(json.loads(self._read("metadata"))["id"])
        return self._query

    def offsets(self, batch: int) -> str:
        """Return what is planned for a micro-batch; Spark has written it when the micro-batch runs."""
        return self._read(f"offsets/{batch}")
