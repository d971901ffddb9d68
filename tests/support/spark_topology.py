"""Topologies and options for queries of the session `spark`."""

import json
from pathlib import Path
from typing import Any

from wallaroo_runtime.spark.options import QueryOptions
from wallaroo_runtime.spark.query import RunningQuery
from wallaroo_runtime.storage.place import JournalPlace, OutputPlace
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.topology.worker import Worker

PLAIN_WORKER = str(Path(__file__).parents[2] / "runtime" / "tests" / "plain_worker.py")


def options_in(directory: Path, **options: Any) -> QueryOptions:
    """Return the options of a query with everything in one checkpoint directory, in which `journal` exists."""
    journals = (JournalPlace(str(directory / "journal")),)
    return QueryOptions(str(directory / "spark"), directory / "logs", journals, OutputPlace.on(directory), **options)


def recent_reports(query: RunningQuery) -> list[dict[str, Any]]:
    """Return Spark's own reports of the latest micro-batches of a query."""
    return [json.loads(report.json) for report in query._query.recentProgress]


def topology(*args: str, deadline_ms: int = 60_000) -> Topology:
    """Return what `start_query` must know of the worker."""
    worker = Worker(
        "main", "plain", "0", 1, ("{python}", PLAIN_WORKER), "/", args, deadline_ms, "sha256:" + "0" * 64, "", ()
    )
    return Topology("counts", (worker,), (), {})
