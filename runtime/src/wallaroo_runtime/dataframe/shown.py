"""States for people: a worker says what they are, as for `wallaroo state`."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from wallaroo_runtime.archive.archive import unpack
from wallaroo_runtime.dataframe.state import state_ports
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.program.application import Application
from wallaroo_runtime.spark.machine.temporary import temporary_directory
from wallaroo_runtime.storage.state_log import entries_of, grouped
from wallaroo_runtime.worker.discovery import ensure_worker, stop_worker
from wallaroo_runtime.worker.show import WorkerShower
from wallaroo_runtime.worker.spec import WorkerSpec

SHOW_BYTES = 4 << 20  # of states that a worker is asked for at once


def shown_states(application: Application, states: Iterable[Any]) -> Iterator[tuple[str, bytes, str]]:
    """Yield name, key and, as JSON, value of states. Workers that this process starts for it end with the iteration.

    Args:
        application: Whose states they are.
        states: Rows as `LEFT` has them.

    Raises:
        RunError: What a worker reports, e.g. W416: it cannot show states.
    """
    topology, rows = application.topology, list(states)
    folder = Path(tempfile.mkdtemp(dir=temporary_directory()))
    for stage in compile_topology(topology, shuffle_partitions=1).stages:
        ports = state_ports([stage])
        mine = [(ports[row["name"]], row) for row in rows if row["name"] in ports]
        if not mine:
            continue
        names = {port: name for name, port in ports.items()}
        spec = WorkerSpec.of(topology, topology.worker(stage.worker))
        spec = replace(spec, run=folder.name, processes=1, log_directory=str(folder))
        if application.archive is not None:
            unpack(application.archive.path, application.archive.digest, folder / "archive", spec.interpreter())
            spec = spec.unpacked(folder / "archive")
        try:
            with closing(WorkerShower(ensure_worker(spec).target, stage.worker)) as shower:
                for part in grouped(mine, lambda each: len(each[1]["value"]), SHOW_BYTES):
                    logs = {(port, bytes(row["key"])): (row["encoding"], bytes(row["value"])) for port, row in part}
                    for (port, key), value in shower.show(stage_message(stage), entries_of(logs)).items():
                        yield names[port], key, json.dumps(value)
        finally:
            stop_worker(spec)
