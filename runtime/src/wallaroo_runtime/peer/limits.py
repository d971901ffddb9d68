"""The limits of a run: options of `wallaroo run` that bound disk and memory."""

from dataclasses import dataclass

from wallaroo_runtime.gateway.config import BACKLOG_BYTES
from wallaroo_runtime.worker.spec import CACHE_BYTES


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a run, and the durability of its journal.

    Attributes:
        journal_fsync: When the journal is made safe: `batch` as often as the disk can, `interval` every 50 ms, `never`
            when the system decides, so a loss of power may lose the last messages. A killed process loses nothing.
        journal_bytes: The gateway stops reading its sources when so much is journaled and not processed; senders wait.
        outbox_bytes: The query pauses before a micro-batch while so much output waits for sinks. So the outbox holds at
            most this and the output of one micro-batch.
        state_cache_bytes: State that each worker keeps in memory; other state is read from Spark's store when needed.
    """

    journal_fsync: str = "interval"
    journal_bytes: int = BACKLOG_BYTES
    outbox_bytes: int = 4 << 30
    state_cache_bytes: int = CACHE_BYTES
