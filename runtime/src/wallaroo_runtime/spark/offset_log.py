"""Reads the offset log in Spark's checkpoint: the offsets at which each planned micro-batch ends."""

import errno
import json
import os
from collections.abc import Iterable
from contextlib import suppress

from pyspark.sql import SparkSession

from wallaroo_runtime.spark.machine.hadoop import directory_at
from wallaroo_runtime.storage.progress import Progress, Topics, progress_at, progress_in


class OffsetLog:
    """Reads the offset log of a running query: before a micro-batch runs, Spark writes the offsets at which it ends.

    The publisher copies these offsets to the outbox.

    Args:
        session: Session for access to a checkpoint at a URL.
        checkpoint: Spark's own checkpoint.
    """

    def __init__(self, session: SparkSession, checkpoint: str) -> None:
        self._files = directory_at(session, checkpoint)
        self._query = ""
        self._ends: dict[int, int] = {}  # number of messages in journals up to the end of the latest micro-batch
        self._topics: tuple[int, Topics] = -1, {}  # number and offsets of the latest micro-batch
        self._first: Topics = {}

    def _read(self, name: str) -> str:
        content = self._files.read(name)
        if content is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), f"{self._files}/{name}")
        return content.decode("utf-8")

    @property
    def query(self) -> str:
        """The id of the query, which Spark's checkpoint keeps over all runs."""
        self._query = self._query or str(json.loads(self._read("metadata"))["id"])
        return self._query

    def offsets(self, batch: int) -> str:
        """Return Spark's record of a planned micro-batch: for each source, the offset at which the micro-batch ends."""
        return self._read(f"offsets/{batch}")

    def messages(self, batch: int) -> int:
        """Return the number of messages that a micro-batch takes from journals."""
        before = self._ends.get(batch - 1)
        if before is None:
            before = journal_messages(self.offsets(batch - 1)) if batch else 0
        end = journal_messages(self.offsets(batch))
        self._ends = {batch: end}
        return end - before

    def topics(self, batch: int) -> Topics:
        """Return the offsets of Kafka topics at which a planned micro-batch ends."""
        if self._topics[0] != batch:
            self._topics = batch, progress_at(self.offsets(batch).encode()).topics
        return self._topics[1]

    def first_topics(self, sources: Iterable[int]) -> Topics:
        """Return the offsets at which the query began to read Kafka topics, if Spark has recorded them.

        Args:
            sources: Numbers of the sources of Kafka in the query.
        """
        if self._first:  # cached, since callers ask repeatedly until Spark reports a micro-batch
            return self._first
        topics: dict[str, dict[int, int]] = {}
        for number in sources:
            with suppress(OSError, ValueError, AttributeError):
                for topic, begins in json.loads(self._read(f"sources/{number}/0").partition("\n")[2]).items():
                    topics[topic] = {int(partition): int(offset) for partition, offset in begins.items()}
        self._first = topics
        return topics


def past_progress(session: SparkSession, checkpoint: str) -> Progress:
    """Return the progress that earlier runs have recorded in Spark's checkpoint; all zero if the checkpoint is new."""
    return progress_in(directory_at(session, checkpoint))


def journal_begin(journal_id: int) -> str:
    """Return the beginning of a journal as a line of Spark's offset log.

    The id of the journal is a text in it, since JSON readers round large numbers.
    """
    return json.dumps({"journal": f"{journal_id:016x}", "offset": 0, "sequence": 0})


def journal_messages(plan: str) -> int:
    r"""Return the number of messages in all journals up to the end of a micro-batch.

    Args:
        plan: Spark's record of the micro-batch, see `OffsetLog.offsets`.

    Example:
        >>> journal_messages('v1\n{}\n{"journal":"0f","offset":90,"sequence":3}\n-')
        3
    """
    _version, _metadata, *lines = plan.splitlines()
    ends = [json.loads(line) for line in lines if line != "-"]
    return sum(int(end["sequence"]) for end in ends if isinstance(end, dict) and "journal" in end)
