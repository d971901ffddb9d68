"""Frames of rows that Spark reads: Java and Python write the same bytes."""

import json
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from java_client import asked, ended, started_java

from support.record_frames import Record, frames_of
from wallaroo.message.frame import read_frame
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.spark.source.record import RecordSource, precede_all, record_sources
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import KafkaSource, SparkSource

HEAD: dict[str, Any] = {
    "path": "0/sources/0",
    "name": "in",
    "codec": "native",
    "worker": "main",
    "max_message_bytes": 1 << 20,
}
KAFKA: dict[str, Any] = {
    **HEAD,
    "kind": "kafka",
    "topic": "größe",
    "brokers": ("b:1",),
    "start": "start",
    "options": {},
}
ROWS: Any = {**HEAD, "kind": "spark", "format": "rate", "options": {}, "value": "value"}
VALID = Path(__file__).parents[2] / "topology-schema" / "vectors" / "topologies" / "valid"

texts = st.sampled_from([None, b"", b"a", b"ann", b"b" * 300])
large = st.integers(0, 300_000).map(bytes)
records = st.builds(
    Record, st.none() | st.integers(0, 1 << 45), texts, texts | large, st.integers(-1, 1 << 42) | st.just(7),
    st.lists(st.tuples(st.sampled_from(["", "a", "größe", "n" * 65_535, "n" * 65_536]), texts), max_size=2),
    st.integers(0, 9), st.integers(0, 1 << 45),
)  # fmt: skip
topics = st.builds(partial(KafkaSource, **KAFKA), content=st.sampled_from(["", "record"]), table=st.booleans())
sources = topics | st.builds(partial(SparkSource, **ROWS), key=st.sampled_from(["", "value"]))


@pytest.fixture(scope="module")
def packer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    """Give a process that packs as tasks do."""
    process = started_java("microbatch.RecordFramesMain", tmp_path_factory.mktemp("classes"))
    yield process
    ended(process)


def packed(process: subprocess.Popen[str], source: RecordSource, rows: list[Record], batch: int) -> list[bytes]:
    def text(data: bytes | None) -> str | None:
        return None if data is None else data.hex()

    values = [
        [each.sequence, text(each.key), text(each.value), each.timestamp_ms,
         [[name, text(value)] for name, value in each.headers], each.partition, each.offset]
        for each in rows
    ]  # fmt: skip
    request = {"batch": batch, "rows": values, "source": told(source)}
    return [bytes.fromhex(frame) for frame in asked(process, request)]


def told(source: RecordSource) -> dict[str, Any]:
    stage: Any = type("Stage", (), {"entry_ports": {source.port}})
    plan: Any = type("Plan", (), {"levels": [[stage]]})
    return source.settings(plan)


@pytest.mark.jvm
@settings(max_examples=100, suppress_health_check=list(HealthCheck), deadline=None)
@given(sources, st.integers(0, 65532), st.lists(records, max_size=12), st.integers(0, 1 << 30))
def test_java_and_python_write_the_same_bytes(
    packer: subprocess.Popen[str], source: KafkaSource | SparkSource, port: int, rows: list[Record], batch: int
) -> None:
    rows = sorted(rows, key=lambda row: -1 if row.sequence is None else row.sequence)
    if isinstance(source, SparkSource) or (rows and rows[0].sequence is None):
        rows = [row._replace(sequence=None) for row in rows]
    expected = list(frames_of(source, port, rows, batch))
    assert packed(packer, RecordSource(port, source), rows, batch) == expected
    assert sum(read_frame(frame).header.count for frame in expected) == len(rows)


def test_what_tasks_get_to_know_of_sources() -> None:
    """Every topology with sources that Spark reads; each names its own stage."""
    seen = 0
    for file in sorted(VALID.glob("*.json")):
        topology = load_document(json.loads(file.read_bytes()))
        plan = compile_topology(topology, shuffle_partitions=2)
        found = record_sources(plan, topology)
        named = [each for each in topology.sources() if isinstance(each, KafkaSource | SparkSource)]
        assert [each.source for each in found] == named
        seen += len(found)
        for each in found:
            said, source = each.settings(plan), each.source
            assert each.port in plan.levels[0][said["stage"]].entry_ports
            assert (said["path"], said["name"], said["place"]) == (source.path, source.name, source.place)
            assert said["keys"] == (isinstance(source, KafkaSource) or bool(source.key))
            assert said["topic"] == isinstance(source, KafkaSource)
        assert precede_all(plan, found) == (len(found) == len(list(topology.sources())))
    assert seen > 2
