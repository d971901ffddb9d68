"""Feeds the monitor of a run with its numbers and findings, and starts the monitor's server."""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.monitor.access import TOKEN_FILE
from wallaroo_runtime.monitor.board import Board, Sample
from wallaroo_runtime.monitor.resource import ProcessFamily, resident_bytes
from wallaroo_runtime.monitor.route import StateRoutes
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.run.options import RunOptions
from wallaroo_runtime.run.peers import Peers
from wallaroo_runtime.run.snapshot import Reporter, Snapshot
from wallaroo_runtime.run.topic_watch import TopicWatch
from wallaroo_runtime.service.driver import announce
from wallaroo_runtime.spark.batch_report import BatchReport, LiveReport
from wallaroo_runtime.spark.state_store.state_query import StateQuery
from wallaroo_runtime.system.process import alive
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker import control

if TYPE_CHECKING:
    from wallaroo_runtime.run.mode import Query

ASK_S = 0.5
PROCESSES_S = 5.0


class MonitorFeed:
    """Wraps a `Reporter`: passes all calls on to it, and gives the numbers and findings of a run to the monitor.

    Args:
        reporter: Gets all calls, too.
        board: The data that the monitor shows.
        states: The monitor's answers about states, which need the reader of states from `attach`.
    """

    def __init__(self, reporter: Reporter, board: Board, topology: Topology, states: StateRoutes) -> None:
        self._reporter, self._board, self._states = reporter, board, states
        self.note, self.output, self.doing = reporter.note, reporter.output, reporter.doing
        self.event, self.initialized = reporter.event, reporter.initialized
        self._languages = {worker.name: worker.language for worker in topology.workers}
        self._peers: Peers | None = None
        self._query: Query | None = None
        self._topics: TopicWatch | None = None
        self._looked_at = -PROCESSES_S
        self._workers: list[dict[str, Any]] = []
        self._processes: list[dict[str, Any]] = []

    def tell_batch(self, report: BatchReport) -> None:
        """Give the report of a micro-batch to the monitor."""
        self._board.tell_batch(report)

    def tell_live(self, report: LiveReport) -> None:
        """Give the report of a query in real-time mode to the monitor."""
        self._board.tell_live(report)

    def begin(self, peers: Peers) -> None:
        """Store the gateways and the egress. Their present counts are subtracted from the counts of this run."""
        self._peers = peers
        self._board.begin(peers.egress.status())

    def attach(self, query: "Query", states: StateQuery | None) -> None:
        """Store the started query, and `states`, which reads its states (None if Spark has no free thread for this)."""
        self._query, self._states.states = query, states
        self._states.reason = "Spark runs one task at a time, and real-time mode has that one"
        self._states.fix = "start it with --master local[2] or more"

    def watch(self, topics: TopicWatch) -> None:
        """Store what knows the outages of topics that Spark reads."""
        self._topics = topics

    def look(self) -> None:
        """Read the progress of the sinks, to compute latencies: the more often, the more exactly."""
        if self._peers is not None:
            self._board.look(self._peers.egress.status())

    def warn(self, finding: Diagnostic) -> None:
        """Pass a finding on to the wrapped reporter, and to the monitor."""
        self._board.warn(finding)
        self._reporter.warn(finding)

    def progress(self, snapshot: Snapshot) -> None:
        """Pass the numbers on to the wrapped reporter, and to the monitor."""
        self._reporter.progress(snapshot)
        self.look()
        assert self._peers is not None and self._query is not None
        gateways = [gateway.status() for gateway in self._peers.gateways]
        egress = self._peers.egress.status()
        self._measure(gateways, egress)
        processed = self._query.progress().offsets
        sample = Sample(
            snapshot.to_json(),
            gateways,
            egress,
            self._query.latest(),
            list(self._workers),
            list(self._processes),
            processed,
            self._topics.outages if self._topics is not None else {},
        )
        self._board.update(snapshot.state, sample)

    def _measure(self, gateways: list[dict[str, Any]], egress: Mapping[str, Any]) -> None:
        """Measure the memory of the run's processes on this machine.

        Measures every five seconds, and when workers have started or ended.
        """
        assert self._query is not None
        now, shown = time.monotonic(), {worker["name"] for worker in self._workers}
        if now - self._looked_at < PROCESSES_S and shown == set(self._query.targets):
            return
        self._looked_at, family, own = now, ProcessFamily(), os.getpid()
        self._workers = list(self._workers_of(self._query.targets, family))
        java = family.named(own, "java")
        self._processes = [
            {"name": "driver", "pid": own, "memory_bytes": resident_bytes(own)},
            {"name": "spark", "pid": min(java, default=0), "memory_bytes": sum(map(family.resident_bytes, java))},
        ]
        names = ["gateway", *(f"gateway {number}" for number in range(2, len(gateways) + 1)), "egress"]
        for name, status in zip(names, (*gateways, egress), strict=True):
            if (process := alive(status)) is not None:
                memory = resident_bytes(process.pid)
                self._processes.append({"name": name, "pid": process.pid, "memory_bytes": memory})

    def _workers_of(self, targets: Mapping[str, str], family: ProcessFamily) -> Iterator[dict[str, Any]]:
        """Yield a description of each worker, with the state that its supervisor reports."""
        for name, target in targets.items():
            reply: dict[str, Any] = {}
            if (directory := control.directory_of(target)) is not None:
                with contextlib.suppress(OSError):
                    reply = control.ask(directory, {"op": "status"}, ASK_S)
            pid = int(reply.get("pid") or 0)
            yield {
                "name": name,
                "language": self._languages.get(name, ""),
                "state": reply.get("state", "unknown"),
                "pid": pid,
                "restarts": max(0, int(reply.get("generation") or 1) - 1),
                "memory_bytes": family.resident_bytes(pid) if pid else 0,
            }


def start_monitor(
    options: RunOptions, reporter: Reporter, topology: Topology, plan: Plan, checkpoint: Path, stack: ExitStack
) -> MonitorFeed:
    """Serve the monitor of a run until `stack` ends, and notify the user of the address.

    Args:
        options: Options of the run, with the address.
        checkpoint: Directory of the run.

    Raises:
        RunError: R714 if the monitor cannot listen at the address.
    """
    from wallaroo_runtime.monitor.server import MonitorServer  # imported late: only monitors need it

    board = Board(topology, plan, checkpoint)
    server = MonitorServer(board, options.monitor, options.monitor_token)
    announce(checkpoint, monitor=server.url)
    server.start()
    stack.callback(server.stop)
    file = options.spark.conf.get(TOKEN_FILE, "")  # a token that stays the same must not be in a journal of the system
    reporter.note(f"monitor at {server.page}; its token is in {file}" if file else f"monitor at {server.url}")
    return MonitorFeed(reporter, board, topology, server.routes.states)
