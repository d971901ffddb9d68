"""How a plan is run as a query."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wallaroo_runtime.archive.archive import Archive
from wallaroo_runtime.spark.backpressure import MAX_OUTBOX_BYTES
from wallaroo_runtime.spark.publish import TellBatch, TellLive
from wallaroo_runtime.storage.place import JournalPlace, OutputPlace
from wallaroo_runtime.storage.record_count import RecordCount
from wallaroo_runtime.worker.spec import CACHE_BYTES

BATCH_BYTES = 32 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """How a plan is run.

    Attributes:
        checkpoint: Spark's own checkpoint; a directory, or a path of any file system that Hadoop knows.
        logs: Directory of this machine for what workers print.
        journals: Where the journals are; they exist.
        on_error: Goes before what the application says, not before what its parts say. `dead_letter`: user code that
            fails costs the message; `fail`: it stops the query (R611); empty: the topology says.
        max_batch_bytes: At most so much of the journal in one micro-batch.
        chunk_bytes: How much of it one call of a worker gets.
        cache_bytes: Bound of each worker's state cache.
        max_outbox_bytes: No micro-batch begins while more output than that waits for sinks.
        archive: Where the workers come from; None: they are on every executor.
        python: Interpreter of Python workers; empty: the one that runs Spark's tasks.
        tell_batch: Takes what each micro-batch came to; None: nobody does.
        tell_live: Takes what a query in real-time mode has done; None: nobody does.
        records: Counts messages of sources and sinks of Spark.
        available_now: Whether the query ends when it has processed what its sources have at its start.
        passes_lost: Whether sources of Kafka go on where a topic has lost records.
    """

    checkpoint: str
    logs: Path
    journals: tuple[JournalPlace, ...]
    output: OutputPlace
    on_error: str = ""
    max_batch_bytes: int = BATCH_BYTES
    chunk_bytes: int = CHUNK_BYTES
    cache_bytes: int = CACHE_BYTES
    max_outbox_bytes: int = MAX_OUTBOX_BYTES
    archive: Archive | None = None
    python: str = ""
    tell_batch: TellBatch | None = None
    tell_live: TellLive | None = None
    records: RecordCount = field(default_factory=RecordCount)
    passes_lost: bool = False
    available_now: bool = False

    @classmethod
    def on(cls, directory: Path, **options: Any) -> "QueryOptions":
        """Return the options of a query that has everything in one checkpoint directory.

        Args:
            directory: It; `journal` in it exists.
        """
        journals = (JournalPlace(str(directory / "journal")),)
        return cls(str(directory / "spark"), directory / "logs", journals, OutputPlace.on(directory), **options)
