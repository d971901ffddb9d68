"""Whole records without Kafka: what sinks write, and tables before streams, whatever the shuffle does."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.joined import Joined
from support.record_frames import Record, frames_of
from wallaroo import KafkaRecord
from wallaroo.emit.program import load
from wallaroo.message.frame import read_frame
from wallaroo.worker.host.call import CallRunner
from wallaroo.worker.value.kafka_record import read_record, write_record
from wallaroo_runtime.memory.engine import BatchResult, Engine, FrameRow
from wallaroo_runtime.memory.local import LocalClient
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.spark.source.kafka import CONSUMER, PATIENCE, read_options
from wallaroo_runtime.storage.outbox.sink_record import whole_record
from wallaroo_runtime.topology.error_policy import ErrorPolicy
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import KafkaSource, Topology
from wallaroo_runtime.worker.spec import WorkerSpec

JOINED = Path(__file__).parents[2] / "tests" / "support" / "joined.py"
PARTITIONS = 3

maybe_bytes = st.none() | st.binary(max_size=3)
headers = st.lists(st.tuples(st.sampled_from(["", "a", "größe"]), maybe_bytes), max_size=3).map(tuple)
records = st.builds(
    KafkaRecord, key=maybe_bytes, value=maybe_bytes, headers=headers, timestamp_ms=st.integers(-1, 1 << 42),
    offset=st.integers(1, 5),
)  # fmt: skip


def rows(part: list[KafkaRecord], *, table: bool) -> list[Record]:
    """Return records as Spark gives them."""
    return [
        Record(
            0 if table else each.offset, each.key, each.value, each.timestamp_ms, each.headers, each.partition or 0,
            each.offset,
        )
        for each in part
    ]  # fmt: skip


def topic(name: str, *, table: bool, limit: int = 1000) -> KafkaSource:
    return KafkaSource(
        path="0/sources/0", name=name, kind="kafka", codec="native", worker="main", topic=name, brokers=("b:1",),
        start="start", options={}, max_message_bytes=limit, content="record", table=table,
    )  # fmt: skip


@given(record=records)
def test_sinks_write_what_a_record_has_and_lacks(record: KafkaRecord) -> None:
    found = whole_record(write_record(record))
    assert (found.key, found.value, tuple(found.headers)) == (record.key, record.value, record.headers)
    assert (found.timestamp_ms, found.partition) == (record.timestamp_ms, record.partition)


def test_what_spark_reads_of_a_topic() -> None:
    """Tables whole; records only when they are committed, unless the program says otherwise."""
    session: Any = None  # is asked about offsets alone, and these begin at the start
    table, stream = topic("users", table=True), topic("clicks", table=False)
    assert "maxOffsetsPerTrigger" not in read_options(session, table)
    assert read_options(session, table)["startingOffsets"] == "earliest"
    assert read_options(session, stream)["maxOffsetsPerTrigger"] == "500000"
    for source in (table, stream, replace(stream, content="")):
        assert read_options(session, source)["kafka.isolation.level"] == "read_committed"
        assert (CONSUMER | PATIENCE).items() <= read_options(session, source).items()
    patient = replace(stream, options={"kafka.fetch.max.wait.ms": "500"})
    assert read_options(session, patient) == read_options(session, stream) | patient.options
    dirty = replace(stream, options={"kafka.isolation.level": "read_uncommitted"})
    assert read_options(session, dirty)["kafka.isolation.level"] == "read_uncommitted"


@cache
def application() -> tuple[Topology, Callable[[], LocalClient]]:
    """Return the program of two tables and a stream, and what makes a worker of it in this process."""
    program = load(str(JOINED), ["127.0.0.1:9092"])
    topology = load_document(program.document)
    (worker,) = topology.workers
    return topology, lambda: LocalClient(WorkerSpec.of(topology, worker), CallRunner(program, 1 << 20))


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


def played(batches: list[dict[tuple[str, int], list[KafkaRecord]]], seed: int) -> list[BatchResult]:
    """Run micro-batches over dictionaries, each with its tasks and the rows of its shuffle in any order."""
    topology, worker = application()
    plan, rng = compile_topology(topology, shuffle_partitions=2), random.Random(seed)
    sources = {source.name: source for source in topology.sources() if isinstance(source, KafkaSource)}
    ports = {name: plan.ports[source.path] for name, source in sources.items()}
    tables = {ports[name] for name, source in sources.items() if source.table}

    def shuffle(moved: list[FrameRow]) -> None:
        rng.shuffle(moved)

    engine = Engine(plan, {"main": worker()}, ErrorPolicy.of(topology), shuffle=shuffle, tables=tables)

    def tasks(number: int, batch: dict[tuple[str, int], list[KafkaRecord]]) -> Iterator[list[bytes]]:
        for (name, _), part in rng.sample(list(batch.items()), len(batch)):
            source = sources[name]
            yield list(frames_of(source, ports[name], rows(part, table=source.table), number, most=3))

    return [engine.run(list(tasks(number, batch))) for number, batch in enumerate(batches)]


def given_by(batches: list[BatchResult]) -> list[bytes]:
    return [data for batch in batches for frames in batch.frames.values() for data in frames]


keys = st.sampled_from([None, b"", b"a", b"b"])
few_keys = st.builds(KafkaRecord, key=keys, value=maybe_bytes, headers=headers, offset=st.integers(1, 2))
micro_batches = st.lists(
    st.lists(st.tuples(st.sampled_from(["users", "prices", "clicks"]), few_keys), max_size=25), min_size=1, max_size=3
)


@settings(deadline=None, max_examples=20)
@given(drawn=micro_batches, seed=st.integers(0, 1 << 30))
def test_tables_come_before_streams_in_order(drawn: list[list[tuple[str, KafkaRecord]]], seed: int) -> None:
    cluster = Cluster(random.Random(seed))
    batches = [cluster.batch(each) for each in drawn]
    done = played(batches, seed)
    assert not any(batch.letters for batch in done)
    found = [read_record(value) for data in given_by(done) for value in read_frame(data).values()]
    assert Counter((each.key, each.value, dict(each.headers)["offset"]) for each in found) == cluster.expected
    assert sorted(given_by(done)) == sorted(given_by(played(batches, seed + 1))), (
        "a repeated micro-batch is the same one"
    )
