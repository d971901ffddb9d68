"""Writes the messages of a drawn application into a journal, as the gateway does."""

from pathlib import Path

from model.application import Application
from wallaroo.message.frame import TICK_PORT
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.topology.model import Topology

FIRST_SOURCE_PORT = 9000


def journaled(application: Application, topology: Topology, plan: Plan, directory: Path) -> list[tuple[int, int]]:
    """Write an application's chunks; returns the offsets at which its micro-batches begin and end."""
    ports = {source.port - FIRST_SOURCE_PORT: plan.ports[source.path] for source in topology.sources()}
    writer = JournalWriter(directory)
    ends, borders, begin = [], [], 0
    for chunk in application.chunks:
        data = b"".join(len(payload).to_bytes(4, "big") + payload for payload in chunk.payloads)
        port = TICK_PORT if chunk.source is None else ports[chunk.source]
        writer.append(port, len(chunk.payloads), [data] if data else [], timestamp_ms=chunk.time_ms)
        ends.append(writer.end.offset)
    for size in application.batches:
        taken, ends = ends[:size], ends[size:]
        borders.append((begin, taken[-1]))
        begin = taken[-1]
    writer.close()
    return borders
