"""The options of `wallaroo run` that limit disk and memory."""

from dataclasses import dataclass

from wallaroo_runtime.gateway.config import BACKLOG_BYTES
from wallaroo_runtime.storage.outbox.limit import MAX_OUTBOX_BYTES
from wallaroo_runtime.worker.spec import CACHE_BYTES

JOURNAL_FSYNC = "interval"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of a run for disk and memory, and the policy for syncs of the journal.

    Attributes:
        journal_fsync: When the journal is synced: `batch` as often as the disk can, `interval` every 50 ms, `never`
            when the system decides. With `never` a loss of power may lose the last messages. A killed process never
            loses messages. Empty for the default, `interval`, in real-time mode `batch`.
        journal_bytes: Limit for journaled bytes that are not processed. At the limit the gateway stops reading, and
            senders wait.
        max_outbox_bytes: While more bytes than this wait for sinks, the query starts no micro-batch. So the outbox
            holds at most these bytes and the output of one micro-batch.
        state_cache_bytes: Bytes of state that each worker keeps in memory. Other state is read from Spark's store when
            needed.
    """

    journal_fsync: str = ""
    journal_bytes: int = BACKLOG_BYTES
    max_outbox_bytes: int = MAX_OUTBOX_BYTES
    state_cache_bytes: int = CACHE_BYTES
