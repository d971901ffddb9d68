"""The journal as a source of Spark: rows say which range to read, the stage reads it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes
from pyspark.sql.types import StructType

from wallaroo.diagnostic.fault import reach
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.failure.translate import carried
from wallaroo_runtime.storage.journal.head import Position
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.place import Journal, JournalPlace

RANGE_SCHEMA = "place INT, journal STRING, begin LONG, end LONG"
BATCH_BYTES = 32 * 1024 * 1024


@dataclass
class JournalRange(InputPartition):
    """Frames from one boundary to another; `place` is the number of the journal's place among the query's."""

    place: int
    journal: str
    begin: int
    end: int


def to_offset(position: Position) -> dict[str, Any]:
    """Return a position as in Spark's checkpoint; the id as text, since JSON readers round large numbers."""
    return {"journal": f"{position.journal_id:016x}", "offset": position.offset, "sequence": position.messages}


def from_offset(offset: Mapping[str, Any]) -> Position:
    """Read what `to_offset` gave."""
    return Position(int(offset["offset"]), int(offset["sequence"]), int(offset["journal"], 16))


class JournalSource(DataSource):
    """A journal.

    Options are those of its place, its `number` among the query's, `batch_bytes` and `parts` of a batch, and `wait`:
    for how many seconds a reader of files waits for the next message before it reports none.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "wallaroo-journal"

    def schema(self) -> str:
        """Return the columns of a range."""
        return RANGE_SCHEMA

    def streamReader(self, schema: StructType) -> "JournalStreamReader":  # noqa: N802 - Spark's name
        """Return a reader."""
        number, batch_bytes, parts = (int(self.options[name]) for name in ("number", "batch_bytes", "parts"))
        place, wait_s = JournalPlace.from_options(self.options), float(self.options["wait"])
        return JournalStreamReader(place, number, batch_bytes, parts, wait_s)


class JournalStreamReader(DataSourceStreamReader):
    """Offers the journal in steps; lives in a process of Spark's, not in the driver's Python."""

    def __init__(self, place: JournalPlace, number: int, batch_bytes: int, parts: int, wait_s: float = 0) -> None:
        self.place, self.number, self.batch_bytes, self.parts = place, number, batch_bytes, parts
        self.wait_s = wait_s

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Begin at the begin of the journal that is there."""
        with carried():
            return to_offset(Position(0, 0, self.place.open().end().journal_id))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Limit a micro-batch by bytes."""
        return ReadMaxBytes(self.batch_bytes)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return where the next micro-batch ends; `start` itself when there is nothing new."""
        with carried():
            reader, begin = self._reader(start)
            if isinstance(limit, ReadAllAvailable):
                return to_offset(self._checked(begin, reader.end()))
            if self.wait_s and isinstance(reader, JournalReader):
                reader.wait(begin.offset, self.wait_s)
            bound = limit.max_bytes if isinstance(limit, ReadMaxBytes) else self.batch_bytes
            return to_offset(self._checked(begin, reader.limit(begin, bound)))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Cut a micro-batch into ranges, in order."""
        with carried():
            reader, begin = self._reader(start)
            ranges = reader.split(begin.offset, from_offset(end).offset, self.parts)
            return [JournalRange(self.number, start["journal"], part.start, part.end) for part in ranges]

    def read(self, partition: InputPartition) -> Iterator[tuple[int, str, int, int]]:
        """Yield the range itself; its bytes are read where they are needed."""
        if isinstance(partition, JournalRange):
            yield partition.place, partition.journal, partition.begin, partition.end

    def commit(self, end: dict[str, Any]) -> None:
        """Let the journal drop what is processed."""
        with carried():
            reader, position = self._reader(end)
            reach("planner.before_commit")
            reader.commit(position.offset)

    def _reader(self, offset: Mapping[str, Any]) -> tuple[Journal, Position]:
        position = from_offset(offset)
        return self.place.open(position.journal_id), position

    def _checked(self, begin: Position, end: Position) -> Position:
        if end.offset < begin.offset:
            reason = f"it ends there; the checkpoint has read to {begin.offset}"
            raise RunError.of("R698", what=f"journal {self.place} at offset {end.offset}", reason=reason)
        return end
