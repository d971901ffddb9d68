"""What Spark and the operators get to know of a query in real-time mode."""

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from wallaroo.handshake import CAPABILITIES, PROTOCOLS
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.lowering.crossing import CONTROL_PORTS
from wallaroo_runtime.lowering.error_policy import ErrorPolicy
from wallaroo_runtime.lowering.stage_message import stage_message
from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.spark.temporary import temporary_directory
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


def session_settings(jar: Path) -> dict[str, str]:
    """Return the settings of Spark that real-time mode needs besides the usual ones.

    Args:
        jar: With the operators.
    """
    return {
        "spark.driver.extraClassPath": str(jar),
        STATE_FORMAT: STATES_WITH_IDS,
        "spark.sql.streaming.realTimeMode.allowlistCheck": "false",  # our sink is not on Spark's list
        "spark.sql.streaming.realTimeMode.minBatchDuration": "100",
        # Else a query without state writes its offsets from another thread, and refuses our sink.
        "spark.sql.streaming.realTimeMode.asyncProgressTrackingByDefault.enabled": "false",
        "spark.sql.streaming.pollingDelay": "10ms",
    }


@dataclass(frozen=True, slots=True)
class Services:
    """Where gateway and egress of this machine serve.

    Attributes:
        journal: Directory of the journal.
        gateway: Unix socket of the gateway.
        gateway_epoch: What the gateway answered when the driver attached.
        egress: Unix socket of the egress.
        egress_epoch: Likewise.
    """

    journal: str
    gateway: str
    gateway_epoch: int
    egress: str
    egress_epoch: int


@dataclass(frozen=True, slots=True)
class RunningWorker:
    """A worker that was started.

    Attributes:
        spec: Says what it is.
        directory: Where its supervisor listens.
    """

    spec: WorkerSpec
    directory: Path


def operator_settings(plan: Plan, workers: Mapping[str, RunningWorker], services: Services, policy: ErrorPolicy) -> str:
    """Return what the operators get to know, as JSON.

    Args:
        plan: Has no obstacle to real-time mode.
        workers: By name.
        services: Of the run.
        policy: Which dead letters stop the query.
    """
    return json.dumps(
        {
            "levels": list(_levels(plan, workers)),
            "controls": [port for port in CONTROL_PORTS if any(port in stage.entry_ports for stage in plan.stages)],
            "fails": policy.fails,
            "fails_at": dict(policy.parts),
            "journal": services.journal,
            "gateway": _short("gateway", services.gateway),
            "gateway_epoch": services.gateway_epoch,
            "egress": _short("egress", services.egress),
            "egress_epoch": services.egress_epoch,
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


def blocks_of(plan: Plan) -> dict[str, int]:
    """Return the number of the first block of origins of each stage.

    Those with state have the first blocks of origins, in their order: Spark's store has their states under these
    numbers, which must not change when other stages come or go. One without state has a block for each entry and each
    stage that may send there, which have blocks before it.
    """
    blocks = {stage.id: number for number, stage in enumerate(stage for stage in plan.stages if stage.has_state)}
    free = len(blocks)
    for stage in plan.stages:
        if not stage.has_state:
            blocks[stage.id] = free
            free += len(stage.entries) * (free + 1) if stage is not plan.levels[0][0] else 0
    return blocks


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


def _short(name: str, address: str) -> str:
    """Return a path of a service's socket that is short, however long that of the checkpoint is."""
    link = temporary_directory() / f"{name}-{next(_numbers)}"  # Java keeps connections by path
    link.symlink_to(Path(address).parent)
    return str(link / Path(address).name)
