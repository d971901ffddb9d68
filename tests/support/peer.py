"""Local gateways and egresses, as a driver starts them."""

import os
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.configuration import egress_request, gateway_request, gateway_sources
from wallaroo_runtime.peer.local import LocalPeer
from wallaroo_runtime.peer.peer import Request
from wallaroo_runtime.peer.remote import driver_identity
from wallaroo_runtime.plan import compile_topology
from wallaroo_runtime.plan.plan import Plan
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.topology.model import Topology


def attached(peer: LocalPeer, request: Request, driver: str = "") -> LocalPeer:
    """Launch a peer and attach to it, as this process or as another driver."""
    request.driver.CopyFrom(driver_identity("app", "local", "", fresh=False))
    request.driver.id = driver or request.driver.id
    peer.launch()
    try:
        peer.attach(request)
    except RunError:
        peer.stop()
        raise
    return peer


def gateway(
    checkpoint: Path,
    topology: Topology,
    plan: Plan | None = None,
    targets: Mapping[str, str] | None = None,
    driver: str = "",
) -> LocalPeer:
    """Return the gateway of an application; it listens."""
    plan = plan or compile_topology(topology, shuffle_partitions=1)
    request = gateway_request(topology, plan, gateway_sources(topology), targets=targets)
    return attached(LocalPeer("gateway", checkpoint), request, driver)


def egress(checkpoint: Path, topology: Topology, driver: str = "") -> LocalPeer:
    """Return the egress of an application."""
    request = egress_request(topology, compile_topology(topology, shuffle_partitions=1))
    return attached(LocalPeer("egress", checkpoint), request, driver)


def service_of(peer: LocalPeer, link: Path) -> Service:
    """Return how to call a peer, at a short address that stays: a link, which is made."""
    folder, name = os.path.split(peer.service.address)
    link.symlink_to(folder)
    return replace(peer.service, address=f"unix:{link}/{name}")


def kill(peer: LocalPeer) -> int:
    """Kill a child of this process and wait until it is dead, without reaping it."""
    pid = int(peer.status()["pid"])
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid
