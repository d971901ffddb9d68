"""The real-time mode of a run: its checks, its layout, and the start of its query."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.checkpoint.checkpoint import Checkpoint
from wallaroo_runtime.checkpoint.manifest import REALTIME
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.peer.configuration import Starts
from wallaroo_runtime.peer.limits import Bounds
from wallaroo_runtime.peer.remote import RemoteOptions
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.plan.realtime import BUCKETS, MICROBATCH, PARTITIONS, obstacles
from wallaroo_runtime.run.mode import MicroBatchMode
from wallaroo_runtime.run.options import RunOptions, SparkOptions
from wallaroo_runtime.run.peers import Peers
from wallaroo_runtime.run.snapshot import Reporter
from wallaroo_runtime.run.topics import kafka_starts
from wallaroo_runtime.spark.machine.master import cluster_of, cores
from wallaroo_runtime.topology.model import Topology

if TYPE_CHECKING:
    from wallaroo_runtime.run.mode import Query
    from wallaroo_runtime.spark.options import QueryOptions


def check_realtime(topology: Topology, *, master: str, remote: RemoteOptions) -> None:
    """Refuse an application that real-time mode cannot run, before anything is started.

    Args:
        topology: Topology of the application.
        master: Address of the Spark master.
        remote: The remote services.

    Raises:
        RunError: R755, with one finding for each obstacle.
    """
    from wallaroo_runtime.spark.machine.jar import check_spark

    plan = compile_topology(topology, shuffle_partitions=PARTITIONS, buckets_per_partition=BUCKETS)
    findings = [*_of_services(remote), *obstacles(plan, topology, cluster=cluster_of(master))]
    if findings:
        raise RunError(findings, USAGE)
    check_spark()


def _of_services(remote: RemoteOptions) -> list[Diagnostic]:
    if len(remote.gateways) <= 1:
        return []
    what = f"{len(remote.gateways)} gateways: one gateway must order the messages of all sources in its journal"
    return [Diagnostic.of("R755", what=what, fix=f"give one --gateway HOST:PORT for all sources; or {MICROBATCH}")]


class RealTimeMode(MicroBatchMode):
    """Spark's real-time mode: the gateway reads topics, and batches last for a minute."""

    reads_kafka = False
    quiet_look_s = 0.5

    def check(self, options: RunOptions, topology: Topology) -> None:
        """Refuse an application or options that the mode does not support."""
        check_realtime(topology, master=options.spark.master, remote=options.remote)

    def bounds(self, bounds: Bounds) -> Bounds:
        """Return the limits; by default the journal is synced at once, since syncs every 50 ms would delay messages."""
        return replace(bounds, journal_fsync=bounds.journal_fsync or "batch")

    def layout(self, spark: SparkOptions) -> tuple[int, int]:
        """Return the numbers of partitions and buckets, which are fixed in this mode."""
        return PARTITIONS, BUCKETS

    def settings(self, chosen: Mapping[str, str]) -> dict[str, str]:
        """Return the chosen settings, and the settings that the mode needs."""
        from wallaroo_runtime.spark.realtime.settings import session_settings  # late: pyspark takes a second to import

        return session_settings(dict(chosen))

    def starts(self, topology: Topology, checkpoint: Checkpoint, options: RunOptions, reporter: Reporter) -> Starts:
        """Create and check topics. Return where gateways begin to read them, and where they may end."""
        super().starts(topology, checkpoint, options, reporter)
        reset, to_ends = options.checkpoint.topic_reset, options.available_now
        return kafka_starts(topology, checkpoint.topic_ids, reset, to_ends=to_ends)

    def is_counted(self, topology: Topology) -> bool:
        """Return True, because gateways take all messages."""
        return True

    def start(self, session: Any, plan: Plan, topology: Topology, options: "QueryOptions", peers: Peers) -> "Query":
        """Start the query, with the addresses of gateway and egress."""
        from wallaroo_runtime.spark.realtime.query import start_realtime
        from wallaroo_runtime.spark.realtime.settings import Services

        gateway, egress = peers.gateways[0], peers.egress

        def services(targets: Mapping[str, str]) -> Services:
            if peers.waits_for_worker:  # the query needs the gateway's epoch, which this call gets
                peers.serve_sources(targets)
            return Services(options.journals[0].directory, gateway.service, egress.service)

        return start_realtime(session, plan, topology, options, services)

    def has_room(self, master: str) -> bool:
        """Return whether Spark has a second thread for reading states, because the query never releases the first."""
        return cores(master) != 1


def chosen_mode(options: RunOptions) -> MicroBatchMode:
    """Return the mode that the options name. A mode is chosen only here."""
    return RealTimeMode() if options.mode == REALTIME else MicroBatchMode()
