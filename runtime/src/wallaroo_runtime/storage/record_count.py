"""The counts of messages of Spark's own sources and sinks since a checkpoint began: the record `records.json`.

Gateway and egress count their own messages. Offsets of Kafka are no counts: markers of transactions have offsets, too.
"""

from dataclasses import dataclass, field, replace

from wallaroo_runtime.durable.directory import Directory
from wallaroo_runtime.durable.record import pack_record, unpack_record

NAME = "records.json"


@dataclass(frozen=True, slots=True)
class Counted:
    """The content of `records.json`.

    Attributes:
        query: Id of Spark's query; empty before its first micro-batch.
        written: The last micro-batch that sinks have received; -1 if there is none.
        batch: The last micro-batch that is counted; -1 if there is none.
        received: Number of messages that sources have given since the checkpoint began.
        sent: Number of messages that sinks have received since the checkpoint began.
    """

    query: str = ""
    written: int = -1
    batch: int = -1
    received: int = 0
    sent: int = 0


def read_counted(directory: Directory) -> Counted:
    """Return the record of a checkpoint; all zero if it has no record.

    Raises:
        RunError: R698 if the record is damaged; the errors of the directory.
    """
    content = directory.read(NAME)
    return Counted() if content is None else unpack_record(Counted, content, f"{directory}/{NAME}")


@dataclass(slots=True)
class RecordCount:
    """Counts the messages of Spark's own sources and sinks: of each micro-batch once, even if it is repeated.

    Attributes:
        directory: The checkpoint; None if the counts are not kept.
        now: The current counts.
        before: The counts of earlier runs.
    """

    directory: Directory | None = None
    now: Counted = field(default_factory=Counted)
    before: Counted = field(default_factory=Counted)

    @classmethod
    def open(cls, directory: Directory) -> "RecordCount":
        """Go on with the counts of earlier runs. Raise the errors of `read_counted`."""
        counts = read_counted(directory)
        return cls(directory, counts, counts)

    def is_written(self, query: str, batch: int) -> bool:
        """Return whether Spark's sinks have received a micro-batch."""
        return self.now.query == query and self.now.written >= batch

    def write(self, query: str, batch: int) -> None:
        """Record that Spark's sinks have received a micro-batch, so that it is not written again."""
        self._store(replace(self._of(query), written=batch))

    def add(self, query: str, batch: int, received: int, sent: int) -> None:
        """Count a published micro-batch; must be called before Spark commits the micro-batch."""
        known = self._of(query)
        if batch <= known.batch or not (received or sent):
            return
        self._store(replace(known, batch=batch, received=known.received + received, sent=known.sent + sent))

    def _of(self, query: str) -> Counted:
        """Return the counts so far. If Spark has begun another query, micro-batches are numbered from 0 again."""
        return self.now if self.now.query == query else replace(self.now, query=query, written=-1, batch=-1)

    def _store(self, counted: Counted) -> None:
        if self.directory is not None:
            self.directory.write(NAME, pack_record(counted))
        self.now = counted
