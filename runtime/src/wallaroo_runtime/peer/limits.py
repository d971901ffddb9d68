"""The limits of a run: options of `wallaroo run` that bound disk and memory."""

from dataclasses import dataclass

from wallaroo_runtime.gateway.config import BACKLOG_BYTES
from wallaroo_runtime.worker.spec import CACHE_BYTES


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a run, and the price of its durability.

    Attributes:
        journal_fsync: When the journal is made safe. batch: as often as the disk can; interval: every 50 ms; never: the
            system decides, and a loss of power may lose what arrived last. A process that dies loses nothing.
        journal_bytes: The gateway stops reading its sockets when so much is journaled and not processed; senders wait.
        outbox_bytes: The query pauses before a micro-batch while so much output waits for sinks. What the outbox holds
            is at most this and the output of one micro-batch.
        state_cache_bytes: State that each worker keeps in memory; more is read from Spark's store when it is needed.
    """

    journal_fsync: str = "interval"
    journal_bytes: int = BACKLOG_BYTES
    outbox_bytes: int = 4 << 30
    state_cache_bytes: int = CACHE_BYTES
