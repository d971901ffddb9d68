"""Runs a drawn application as a query of a Spark session that many applications share."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from model.application import Application
from model.emitted import plan_of, topology_of
from model.journal import journaled
from model.outcome import Published, published
from model.worker import Nursery
from support.spark_topology import options_in
from wallaroo_runtime.spark.query import RunningQuery, start_query
from wallaroo_runtime.spark.realtime.query import RealTimeQuery
from wallaroo_runtime.worker import control

SECONDS = 180.0
BATCHES = 3  # at most; each costs Spark a good part of a second


def run_on_spark(session: Any, application: Application, nursery: Nursery, directory: Path) -> Published:
    """Run an application on Spark, and return what its outbox holds."""
    topology = topology_of(application, nursery)
    plan = plan_of(application, topology)
    borders = journaled(application, topology, plan, directory / "journal")
    end, settings = borders[-1][1], application.settings
    options = options_in(
        directory,
        max_batch_bytes=end // min(BATCHES, len(borders)) + 1,
        chunk_bytes=settings.chunk_bytes,
        cache_bytes=settings.cache_bytes,
    )
    query = start_query(session, plan, topology, options)
    try:
        if settings.fault:
            kill_workers(query)
        wait(query, end)
    finally:
        query.stop()
    return published(directory, topology, plan)


def kill_workers(query: RunningQuery | RealTimeQuery) -> None:
    """Kill a process of each worker."""
    for target in query.targets.values():
        directory = Path(target.removeprefix("unix:")).parent
        os.kill(int(control.ask(directory, {"op": "wait"}, SECONDS)["pid"]), signal.SIGKILL)


def wait(query: RunningQuery | RealTimeQuery, end: int) -> None:
    """Wait until the journal is processed and committed up to an offset."""
    deadline = time.monotonic() + SECONDS
    while query.progress().offset < end:
        error = query.exception()
        assert error is None, error
        assert time.monotonic() < deadline, query.progress()
        time.sleep(0.02)
