"""What Spark's own sources and sinks have had since a checkpoint began: its record `records.json`.

Gateway and egress count theirs themselves. Offsets of Kafka would not do: markers of transactions have some, too.
"""

from dataclasses import dataclass, field, replace

from wallaroo_runtime.durable.directory import Directory
from wallaroo_runtime.durable.record import pack_record, unpack_record

NAME = "records.json"


@dataclass(frozen=True, slots=True)
class Counted:
    """The record.

    Attributes:
        query: Id of Spark's query; empty: it has no micro-batch yet.
        written: The last micro-batch that sinks have got; -1: none.
        aside: How many of its messages became dead letters, since their sink never takes them.
        batch: The last micro-batch that is counted; -1: none.
        received: Messages that sources have given since the checkpoint began.
        sent: Messages that sinks have got since then.
        refused: Messages that became dead letters since then, because a sink never takes them.
    """

    query: str = ""
    written: int = -1
    aside: int = 0
    batch: int = -1
    received: int = 0
    sent: int = 0
    refused: int = 0


def read_counted(directory: Directory) -> Counted:
    """Return the record of a checkpoint; all zero: it has none.

    Raises:
        RunError: R698, it is damaged; what the directory raises.
    """
    content = directory.read(NAME)
    return Counted() if content is None else unpack_record(Counted, content, f"{directory}/{NAME}")


@dataclass(slots=True)
class RecordCount:
    """Counts each micro-batch once, also one that is repeated after a kill.

    Attributes:
        directory: The checkpoint; None: what is counted is kept nowhere.
        now: What is counted.
        before: What earlier runs had counted.
    """

    directory: Directory | None = None
    now: Counted = field(default_factory=Counted)
    before: Counted = field(default_factory=Counted)

    @classmethod
    def open(cls, directory: Directory) -> "RecordCount":
        """Go on with what earlier runs have counted; raises as `read_counted`."""
        found = read_counted(directory)
        return cls(directory, found, found)

    def is_written(self, query: str, batch: int) -> bool:
        """Say whether sinks have got a micro-batch."""
        return self.now.query == query and self.now.written >= batch

    def write(self, query: str, batch: int, aside: int) -> None:
        """Note that sinks have got a micro-batch, but for so many of its messages, which became dead letters."""
        self._store(replace(self._of(query), written=batch, aside=aside))

    def add(self, query: str, batch: int, received: int, sent: int) -> None:
        """Count a micro-batch that is published; to be called before Spark commits it.

        Args:
            sent: Messages for sinks, those that they refuse included.
        """
        known = self._of(query)
        if batch <= known.batch or not (received or sent):
            return
        aside = known.aside if known.written == batch else 0
        sums = (known.received + received, known.sent + sent - aside, known.refused + aside)
        self._store(replace(known, batch=batch, received=sums[0], sent=sums[1], refused=sums[2]))

    def _of(self, query: str) -> Counted:
        """Return the record for a query; each one numbers its micro-batches from 0."""
        return self.now if self.now.query == query else replace(self.now, query=query, written=-1, batch=-1)

    def _store(self, counted: Counted) -> None:
        if self.directory is not None:
            self.directory.write(NAME, pack_record(counted))
        self.now = counted
