"""Runs a drawn application through the engine in memory; what must not change anything is as its settings say."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from model.application import PYTHON, Application
from model.emitted import plan_of, topology_of
from model.journal import journaled
from model.mutation import planted_in_worker
from model.outcome import Published, collected
from model.worker import Nursery
from wallaroo.emit.program import load
from wallaroo.worker.host.call import CallRunner
from wallaroo_runtime.memory.engine import Engine, FrameRow
from wallaroo_runtime.memory.local import LocalClient
from wallaroo_runtime.memory.store import LogStore
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.topology.error_policy import ErrorPolicy
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.client import CallClient
from wallaroo_runtime.worker.spec import WorkerSpec

Served = tuple[Topology, Mapping[str, CallClient]]


def run_in_memory(application: Application, nursery: Nursery, directory: Path) -> Published:
    """Run an application over dictionaries, and return what it gave."""
    is_local = application.main == PYTHON and not application.other and not application.settings.fault
    served = in_this_process(application) if is_local else in_processes(application, nursery, directory)
    settings = application.settings
    with served as (topology, clients):
        plan = plan_of(application, topology)
        borders = journaled(application, topology, plan, directory / "journal")
        store, rng = LogStore(settings.small_log_bytes), random.Random(settings.seed)

        def shuffle(rows: list[FrameRow]) -> None:
            rng.shuffle(rows)

        engine = Engine(plan, clients, ErrorPolicy.of(topology), store=store, shuffle=shuffle)
        reader = JournalReader(str(directory / "journal"), None)
        batches = [engine.run(tasks(reader, border, application)) for border in borders]
    return collected(batches, topology, plan)


def tasks(reader: JournalReader, border: tuple[int, int], application: Application) -> list[list[bytes]]:
    """Return what the tasks of level 0 read of a micro-batch."""
    ends = reader.split(*border, application.settings.ranges)
    parts = zip([border[0], *ends], ends, strict=False)
    return [list(reader.read(first, last, application.settings.chunk_bytes)) for first, last in parts]


@contextmanager
def in_this_process(application: Application) -> Iterator[Served]:
    """Run the program's computations in this process."""
    program = load(str(application.program("main")), application.arguments("main"))
    topology = load_document(program.document)
    (worker,) = topology.workers
    calls = CallRunner(program, application.settings.cache_bytes)
    with planted_in_worker():
        yield topology, {worker.name: LocalClient(WorkerSpec.of(topology, worker), calls)}


@contextmanager
def in_processes(application: Application, nursery: Nursery, directory: Path) -> Iterator[Served]:
    """Run the program's computations in workers, some of which die as the settings say."""
    topology, settings = topology_of(application, nursery), application.settings
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
    with nursery.serving(specs.values(), {"WALLAROO_FAULT": settings.fault}) as clients:
        yield topology, dict(zip(specs, clients, strict=True))
