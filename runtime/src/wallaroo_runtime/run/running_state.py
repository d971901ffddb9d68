"""The states of an active run, which the run's Spark reads and its workers show."""

from collections.abc import Mapping
from typing import Any

from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.plan.stage import Plan
from wallaroo_runtime.run.state_query import StateQuery

ANSWER_S = 20.0


def states_of_run(
    session: Any, checkpoint: Checkpoint, plan: Plan, targets: Mapping[str, str], *, asks: bool
) -> StateQuery:
    """Return the object that answers questions about the states of a run.

    Args:
        session: Spark session that runs the query.
        targets: gRPC target of each worker's first endpoint, by name of the worker.
        asks: Whether workers are on this machine, so that they can be asked; if not, states are shown as their bytes.
    """
    # Imported late: at this point the run has already imported most of what these modules import.
    from wallaroo_runtime.spark.state_store.reader import SparkLogs
    from wallaroo_runtime.worker.show import WorkerShower

    showers: dict[str, WorkerShower] = {}

    def shower(name: str) -> WorkerShower:
        if name not in showers:
            showers[name] = WorkerShower(targets[name], name, ANSWER_S)
        return showers[name]

    logs = SparkLogs(session, checkpoint.directory, plan, checkpoint.manifest.spark)
    return StateQuery(plan, logs, shower if asks else None, checkpoint.directory)
