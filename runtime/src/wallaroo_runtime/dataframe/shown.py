"""Shows states in a form for people: a worker decodes them, as for `wallaroo state`."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from wallaroo_runtime.dataframe.state import state_ports
from wallaroo_runtime.peer.gateway_workers import HostedWorkers
from wallaroo_runtime.plan import Stage
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.program.application import Application
from wallaroo_runtime.spark.machine.temporary import temporary_directory
from wallaroo_runtime.storage.state_log import entries_of, grouped
from wallaroo_runtime.worker.idempotent_call import WorkerShower

SHOW_BYTES = 4 << 20  # bytes of states in one request to a worker


def shown_states(application: Application, states: Iterable[Any]) -> Iterator[tuple[str, bytes, str]]:
    """Yield name, key and value of states, the value as JSON. Start workers for this, and stop them at the end.

    Args:
        application: Application that has the states.
        states: Rows with the columns of `LEFT`.

    Raises:
        RunError: An error of a worker, e.g. W416 if it cannot show states.
    """
    rows, folder = list(states), Path(tempfile.mkdtemp(dir=temporary_directory()))
    with closing(HostedWorkers(application.topology, folder, application.archive)) as workers:
        for stage in compile_topology(application.topology, shuffle_partitions=1).stages:
            ports = state_ports([stage])
            mine = [(ports[row["name"]], row) for row in rows if row["name"] in ports]
            if mine:
                names = {port: name for name, port in ports.items()}
                target = workers.target(stage.worker)
                yield from ((names[port], key, value) for port, key, value in _of_stage(target, stage, mine))


def _of_stage(target: str, stage: Stage, states: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, bytes, str]]:
    """Yield port, key and value of the states of one stage, the value as JSON."""
    with closing(WorkerShower(target, stage.worker)) as shower:
        for part in grouped(states, lambda each: len(each[1]["value"]), SHOW_BYTES):
            logs = {(port, bytes(row["key"])): (row["encoding"], bytes(row["value"])) for port, row in part}
            shown = shower.show(stage_message(stage), entries_of(logs))
            yield from ((port, key, json.dumps(value)) for (port, key), value in shown.items())
