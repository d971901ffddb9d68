"""Shows states in a form for people: a worker decodes them, as for `wallaroo state`."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from wallaroo_runtime.archive.archive import unpack
from wallaroo_runtime.dataframe.state import state_ports
from wallaroo_runtime.plan import Stage
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.program.application import Application
from wallaroo_runtime.spark.machine.temporary import temporary_directory
from wallaroo_runtime.storage.state_log import entries_of, grouped
from wallaroo_runtime.worker.discovery import ensure_worker, stop_worker
from wallaroo_runtime.worker.idempotent_call import WorkerShower
from wallaroo_runtime.worker.spec import WorkerSpec

SHOW_BYTES = 4 << 20  # bytes of states in one request to a worker


def shown_states(application: Application, states: Iterable[Any]) -> Iterator[tuple[str, bytes, str]]:
    """Yield name, key and value of states, the value as JSON. Start workers for this, and stop them at the end.

    Args:
        application: Application that has the states.
        states: Rows with the columns of `LEFT`.

    Raises:
        RunError: An error of a worker, e.g. W416 if it cannot show states.
    """
    rows = list(states)
    for stage in compile_topology(application.topology, shuffle_partitions=1).stages:
        ports = state_ports([stage])
        mine = [(ports[row["name"]], row) for row in rows if row["name"] in ports]
        if mine:
            names = {port: name for name, port in ports.items()}
            yield from ((names[port], key, value) for port, key, value in _of_stage(application, stage, mine))


def _of_stage(
    application: Application, stage: Stage, states: Sequence[tuple[int, Any]]
) -> Iterator[tuple[int, bytes, str]]:
    """Yield port, key and value of the states of one stage, the value as JSON."""
    spec = _spec(application, stage.worker)
    try:
        with closing(WorkerShower(ensure_worker(spec).target, stage.worker)) as shower:
            for part in grouped(states, lambda each: len(each[1]["value"]), SHOW_BYTES):
                logs = {(port, bytes(row["key"])): (row["encoding"], bytes(row["value"])) for port, row in part}
                shown = shower.show(stage_message(stage), entries_of(logs))
                yield from ((port, key, json.dumps(value)) for (port, key), value in shown.items())
    finally:
        stop_worker(spec)


def _spec(application: Application, worker: str) -> WorkerSpec:
    """Return the specification of a worker that runs next to this process, not in Spark's tasks."""
    folder, archive = Path(tempfile.mkdtemp(dir=temporary_directory())), application.archive
    spec = WorkerSpec.of(application.topology, application.topology.worker(worker))
    spec = replace(spec, run=folder.name, processes=1, log_directory=str(folder))
    if archive is None:
        return spec
    unpack(archive.path, archive.digest, folder / "archive", spec.interpreter())
    return spec.unpacked(folder / "archive")
