"""Runs a plan through the operators of the Spark lowering without Spark: shuffle and state store are dictionaries.

`StatelessLevel`, `BucketProcessor` and `Publisher` are the runtime's; this file plays Spark for them. What is Spark's
own (retries, speculation, its checkpoint) is not here.
"""

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Row

from model.application import Application
from model.emitted import plan_of, topology_of
from model.journal import journaled
from model.outcome import Published, published
from model.worker import Nursery
from wallaroo_runtime.plan import NodeKind
from wallaroo_runtime.spark import state as state_module
from wallaroo_runtime.spark.level import Level, levels_of
from wallaroo_runtime.spark.publish import ErrorPolicy, Publisher
from wallaroo_runtime.spark.row import FrameRow
from wallaroo_runtime.spark.stage import StatelessLevel
from wallaroo_runtime.spark.state import BucketProcessor
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.place import JournalPlace, OutputPlace
from wallaroo_runtime.worker.spec import WorkerSpec


class Value:
    """A value state or a list state of the key that is set."""

    def __init__(self, handle: "Handle") -> None:
        self._handle = handle
        self._values: dict[Any, Any] = {}

    def exists(self) -> bool:
        return self._handle.key in self._values

    def get(self) -> Any:
        found = self._values.get(self._handle.key)
        return iter(list(found)) if isinstance(found, list) else found

    def update(self, value: Any) -> None:
        self._values[self._handle.key] = value

    put = update

    def appendList(self, rows: list[Any]) -> None:  # noqa: N802 - Spark's name
        self._values[self._handle.key] = [*self._values.get(self._handle.key, []), *rows]

    def clear(self) -> None:
        self._values.pop(self._handle.key, None)


@dataclass
class Handle:
    """The state store of one level."""

    key: Any = None
    states: dict[str, Value] = field(default_factory=dict)

    def getValueState(self, name: str, _schema: str) -> Value:  # noqa: N802
        return self.states.setdefault(name, Value(self))

    getListState = getValueState  # noqa: N815


@dataclass
class Rows:
    """What `foreachBatch` gets, as far as it is used."""

    rows: list[Row]

    def collect(self) -> list[Row]:
        return self.rows


@dataclass
class LocalRun:
    """One run of an application over dictionaries."""

    application: Application
    levels: list[Level]
    publisher: Publisher
    handles: dict[int, Handle] = field(default_factory=lambda: defaultdict(Handle))
    tasks: int = 0

    def __post_init__(self) -> None:
        self._rng = random.Random(self.application.settings.seed)

    def batch(self, number: int, ranges: Iterable[dict[str, Any]]) -> None:
        """Run one micro-batch."""
        rows: list[tuple[Any, ...]] = []
        first, *rest = self.levels
        stateless = StatelessLevel(first)
        for partition, each in enumerate(ranges):
            self._task(number, partition, 0)
            batches = stateless.run(iter([pa.RecordBatch.from_pylist([each])]))
            rows += [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
        for depth, level in enumerate(rest, 1):
            rows = self._level(number, depth, level, rows)
        fields = ("query", "port", "path", "bytes", "crc32", "messages", "partition")
        self.publisher(Rows([Row(**dict(zip(fields, row, strict=True))) for row in rows]), number)  # type: ignore[arg-type]

    def _level(self, number: int, depth: int, level: Level, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        self._rng.shuffle(rows)  # a shuffle promises no order
        partitions = self.application.settings.shuffle_partitions
        made: list[tuple[Any, ...]] = []
        for partition in range(partitions):
            groups: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
            for row in rows:
                if level.bucket_ids.index(row[0]) % partitions == partition:
                    groups[row[0]].append(row)
            if groups:
                made += self._processed(number, depth, level, partition, groups)
        return made

    def _processed(
        self, number: int, depth: int, level: Level, partition: int, groups: dict[int, list[tuple[Any, ...]]]
    ) -> Iterator[tuple[Any, ...]]:
        self._task(number, partition, depth)
        processor, handle = BucketProcessor(level), self.handles[depth]
        processor.init(handle)  # type: ignore[arg-type]
        for bucket, group in groups.items():
            handle.key = bucket
            given = (Row(**dict(zip(FrameRow.__slots__, row, strict=True))) for row in group)
            yield from (tuple(row) for row in processor.handleInputRows((bucket,), given, None))
        processor.close()

    def _task(self, batch: int, partition: int, stage: int) -> None:
        """Set the context that Spark gives a task."""
        context = TaskContext()
        self.tasks += 1
        context._partitionId, context._stageId, context._taskAttemptId = partition, stage, self.tasks
        context._localProperties = {"sql.streaming.queryId": "q", "streaming.sql.batchId": str(batch)}


def run_locally(application: Application, nursery: Nursery, directory: Path) -> Published:
    """Run an application over dictionaries, and return what its outbox holds."""
    topology = topology_of(application, nursery)
    plan = plan_of(application, topology)
    settings = application.settings
    borders = journaled(application, topology, plan, directory / "journal")
    specs = {
        worker.name: replace(
            WorkerSpec.of(topology, worker),
            cache_bytes=settings.cache_bytes,
            processes=1,
            run=str(directory),
            log_directory=str(directory),
        )
        for worker in topology.workers
    }
    journal = JournalPlace(str(directory / "journal"))
    output = OutputPlace.on(directory)
    levels = levels_of(plan, specs, journals=(journal,), output=output, chunk_bytes=settings.chunk_bytes)
    sinks = {node.port for stage in plan.stages for node in stage.nodes if node.kind is NodeKind.SINK}
    run = LocalRun(application, levels, Publisher(output.open(sinks), ErrorPolicy.of(topology)))
    reader = JournalReader(str(directory / "journal"), None)
    name = f"{reader.end().journal_id:016x}"
    try:
        faults = {"WALLAROO_FAULT": settings.fault}
        with (
            nursery.serving(specs.values(), faults),
            patch.object(state_module, "SMALL_LOG_BYTES", settings.small_log_bytes),
        ):
            for number, (begin, end) in enumerate(borders):
                parts = reader.split(begin, end, settings.ranges)
                run.batch(number, [{"place": 0, "journal": name, "begin": p.start, "end": p.end} for p in parts])
    finally:
        TaskContext._taskContext = None
    return published(directory, topology, plan)
