"""Runs a drawn application without windows between DataFrames: in micro-batches of a query, or as a batch."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import assume

from model.application import Application
from model.compute import item_of
from model.emitted import topology_of
from model.journal import FIRST_SOURCE_PORT
from model.outcome import FIRST_SINK_PORT, Published
from model.reference import Reference, arranged
from model.worker import Nursery
from wallaroo_runtime.dataframe.query import PARTITIONS, Call, applied
from wallaroo_runtime.program.application import Application as Program
from wallaroo_runtime.topology.error_policy import ErrorPolicy
from wallaroo_runtime.topology.model import Topology

WINDOWS = {"count", "range", "session", "timed"}
SCHEMA = "value BINARY, number BIGINT"
FILES = 2  # micro-batches


def in_bags(application: Application) -> Application:
    """Return an application without ticks, whose outputs are in no order: rows of a DataFrame are in none."""
    chunks = tuple(chunk for chunk in application.chunks if chunk.source is not None)
    return replace(application, chunks=chunks, orders=("bag",) * len(application.orders))


def run_applied(session: Any, application: Application, nursery: Nursery, folder: Path, *, live: bool) -> Published:
    """Run an application, and compare what it gives but for the numbers of dead letters, which rows have not."""
    assume(not any(step["op"] in WINDOWS for step in application.steps))
    topology = named(topology_of(application, nursery))
    session.conf.set(PARTITIONS, application.settings.shuffle_partitions)
    inputs = {
        source.name: session.createDataFrame(rows_of(application, source.port), SCHEMA) for source in topology.sources()
    }
    if live:
        inputs = {name: streamed(session, frame, folder / name) for name, frame in inputs.items()}
    program = Program(topology, folder)
    found = applied(Call(program, inputs, ErrorPolicy.of(topology), order_by="number"))
    rows = written(session, found, folder) if live else found.collect()
    expected = Reference(application, counts_ticks=False).run(application.chunks)
    numbers = {sink.path: sink.port - FIRST_SINK_PORT for sink in topology.sinks()}
    steps = {sink.path: f"sink{number}" for sink, number in zip(topology.sinks(), numbers.values(), strict=True)}
    letters = [row["dead_letter"] for row in rows if row["dead_letter"] is not None]
    wanted: Counter[str] = Counter()
    for (place, _), count in expected.letters.items():
        wanted[place] += count
    assert Counter(steps.get(letter["step"], letter["step"]) for letter in letters) == wanted, letters[:5]
    for path, number in numbers.items():
        values = [row["value"] for row in rows if row["output"] == path]
        lines = [item_of(bytes(value).decode().rstrip("\n")) for value in values]
        assert arranged(application, lines) == arranged(application, expected.lines[number]), f"sink {number}"
    return Published(lines=dict(enumerate(expected.lines)), letters=expected.letters, counts_ticks=False)


def named(topology: Topology) -> Topology:
    """Return a topology whose sources and sinks have their paths as names, which differ."""
    pipelines = []
    for pipeline in topology.pipelines:
        sources = tuple(replace(source, name=source.path.replace("/", "_")) for source in pipeline.sources)
        sinks = tuple(replace(sink, name=sink.path) for sink in pipeline.sinks)
        pipelines.append(replace(pipeline, sources=sources, sinks=sinks))
    return replace(topology, pipelines=tuple(pipelines))


def rows_of(application: Application, port: int) -> list[tuple[bytes, int]]:
    """Return the payloads of a source, each with its number among those of all sources."""
    found, number = [], 0
    for chunk in application.chunks:
        for payload in chunk.payloads:
            if chunk.source == port - FIRST_SOURCE_PORT:
                found.append((payload, number))
            number += 1
    return found


def streamed(session: Any, rows: Any, folder: Path) -> Any:
    """Return rows as a stream of some micro-batches, in their order."""
    count = rows.count()
    for part in range(FILES):
        begin, end = part * count // FILES, (part + 1) * count // FILES
        chosen = session.createDataFrame(rows.orderBy("number").collect()[begin:end], SCHEMA)
        chosen.coalesce(1).write.mode("append").parquet(str(folder))
    return session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def written(session: Any, rows: Any, folder: Path) -> list[Any]:
    """Return all rows of a stream."""
    writer = rows.writeStream.format("parquet").option("path", str(folder / "out"))
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    found: list[Any] = session.read.schema(rows.schema).parquet(str(folder / "out")).collect()
    return found
