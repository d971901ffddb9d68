"""Whole records without Kafka: from Spark's rows to frames; tables before streams, whatever the shuffle does."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.joined import Joined
from wallaroo import KafkaRecord
from wallaroo.emit.program import load
from wallaroo.message.frame import TICK_PORT, read_frame, read_header
from wallaroo.worker.host.call import CallRunner
from wallaroo.worker.value.kafka_record import read_record, write_record
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.memory.channel import LocalChannel
from wallaroo_runtime.memory.engine import Batch, Engine, Row
from wallaroo_runtime.memory.source_frame import tick_frame
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.plan.bucket_stages import in_order
from wallaroo_runtime.plan.crossing import controls_of
from wallaroo_runtime.spark.source.kafka import CONSUMER, PATIENCE, read_options
from wallaroo_runtime.spark.task import row_source
from wallaroo_runtime.spark.task.row_source import RecordSource
from wallaroo_runtime.storage.outbox.sink_record import whole_record
from wallaroo_runtime.topology.error_policy import ErrorPolicy
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import KafkaSource, Topology
from wallaroo_runtime.worker.spec import WorkerSpec

JOINED = Path(__file__).parents[2] / "tests" / "support" / "joined.py"
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
COLUMNS = {
    "sequence": pa.int64(), "key": pa.binary(), "value": pa.binary(), "timestamp_ms": pa.int64(), "headers": HEADERS,
    "partition": pa.int32(), "offset": pa.int64(),
}  # fmt: skip
PARTITIONS = 3

maybe_bytes = st.none() | st.binary(max_size=3)
headers = st.lists(st.tuples(st.sampled_from(["", "a", "größe"]), maybe_bytes), max_size=3).map(tuple)
records = st.builds(
    KafkaRecord, key=maybe_bytes, value=maybe_bytes, headers=headers, timestamp_ms=st.integers(-1, 1 << 42),
    offset=st.integers(1, 5),
)  # fmt: skip


def rows(part: list[KafkaRecord], *, table: bool) -> pa.RecordBatch:
    """Return records as Spark gives them."""
    values: list[tuple[Any, ...]] = [
        (
            0 if table else each.offset, each.key, each.value, each.timestamp_ms,
            [{"key": name, "value": value} for name, value in each.headers] or None, each.partition, each.offset,
        )
        for each in part
    ]  # fmt: skip
    columns = list(zip(*values, strict=True)) or [()] * len(COLUMNS)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, COLUMNS.values(), strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=list(COLUMNS))


def topic(name: str, *, table: bool, limit: int = 1000) -> KafkaSource:
    return KafkaSource(
        path="0/sources/0", name=name, kind="kafka", codec="native", worker="main", topic=name, brokers=("b:1",),
        start="start", options={}, max_message_bytes=limit, content="record", table=table,
    )  # fmt: skip


@pytest.fixture
def short_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_source, "FRAME_MESSAGES", 3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(drawn=st.lists(records, min_size=1, max_size=12), table=st.booleans(), cut=st.integers(0, 12))
def test_rows_become_frames_of_whole_records(
    drawn: list[KafkaRecord], table: bool, cut: int, short_frames: None
) -> None:
    offset, sent = 0, []
    for each in drawn:
        offset += each.offset  # compaction leaves gaps
        sent.append(KafkaRecord("users", each.key, each.value, each.headers, each.timestamp_ms, 2, offset))
    source = RecordSource(7, topic("users", table=table))
    batches = [rows(part, table=table) for part in (sent[:cut], sent[cut:])]
    frames = list(source.frames(batches, batch=4))
    assert frames == list(source.frames(batches, batch=4)), "a repeated micro-batch is the same one"
    read = [read_frame(data) for data in frames]
    assert [read_record(value) for frame in read for value in frame.values()] == sent
    keys = [frame.keys[index] for frame in read for index in frame.key_indexes]
    assert keys == [each.key or b"" for each in sent]
    sequences = [frame.sequence_of(number) for frame in read for number in range(frame.header.count)]
    assert sequences == [0 if table else each.offset for each in sent]
    assert [time for frame in read for time in frame.times()] == [each.timestamp_ms for each in sent]
    assert not any(frame.absent or frame.headers for frame in read)


@given(record=records)
def test_sinks_write_what_a_record_has_and_lacks(record: KafkaRecord) -> None:
    found = whole_record(write_record(record))
    assert (found.key, found.value, tuple(found.headers)) == (record.key, record.value, record.headers)
    assert (found.timestamp_ms, found.partition) == (record.timestamp_ms, record.partition)


def test_a_whole_record_that_is_too_long_stops_the_query() -> None:
    long = KafkaRecord(key=b"k" * 50, partition=2, offset=41)
    with pytest.raises(RunError) as caught:
        list(RecordSource(0, topic("users", table=True, limit=40)).frames([rows([long], table=True)], batch=0))
    place = 'source "users", users, record 41 of partition 2'
    assert f"{place}: a message has more than max_message_bytes, 40; it has 63 bytes" in str(caught.value)


def test_what_spark_reads_of_a_topic() -> None:
    """Tables whole; whole records only when they are committed, unless the program says otherwise."""
    session: Any = None  # is asked about offsets alone, and these begin at the start
    table, stream = topic("users", table=True), topic("clicks", table=False)
    assert "maxOffsetsPerTrigger" not in read_options(session, table)
    assert read_options(session, table)["startingOffsets"] == "earliest"
    assert read_options(session, stream)["maxOffsetsPerTrigger"] == "500000"
    for source in (table, stream):
        assert read_options(session, source)["kafka.isolation.level"] == "read_committed"
        assert (CONSUMER | PATIENCE).items() <= read_options(session, source).items()
    patient = replace(stream, options={"kafka.fetch.max.wait.ms": "500"})
    assert read_options(session, patient) == read_options(session, stream) | patient.options
    dirty = replace(stream, options={"kafka.isolation.level": "read_uncommitted"})
    assert read_options(session, dirty)["kafka.isolation.level"] == "read_uncommitted"
    assert "kafka.isolation.level" not in read_options(session, replace(stream, content=""))


@cache
def application() -> tuple[Topology, Callable[[], LocalChannel]]:
    """Return the program of two tables and a stream, and what makes a worker of it in this process."""
    program = load(str(JOINED), ["127.0.0.1:9092"])
    topology = load_document(program.document)
    (worker,) = topology.workers
    return topology, lambda: LocalChannel(WorkerSpec.of(topology, worker), CallRunner(program, 1 << 20))


@dataclass
class Cluster:
    """Topics that grow, and what the application must give for them.

    Attributes:
        expected: A click's key, what it must give, and its offset.
    """

    rng: random.Random
    offsets: Counter[tuple[str, int]] = field(default_factory=Counter)
    states: dict[bytes, Joined] = field(default_factory=dict)
    expected: Counter[tuple[bytes | None, bytes, bytes]] = field(default_factory=Counter)

    def batch(self, drawn: list[tuple[str, KafkaRecord]]) -> dict[tuple[str, int], list[KafkaRecord]]:
        """Return records by topic and partition, and count what they must give: tables first."""
        found: dict[tuple[str, int], list[KafkaRecord]] = {}
        for name, each in sorted(drawn, key=lambda item: item[0] == "clicks"):
            key = each.key or b""
            partition = self.rng.randrange(PARTITIONS) if name == "clicks" else sum(key) % PARTITIONS
            at = name, partition
            whole = KafkaRecord(name, each.key, each.value, each.headers, 5, partition, self.offsets[at])
            self.offsets[at] += each.offset
            found.setdefault(at, []).append(whole)
            state = self.states.setdefault(key, Joined())
            if name == "clicks":
                self.expected[each.key, state.text(), str(whole.offset).encode()] += 1
            else:
                state.change(name, each.value)
        return found


def played(batches: list[dict[tuple[str, int], list[KafkaRecord]]], seed: int) -> list[Batch]:
    """Run micro-batches over dictionaries, each with its tasks and the rows of its shuffle in any order."""
    topology, worker = application()
    plan, rng = compile_topology(topology, shuffle_partitions=2), random.Random(seed)
    sources = {source.name: source for source in topology.sources() if isinstance(source, KafkaSource)}
    ports = {name: plan.ports[source.path] for name, source in sources.items()}
    tables = {ports[name] for name, source in sources.items() if source.table}

    def shuffle(moved: list[Row]) -> None:
        rng.shuffle(moved)

    engine = Engine(plan, {"main": worker()}, ErrorPolicy.of(topology), shuffle=shuffle, tables=tables)

    def tasks(number: int, batch: dict[tuple[str, int], list[KafkaRecord]]) -> Iterator[list[bytes]]:
        for (name, _), part in rng.sample(list(batch.items()), len(batch)):
            source = sources[name]
            yield list(RecordSource(ports[name], source).frames([rows(part, table=source.table)], number))

    return [engine.run(list(tasks(number, batch))) for number, batch in enumerate(batches)]


def given_by(batches: list[Batch]) -> list[bytes]:
    return [data for batch in batches for frames in batch.frames.values() for data in frames]


keys = st.sampled_from([None, b"", b"a", b"b"])
few_keys = st.builds(KafkaRecord, key=keys, value=maybe_bytes, headers=headers, offset=st.integers(1, 2))
micro_batches = st.lists(
    st.lists(st.tuples(st.sampled_from(["users", "prices", "clicks"]), few_keys), max_size=25), min_size=1, max_size=3
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20)
@given(drawn=micro_batches, seed=st.integers(0, 1 << 30))
def test_tables_come_before_streams_in_order(
    drawn: list[list[tuple[str, KafkaRecord]]], seed: int, short_frames: None
) -> None:
    cluster = Cluster(random.Random(seed))
    batches = [cluster.batch(each) for each in drawn]
    done = played(batches, seed)
    assert not any(batch.letters for batch in done)
    found = [read_record(value) for data in given_by(done) for value in read_frame(data).values()]
    assert Counter((each.key, each.value, dict(each.headers)["offset"]) for each in found) == cluster.expected
    assert sorted(given_by(done)) == sorted(given_by(played(batches, seed + 1))), (
        "a repeated micro-batch is the same one"
    )


@given(times=st.lists(st.integers(0, 1 << 41), max_size=20, unique=True), seed=st.integers(0, 9))
def test_what_precedes_all_messages_is_in_order_of_its_time(times: list[int], seed: int) -> None:
    """Ticks and visits have sequence 0 where Spark reads all sources; records have sequences of their own there."""
    moved = [
        Row(0, sequence, -1, TICK_PORT, frame)
        for time in times
        for sequence, frame in controls_of(tick_frame(time % 7, time), (TICK_PORT,), precede_all=True)
    ]
    moved.append(Row(0, 0, 0, 3, b""))
    random.Random(seed).shuffle(moved)
    found = [row for row in in_order(moved) if row.port == TICK_PORT]
    assert [read_header(row.payload).timestamp_ms for row in found] == sorted(times)
    assert in_order(moved)[-1].port == 3
