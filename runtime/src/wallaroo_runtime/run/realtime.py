"""What is different in a run in real-time mode: refusals, the shape of its plan, the start of its query."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.peer.limits import Bounds
from wallaroo_runtime.peer.remote import RemoteOptions
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.realtime import BUCKETS, MICROBATCH, PARTITIONS, obstacles
from wallaroo_runtime.plan.stage import Plan
from wallaroo_runtime.run.peers import Peers
from wallaroo_runtime.spark.machine.master import cluster_of
from wallaroo_runtime.topology.model import Topology

if TYPE_CHECKING:
    from wallaroo_runtime.spark.options import QueryOptions
    from wallaroo_runtime.spark.realtime.query import RealTimeQuery

BUCKETS_PER_PARTITION = BUCKETS // PARTITIONS


def check_realtime(topology: Topology, *, master: str, remote: RemoteOptions) -> None:
    """Refuse what real-time mode cannot run, before anything is started.

    Args:
        topology: Of the application.
        master: Spark master.
        remote: Which services are remote.

    Raises:
        RunError: R755, with every obstacle.
    """
    from wallaroo_runtime.spark.machine.jar import check_spark

    plan = compile_topology(topology, shuffle_partitions=PARTITIONS, buckets_per_partition=BUCKETS_PER_PARTITION)
    found = [*_of_services(remote), *obstacles(plan, topology, cluster=cluster_of(master))]
    if found:
        raise RunError(found, USAGE)
    check_spark()


def _of_services(remote: RemoteOptions) -> list[Diagnostic]:
    if len(remote.gateways) <= 1:
        return []
    what = f"{len(remote.gateways)} gateways: messages of all sources have one order, that of one journal"
    return [Diagnostic.of("R755", what=what, fix=f"give one --gateway HOST:PORT for all sources; or {MICROBATCH}")]


def realtime_bounds(bounds: Bounds) -> Bounds:
    """Return the bounds of a run: a journal that is made safe every 50 ms would be the slowest part of all."""
    return replace(bounds, journal_fsync="batch") if bounds.journal_fsync == Bounds().journal_fsync else bounds


def start_in_realtime(
    session: Any, plan: Plan, topology: Topology, options: "QueryOptions", peers: Peers
) -> "RealTimeQuery":
    """Start the query.

    Raises:
        RunError: The worker does not start or must not be used.
    """
    from wallaroo_runtime.spark.realtime.query import start_realtime
    from wallaroo_runtime.spark.realtime.settings import Services

    gateway, egress = peers.gateways[0], peers.egress

    def services(targets: Mapping[str, str]) -> Services:
        if peers.waits_for_worker:  # its epoch, which the query needs, begins with its configuration
            peers.serve_sources(targets)
        return Services(options.journals[0].directory, gateway.service, egress.service)

    return start_realtime(session, plan, topology, options, services, gateway.commit, gateway.tell_done)
