"""Runs drawn applications in Spark's real-time mode, with rows, parts and micro-batches as short as they can be.

`python -m model.in_realtime NUMBER COUNT AFTER` runs so many drawn ones, windows after windows, and as many with times.
"""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from hypothesis import assume

from model.application import Application
from model.emitted import plan_of, topology_of
from model.journal import journaled
from model.on_spark import BATCHES, kill_workers, wait
from model.outcome import Published, delivered
from model.search import search
from model.worker import Nursery
from support.spark_topology import options_in
from wallaroo_runtime.peer.configuration import egress_request, gateway_request
from wallaroo_runtime.peer.local import LocalPeer
from wallaroo_runtime.peer.peer import Request
from wallaroo_runtime.peer.remote import driver_identity
from wallaroo_runtime.plan.realtime import BUCKETS, PARTITIONS, obstacles
from wallaroo_runtime.run.peers import LOCAL
from wallaroo_runtime.service.driver import announce
from wallaroo_runtime.spark.realtime import settings
from wallaroo_runtime.spark.realtime.query import start_realtime
from wallaroo_runtime.spark.realtime.settings import Services, session_settings
from wallaroo_runtime.spark.session import create_session

IDLE_MS, FLUSH_MS = 200, 20
AFTER, TIMED = ("range", "range"), ("timed",)  # windows after windows, and steps whose states have times


def run_in_realtime(session: Any, application: Application, nursery: Nursery, directory: Path) -> Published:
    """Run an application that real-time mode does not refuse, and return what its outbox holds."""
    shape = replace(application.settings, shuffle_partitions=PARTITIONS, buckets_per_partition=BUCKETS // PARTITIONS)
    application = replace(application, settings=shape)
    topology = topology_of(application, nursery)
    plan = plan_of(application, topology)
    assume(not obstacles(plan, topology))
    borders = journaled(application, topology, plan, directory / "journal")
    end = borders[-1][1]
    (directory / "logs").mkdir()
    journal = gateway_request(topology, plan, ())
    journal.tick_ms = 0  # the journal has all ticks that there are
    with (
        _attached("egress", directory, topology.name, egress_request(topology, plan)) as egress,
        _attached("gateway", directory, topology.name, journal) as gateway,
        patch.multiple(
            settings,
            BATCH_BYTES=end // min(BATCHES, len(borders)) + 1,
            ROW_BYTES=shape.chunk_bytes,
            IDLE_MS=IDLE_MS,
            FLUSH_MS=FLUSH_MS,
        ),
    ):
        options = options_in(directory, cache_bytes=shape.cache_bytes, tell_visits=gateway.tell_visits)
        services = Services(str(directory / "journal"), gateway.service, egress.service)
        query = start_realtime(session, plan, topology, options, lambda targets: services)
        try:
            if shape.fault:
                kill_workers(query)
            wait(query, end)
        finally:
            query.stop()
        return delivered(directory, topology, plan)


@contextmanager
def _attached(name: str, directory: Path, application: str, request: Request) -> Iterator[LocalPeer]:
    """Let a service of this machine do what is asked; receivers of sinks are away, so the outbox keeps all."""
    announce(directory)
    peer = LocalPeer(name, directory)
    with ExitStack() as stack:
        stack.callback(_kill, peer)
        peer.launch()
        request.driver.CopyFrom(driver_identity(application, LOCAL, "", fresh=False))
        peer.attach(request)
        yield peer


def _kill(peer: LocalPeer) -> None:
    """End a service at once: the egress would wait for its receivers."""
    if peer._child is not None:
        peer._child.kill()
    peer.stop()


def main() -> None:
    """Search for an application that gives something else than the reference."""
    number, count, after = map(int, sys.argv[1:])
    nursery = Nursery()
    with TemporaryDirectory() as logs:
        settings = session_settings({})
        session = create_session(
            "model", master="local[2]", shuffle_partitions=1, directory=Path(logs), settings=settings
        )

        def run(application: Application, directory: Path) -> Published:
            return run_in_realtime(session, application, nursery, directory)

        assert search(run, count, number=number, shrinks=False) >= count
        for begins in (AFTER, TIMED):
            assert search(run, after, number=number, shrinks=False, begins=begins) >= after
        session.stop()
    nursery.close()


if __name__ == "__main__":
    main()
