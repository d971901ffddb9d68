"""Lets groups of a new checkpoint begin with the values of their table topics, which Goka's own processors wrote.

One query with the operators of the plan reads the topics whole, in its micro-batch 0, and writes each bucket's log: a
key's value is that of its last record. It runs before the application's query, which goes on from its checkpoint.
"""

import pickle
import secrets
from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from wallaroo.diagnostic.fault import reach
from wallaroo.message.key import bucket_of
from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import carried, translated
from wallaroo_runtime.spark.goka.group_state import form_of
from wallaroo_runtime.spark.machine.hadoop import spark_path
from wallaroo_runtime.spark.micro_batches import MicroBatches, Rows
from wallaroo_runtime.spark.state_store.rescale import RowMaker, one_row
from wallaroo_runtime.spark.state_store.rescale_log import bucket_frames
from wallaroo_runtime.spark.task.row import FRAME_SCHEMA, FrameRow, frame_batch
from wallaroo_runtime.spark.task.row_source import RecordSource
from wallaroo_runtime.spark.task.state import BucketState
from wallaroo_runtime.storage.state_log import StateKey, StateValue
from wallaroo_runtime.topology.model import KafkaSource
from wallaroo_runtime.worker.session import BucketResult, Version

VALUES, COUNT = 3, 4  # kinds of rows next to those of `spark.row`; their column `task` has the port of the state
CHUNK_BYTES = 16 * 1024 * 1024
VALUE_BYTES = 100  # about what a record costs in memory besides key and value
_COLUMNS = ("partition", "offset", "timestamp_ms", "key", "value")


@dataclass(frozen=True, slots=True)
class Table:
    """A table that is to be read.

    Attributes:
        source: Reads its topic from the start.
        port: Of the group's state, in the headers of log frames.
        language: Of the group's worker.
    """

    source: KafkaSource
    port: int
    language: str


class TableCount(NamedTuple):
    """What a group begins with.

    Attributes:
        keys: That have a value.
        size: Bytes of keys and values.
        double: Keys that have a value in more than one partition; the newest counts.
        example: One of them.
    """

    keys: int = 0
    size: int = 0
    double: int = 0
    example: bytes = b""

    def plus(self, other: "TableCount") -> "TableCount":
        """Return both together."""
        example = self.example or other.example
        return TableCount(self.keys + other.keys, self.size + other.size, self.double + other.double, example)


class Found(NamedTuple):
    """The last record of a key in a partition; value None: it has none."""

    offset: int
    timestamp_ms: int
    value: bytes | None


Last = dict[tuple[int, bytes], Found]  # by partition and key


def keep_last(last: Last, partition: int, key: bytes, found: Found) -> None:
    """Keep a record unless a later one of its partition is known."""
    known = last.get((partition, key))
    if known is None or known.offset < found.offset:
        last[partition, key] = found


def take_chunk(last: Last, payload: bytes) -> None:
    """Add what a row of `TableReader` has."""
    for partition, key, *found in pickle.loads(payload):
        keep_last(last, partition, key, Found(*found))


def log_of(tables: Mapping[int, Mapping[bytes, bytes]], languages: Mapping[int, str], bucket_count: int) -> list[bytes]:
    """Return the entries of the log of one bucket.

    Args:
        tables: Values of keys, by port of the state.
        languages: In which the states are written, likewise.
        bucket_count: Of the plan.
    """
    states: dict[StateKey, StateValue] = {}
    for port in sorted(tables):
        form = form_of(languages[port])
        states |= {(port, key): (form.encoding, form.write(value)) for key, value in tables[port].items()}
    return [entry for _, entry in bucket_frames(states, bucket_count)]


def values_of(last: Last) -> tuple[dict[bytes, bytes], TableCount]:
    """Return the value of each key that has one, and their count.

    Goka has a state for each partition of a key, here a key has one: that of the newest record, which is no value if
    the record has none.

    Example:
        >>> values_of({(0, b"a"): Found(7, 1000, b"1"), (1, b"a"): Found(0, 2000, b"2"), (0, b"b"): Found(8, 0, None)})
        ({b'a': b'2'}, TableCount(keys=1, size=2, double=1, example=b'a'))
    """
    newest: dict[bytes, tuple[int, int, bytes | None]] = {}
    double: set[bytes] = set()
    for (partition, key), found in last.items():
        mine, other = (found.timestamp_ms, partition, found.value), newest.get(key)
        if other is not None and found.value is not None and other[2] is not None:
            double.add(key)
        if other is None or other[:2] < mine[:2]:
            newest[key] = mine
    values = {key: value for key, (_, _, value) in newest.items() if value is not None}
    size = sum(len(key) + len(value) for key, value in values.items())
    return values, TableCount(len(values), size, len(double), min(double, default=b""))


