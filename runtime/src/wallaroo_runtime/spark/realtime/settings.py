"""What Spark and the operators get to know of a query in real-time mode."""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from wallaroo.message.handshake import CAPABILITIES, PROTOCOLS
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.plan.block import blocks_of
from wallaroo_runtime.plan.crossing import CONTROL_PORTS
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.spark.machine.temporary import temporary_directory
from wallaroo_runtime.topology.error_policy import ErrorPolicy
from wallaroo_runtime.topology.model import KafkaSource
from wallaroo_runtime.worker.spec import WorkerSpec

BATCH_S = 300  # a batch without input; one with input ends after BATCH_MS, after so many bytes, or in an idle moment
BATCH_SETTING = "spark.wallaroo.realtime.batchSeconds"  # for measurements and tests, which need borders of batches
# Of the state of micro-batches the version is 1. A session of version 2 reads both.
STATE_FORMAT, STATES_WITH_IDS = "spark.sql.streaming.stateStore.checkpointFormatVersion", "2"
BATCH_BYTES = 256 << 20
BATCH_MS, IDLE_MS = 60_000, 10_000
FLUSH_MS, FLUSH_BYTES = 1000, 8 << 20  # after which open calls end: what a dead worker costs at most
ROW_BYTES = 256 << 10
_numbers = count()


def session_settings(given: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of Spark in real-time mode, besides the usual ones.

    Args:
        given: Those of the user, which win.
    """
    own = {
        STATE_FORMAT: STATES_WITH_IDS,
        "spark.sql.streaming.realTimeMode.allowlistCheck": "false",  # our sink is not on Spark's list
        "spark.sql.streaming.realTimeMode.minBatchDuration": "100",
        # Else a query without state writes its offsets from another thread, and refuses our sink.
        "spark.sql.streaming.realTimeMode.asyncProgressTrackingByDefault.enabled": "false",
        "spark.sql.streaming.pollingDelay": "10ms",
    }
    return own | dict(given)


@dataclass(frozen=True, slots=True)
class Services:
    """Where gateway and egress of a run serve.

    Attributes:
        journal: Directory of the journal; empty: the gateway sends it.
        gateway: With its epoch and the id of the journal; its address is a Unix socket, or HOST:PORT of a remote one.
        egress: Likewise.
    """

    journal: str
    gateway: Service
    egress: Service

    @property
    def remote(self) -> tuple[Service, ...]:
        """Those of them that are remote."""
        return tuple(service for service in (self.gateway, self.egress) if not is_local(service))


def is_local(service: Service) -> bool:
    """Return whether a service is a process of this machine, which serves on a Unix socket.

    Example:
        >>> [is_local(Service("egress", address)) for address in ("/tmp/c/egress/socket", "localhost:7101")]
        [True, False]
    """
    return service.address.startswith("/")


@dataclass(frozen=True, slots=True)
class RunningWorker:
    """A worker that was started.

    Attributes:
        spec: Says what it is.
        directory: Where its supervisor listens.
    """

    spec: WorkerSpec
    directory: Path


def operator_settings(
    plan: Plan,
    workers: Mapping[str, RunningWorker],
    services: Services,
    policy: ErrorPolicy,
    topics: Iterable[KafkaSource] = (),
) -> str:
    """Return what the operators get to know, as JSON; Spark shows it, so that no token is in it.

    Args:
        plan: Has no obstacle to real-time mode.
        workers: By name.
        services: Of the run.
        policy: Which dead letters stop the query.
        topics: Those that are read.
    """
    return json.dumps(
        {
            "levels": list(_levels(plan, workers)),
            "controls": [port for port in CONTROL_PORTS if any(port in stage.entry_ports for stage in plan.stages)],
            "topics": {plan.ports[each.path]: {"source": each.name, "topic": each.topic} for each in topics},
            "fails": policy.fails,
            "fails_at": dict(policy.parts),
            "journal": services.journal,
            "journal_id": services.gateway.store,
            "gateway": _short(services.gateway),
            "gateway_epoch": services.gateway.epoch,
            "egress": _short(services.egress),
            "egress_epoch": services.egress.epoch,
            "flush_ms": FLUSH_MS,
            "row_bytes": ROW_BYTES,
            "batch_bytes": BATCH_BYTES,
            "batch_ms": BATCH_MS,
            "idle_ms": IDLE_MS,
        }
    )


def _levels(plan: Plan, workers: Mapping[str, RunningWorker]) -> Iterator[list[dict[str, Any]]]:
    blocks = blocks_of(plan)
    for level in plan.levels:
        yield [_stage(plan, stage, workers[stage.worker], blocks[stage.id]) for stage in level]


def _stage(plan: Plan, stage: Stage, worker: RunningWorker, block: int) -> dict[str, Any]:
    spec = worker.spec
    init = pb.InitRequest(
        protocol_min=PROTOCOLS[0], protocol_max=PROTOCOLS[1], capabilities=CAPABILITIES, application=spec.application,
        interface_hash=spec.interface_hash,
    )  # fmt: skip
    return {
        "worker": spec.name,
        "worker_directory": str(worker.directory),
        "deadline_ms": spec.deadline_ms,
        "init": _text(init),
        "opening": _text(pb.Opening(application=plan.application, stage=stage_message(stage))),
        "has_state": stage.has_state,
        "entries": sorted(stage.entry_ports),
        "block": block,
        "flush_bytes": FLUSH_BYTES,
    }


def _text(message: pb.Opening | pb.InitRequest) -> str:
    return base64.b64encode(message.SerializeToString()).decode()


def _short(service: Service) -> str:
    """Return where a service serves; a path of its socket that is short, however long that of the checkpoint is."""
    if not is_local(service):
        return service.address
    path = Path(service.address)
    link = temporary_directory() / f"{service.kind}-{next(_numbers)}"  # Java keeps connections by path
    link.symlink_to(path.parent)
    return str(link / path.name)
