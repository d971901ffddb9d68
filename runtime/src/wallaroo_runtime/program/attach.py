"""Lets a run use workers that run already, under a debugger or as part of a larger program: `--attach`."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from wallaroo.diagnostic.diagnostic import closest
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.spec import PYTHON_PLACEHOLDER

STAND_IN = "wallaroo_runtime.worker.attached_worker"
# A user may look at a message in a debugger for long, so no call counts as hung.
DEADLINE_MS = 24 * 60 * 60 * 1000


def attached(topology: Topology, sockets: Mapping[str, Path]) -> Topology:
    """Return the topology with new commands for workers that run already: they connect to the running workers.

    Args:
        sockets: Unix sockets of such workers on this machine, by name of the worker.

    Raises:
        RunError: R608 if the topology has no worker with a name.
    """
    names = [worker.name for worker in topology.workers]
    for name in sockets:
        if name not in names:
            close = closest(name, names)
            fix = f"did you mean {close}?" if close else f"name one of {', '.join(names)}"
            raise RunError.of("R608", USAGE, reason=f'--attach: the application has no worker "{name}"', fix=fix)
    workers = tuple(
        replace(
            worker,
            command=(PYTHON_PLACEHOLDER, "-m", STAND_IN, worker.name, str(sockets[worker.name])),
            directory="/",
            call_deadline_ms=DEADLINE_MS,
        )
        if worker.name in sockets
        else worker
        for worker in topology.workers
    )
    return replace(topology, workers=workers)