@dataclass(frozen=True, slots=True)
class TableReader:
    """The function of `mapInArrow` that gives the records of a table to their buckets.

    Attributes:
        port: Of the state.
        bucket_ids: As of the plan.
        chunk_bytes: Of memory, for the records that go into one row for each bucket.
    """

    port: int
    bucket_ids: tuple[int, ...]
    chunk_bytes: int = CHUNK_BYTES

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows, of which each has the last records of many keys."""
        with carried():
            last, size = Last(), 0
            for batch in batches:
                columns = (batch.column(name).to_pylist() for name in _COLUMNS)
                for partition, offset, time, key, value in zip(*columns, strict=True):
                    keep_last(last, partition, key or b"", Found(offset, time, value))
                    size += len(key or b"") + len(value or b"") + VALUE_BYTES
                if size > self.chunk_bytes:
                    yield self._rows(last)
                    last, size = Last(), 0
            if last:
                yield self._rows(last)

    def _rows(self, last: Last) -> pa.RecordBatch:
        parts: dict[int, list[Any]] = defaultdict(list)
        for (partition, key), found in last.items():
            parts[bucket_of(key, len(self.bucket_ids))].append((partition, key, *found))
        return frame_batch(
            [
                FrameRow(self.bucket_ids[bucket], 0, 0, VALUES, self.port, pickle.dumps(part))
                for bucket, part in parts.items()
            ]
        )


class TableWriter(StatefulProcessor):
    """Gives the buckets of a level the logs of their tables, and passes on rows of other levels."""

    def __init__(self, stages: Sequence[Stage], languages: Mapping[int, str], bucket_ids: tuple[int, ...]) -> None:
        self._stages = [stage for stage in stages if stage.has_state]
        self._languages, self._bucket_ids = languages, bucket_ids
        self._states: dict[str, BucketState] = {}

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Take hold of the state; called on the driver too, for its schema."""
        self._states = {stage.id: BucketState(handle, stage) for stage in self._stages}

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        """Write one bucket's logs; yields what they have, too."""
        with carried():
            ports = {node.state_port for stage in self._stages for node in stage.nodes if node.state}
            tables: dict[int, Last] = {}
            for row in rows:
                frame = FrameRow(*row)
                if frame.kind != VALUES or frame.task not in ports:
                    yield row
                    continue
                take_chunk(tables.setdefault(frame.task, {}), frame.payload)
            values = {port: values_of(last) for port, last in tables.items()}
            for stage in self._stages:
                own = {node.state_port for node in stage.nodes if node.state} & set(values)
                entries = log_of({port: values[port][0] for port in own}, self._languages, len(self._bucket_ids))
                if entries:  # else the stage has the log of a new checkpoint
                    version = Version(1, 1 + secrets.randbelow((1 << 64) - 1))
                    self._states[stage.id].store(BucketResult(version, changes=entries, is_snapshot=True))
            reach("task.after_table")
            for port, (_, count) in values.items():
                told = FrameRow(key[0], 0, 0, COUNT, port, pickle.dumps(tuple(count)))
                yield Row(**dict(zip(FrameRow.__slots__, told.as_tuple(), strict=True)))


def load_tables(session: SparkSession, plan: Plan, tables: Sequence[Table], checkpoint: str) -> dict[int, TableCount]:
    """Run micro-batch 0 of a checkpoint of Spark's, which writes the states of tables.

    Args:
        session: That of the run.
        plan: Of the application.
        tables: To be read, as they are now; none: there is only the micro-batch.
        checkpoint: Spark's own; nothing is there yet.

    Returns:
        What each table has, by its port.

    Raises:
        RunError: It did not work; what is in the checkpoint then is of no use.
    """
    session.conf.set("spark.sql.shuffle.partitions", plan.shuffle_partitions)
    frame = one_row(session, 1).mapInArrow(RowMaker(plan.bucket_ids).run, FRAME_SCHEMA)
    for table in tables:
        rows = RecordSource(table.port, table.source).load(session).select(*_COLUMNS)
        frame = frame.union(rows.mapInArrow(TableReader(table.port, plan.bucket_ids).run, FRAME_SCHEMA))
    languages = {table.port: table.language for table in tables}
    for level in plan.levels[1:]:
        writer = TableWriter(level, languages, plan.bucket_ids)
        frame = frame.groupBy("bucket").transformWithState(writer, FRAME_SCHEMA, "Append", "None")
    found: dict[int, TableCount] = {}

    def take(rows: Rows, batch: int) -> None:
        for port, payload in rows:
            count = TableCount(*pickle.loads(b64decode(payload)))
            found[port] = found.get(port, TableCount()).plus(count)

    counts = frame.where(f"kind = {COUNT}").select("task", "payload")
    written = counts.writeStream.option("checkpointLocation", spark_path(checkpoint)).outputMode("append")
    try:
        MicroBatches(session, take).run_one(written)
    except PySparkException as error:
        raise translated(causes_of(error), checkpoint) from error
    return found
