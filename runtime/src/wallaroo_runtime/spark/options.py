"""Options with which a plan runs as a query of Spark."""

from dataclasses import dataclass, field
from pathlib import Path

from wallaroo_runtime.archive.archive import Archive
from wallaroo_runtime.spark.publish import TellBatch, TellLive, TellVisits
from wallaroo_runtime.storage.outbox.limit import MAX_OUTBOX_BYTES
from wallaroo_runtime.storage.place import JournalPlace, OutputPlace
from wallaroo_runtime.storage.record_count import RecordCount
from wallaroo_runtime.worker.spec import CACHE_BYTES

BATCH_BYTES = 32 * 1024 * 1024
CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """The options with which a plan runs as a query of Spark: places, limits and functions to call.

    Attributes:
        checkpoint: Spark's own checkpoint: a directory, or a URL of any file system that Hadoop knows.
        logs: Directory on this machine for the output of workers.
        journals: The journals, which exist already.
        output: The place of the outbox.
        on_error: Effect of an error in user code: `dead_letter` makes the message a dead letter, `fail` stops the query
            (R611). Overrides the application's policy, but not policies of single parts. Empty overrides nothing.
        max_batch_bytes: The largest number of bytes of the journal in one micro-batch.
        chunk_bytes: Number of bytes of the journal for one call of a worker.
        cache_bytes: The largest size of each worker's state cache.
        max_outbox_bytes: No micro-batch begins while more bytes of output than this wait for sinks.
        archive: Archive with the workers; None if every executor has the workers installed.
        python: Interpreter of Python workers; empty for the one that runs Spark's tasks.
        tell_batch: Called with the report of each micro-batch, if given.
        tell_live: Called with the reports of a query in real-time mode, if given.
        tell_visits: Called with the counts of visits (calls of user code for every key of a state). In micro-batches:
            before the micro-batch is committed, with 0 as second argument. In real-time mode: when all output of the
            visits is in the outbox, with the offset in the journal before which visits are done. Then it raises `Away`
            after a short time without an answer.
        records: Counts messages of Spark's sources and sinks.
        available_now: Whether the query ends when it has processed all messages that its sources have at the start.
        passes_lost: Whether sources of Kafka continue if a topic has lost records.
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
    tell_visits: TellVisits = lambda counts, done: None
    records: RecordCount = field(default_factory=RecordCount)
    passes_lost: bool = False
    available_now: bool = False
