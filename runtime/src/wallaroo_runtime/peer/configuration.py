"""What gateway and egress of an application are started with."""

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.peer.limits import Bounds
from wallaroo_runtime.peer.process import POLL_S, STOP_DEADLINE_S, Process
from wallaroo_runtime.plan.stage import Plan
from wallaroo_runtime.service.credential import is_loopback
from wallaroo_runtime.system.process import process_start_time
from wallaroo_runtime.topology.model import (
    ConnectorSink,
    ConnectorSource,
    GeneratorSource,
    KafkaSink,
    Source,
    TcpSource,
    Topology,
)

FSYNC_INTERVAL_MS = 50
LEAST_TICK_MS, MOST_TICK_MS = 100, 1000
Listener = TcpSource | ConnectorSource
GatewaySource = TcpSource | ConnectorSource | GeneratorSource
UNSET = Bounds()
NAMES = ("gateway", "egress")


def needs_worker(source: Source) -> bool:
    """Say whether a source's messages can only be found or made by a worker, so that it must run first."""
    return isinstance(source, GeneratorSource) or (isinstance(source, TcpSource) and source.framing.kind == "worker")


def gateway_sources(topology: Topology) -> Iterator[GatewaySource]:
    """Yield the sources that a gateway serves."""
    return (source for source in topology.sources() if isinstance(source, GatewaySource))


def listeners(topology: Topology) -> Iterator[Listener]:
    """Yield the sources for which a gateway listens."""
    return (source for source in topology.sources() if isinstance(source, Listener))


def open_sources(topology: Topology) -> Iterator[Diagnostic]:
    """Yield an R646 for each source that listens where other machines may reach it."""
    for source in listeners(topology):
        if not is_loopback(source.host):
            yield Diagnostic.of("R646", source=source.name, address=source.place)


def gateway_of(
    topology: Topology, plan: Plan, checkpoint: Path, targets: Mapping[str, str], bounds: Bounds = UNSET
) -> Process:
    """Return the gateway of an application, not started.

    Args:
        topology: Has the sources.
        plan: Has their ports.
        checkpoint: The checkpoint directory.
        targets: Name of a worker to its gRPC target, for sources that a worker cuts or makes.
        bounds: Of the journal.
    """
    sources = [
        {
            "port": plan.ports[source.path],
            "path": source.path,
            "name": source.name,
            "host": source.host,
            "tcp_port": source.port,
            "framing": _framing(source, targets),
            "max_message_bytes": source.max_message_bytes,
        }
        for source in listeners(topology)
    ]
    generators = [
        {"port": plan.ports[source.path], "path": source.path, "name": source.name, "target": targets[source.worker]}
        for source in topology.sources()
        if isinstance(source, GeneratorSource)
    ]
    config = {
        "journal": str(checkpoint / "journal"),
        "sources": sources,
        "generators": generators,
        "tick_ms": tick_interval_ms(topology),
        "backlog_bytes": bounds.journal_bytes,
        "fsync": bounds.journal_fsync,
        "fsync_interval_ms": FSYNC_INTERVAL_MS,
    }
    return Process("gateway", "wallaroo_runtime.gateway", checkpoint, config)


def tick_interval_ms(topology: Topology) -> int:
    """Return how often windows need ticks: twice in the shortest slide or flush; 0: there are no windows."""
    windows = [step.window for step in topology.steps() if step.window is not None]
    spans = [window.slide_ms if window.kind == "range" else window.flush_ms for window in windows]
    return max(LEAST_TICK_MS, min(MOST_TICK_MS, min(spans) // 2)) if spans else 0


def _framing(source: Listener, targets: Mapping[str, str]) -> dict[str, str | int]:
    if isinstance(source, ConnectorSource):
        return connector_framing(source)
    framing = source.framing
    if framing.kind != "worker":
        return {"kind": framing.kind}
    return {"kind": "worker", "header_bytes": framing.header_bytes, "target": targets[source.worker]}


def connector_framing(source: ConnectorSource) -> dict[str, str | int]:
    """Return what a gateway must know of a connector source."""
    return {
        "kind": source.kind,
        "cookie": source.cookie,
        "max_credits": source.max_credits,
        "refill_credits": source.refill_credits,
    }


def egress_of(topology: Topology, plan: Plan, checkpoint: Path, bounds: Bounds = UNSET) -> Process:
    """Return the egress of an application, not started."""
    sinks: list[dict[str, Any]] = [
        {"port": plan.ports[sink.path], "name": sink.name, "host": sink.host, "tcp_port": sink.port}
        | ({"cookie": sink.cookie} if isinstance(sink, ConnectorSink) else {})
        for sink in topology.tcp_sinks()
    ]
    sinks += [_transactional(sink, topology.name, plan.ports[sink.path]) for sink in topology.transactional_sinks()]
    config = {"outbox": str(checkpoint / "outbox"), "sinks": sinks, "resend_bytes": bounds.resend_bytes}
    return Process("egress", "wallaroo_runtime.egress", checkpoint, config)


def _transactional(sink: KafkaSink, application: str, port: int) -> dict[str, Any]:
    host, _, tcp_port = sink.brokers[0].rpartition(":")
    target = {"application": application, "brokers": list(sink.brokers), "topic": sink.topic}
    return {
        "port": port,
        "name": sink.name,
        "host": host.strip("[]"),
        "tcp_port": int(tcp_port),
        "kafka": {**target, "options": dict(sink.options)},
    }


def stop_left_behind(checkpoint: Path) -> None:
    """End gateway and egress of an earlier driver, before their files are removed."""
    for name in NAMES:
        try:
            status = json.loads((checkpoint / f"{name}.json").read_bytes())
            pid, started = int(status["pid"]), int(status["start_time"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        for number in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + STOP_DEADLINE_S
            if process_start_time(pid) == started:
                os.kill(pid, number)
            while process_start_time(pid) == started and time.monotonic() < end:
                time.sleep(POLL_S)
