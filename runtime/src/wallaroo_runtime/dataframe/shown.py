"""Shows states in a form for people: a worker decodes them, as for `wallaroo state`."""

import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from wallaroo_runtime.dataframe.state import state_ports
from wallaroo_runtime.peer.gateway_workers import HostedWorkers
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
    with ExitStack() as stack:
        workers = stack.enter_context(closing(HostedWorkers(application.topology, folder, application.archive)))
        for stage in compile_topology(application.topology, shuffle_partitions=1).stages:
            names = {port: name for name, port in state_ports([stage]).items()}
            mine = [(port, row) for port, name in names.items() for row in rows if row["name"] == name]
            if not mine:
                continue
            shower = stack.enter_context(closing(WorkerShower(workers.target(stage.worker), stage.worker)))
            for part in grouped(mine, lambda each: len(each[1]["value"]), SHOW_BYTES):
                logs = {(port, bytes(row["key"])): (row["encoding"], bytes(row["value"])) for port, row in part}
                shown = shower.show(stage_message(stage), entries_of(logs))
                yield from ((names[port], key, json.dumps(value)) for (port, key), value in shown.items())
