"""From a drawn application to its topology and plan: by the front-ends, as for every program."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from model.application import GO, PYTHON, Application
from model.worker import Nursery
from wallaroo_runtime.plan import Plan, compile_topology
from wallaroo_runtime.program.app import resolve
from wallaroo_runtime.program.build import build
from wallaroo_runtime.program.emit import own_workers, run_front_end
from wallaroo_runtime.program.library import join_libraries
from wallaroo_runtime.topology.load import load_document
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.spec import PYTHON_PLACEHOLDER


@cache
def binary(directory: Path) -> Path:
    """Build the Go program, once."""
    return build(directory)


def topology_of(application: Application, nursery: Nursery) -> Topology:
    """Return the topology that the front-end of the application's program emits, joined with the other program's."""
    document = emitted(application, "main", nursery)["topology"]
    if application.other:
        path = str(application.program("library"))
        join_libraries(document, {"other": (path, emitted(application, "library", nursery))})
    return load_document(document)


def plan_of(application: Application, topology: Topology) -> Plan:
    """Return the plan, with frames of the drawn size."""
    settings = application.settings
    plan = compile_topology(
        topology,
        shuffle_partitions=settings.shuffle_partitions,
        buckets_per_partition=settings.buckets_per_partition,
    )
    levels = tuple(tuple(replace(stage, frame_bytes=settings.frame_bytes) for stage in level) for level in plan.levels)
    return replace(plan, levels=levels)


def emitted(application: Application, role: str, nursery: Nursery) -> dict[str, Any]:
    program, arguments = application.program(role), application.arguments(role)
    language = application.main if role == "main" else application.other
    if language == GO:
        return run_front_end(resolve(str(binary(program))), arguments)
    assert language == PYTHON
    app = resolve(str(program)).target
    with TemporaryDirectory(prefix="model-") as folder:
        result = nursery.emit(app, arguments, Path(folder))
    assert "diagnostics" not in result, result
    for entry in own_workers(result):
        entry["command"], entry["directory"] = [PYTHON_PLACEHOLDER, "-m", "wallaroo.worker", app], str(Path.cwd())
    return result
