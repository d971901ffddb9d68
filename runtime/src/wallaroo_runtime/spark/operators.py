"""Makes the settings of the operators in Java, which run a plan: the plan and the options of its query, as JSON."""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from wallaroo.message.frame import CONTROL_PORTS
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host import trace
from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.plan.block import blocks_of
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.spark.machine.jar import java_class
from wallaroo_runtime.spark.options import QueryOptions
from wallaroo_runtime.spark.source.record import RecordSource, precede_all
from wallaroo_runtime.spark.worker_start import RunningWorker
from wallaroo_runtime.storage.place import JournalPlace
from wallaroo_runtime.worker.endpoint import init_request

FLUSH_BYTES = 8 << 20  # an open call ends after so many bytes, which are repeated if the worker dies


def microbatch_settings(
    plan: Plan,
    workers: Mapping[str, RunningWorker],
    options: QueryOptions,
    parts: int,
    wait_s: float,
    records: Sequence[RecordSource],
) -> str:
    """Return the settings of the operators in Java for a query of micro-batches, as JSON.

    They have no token, because Spark shows them in its plans and logs.

    Args:
        workers: The workers by name.
        parts: The largest number of tasks that share a micro-batch of a journal.
        wait_s: How long Java watches the journal's files for the next message before Spark looks again.
        records: The sources that Spark reads.
    """
    return json.dumps(
        {
            **task_settings(plan, workers, records, trace.sampled_below(plan.application)),
            "journals": [_journal(journal) for journal in options.journals],
            "staging": options.output.staging,
            "egress": service.address if (service := options.output.service) else "",
            "egress_epoch": service.epoch if service else 0,
            "row_bytes": options.chunk_bytes,
            "batch_bytes": options.max_batch_bytes,
            "parts": parts,
            "wait_ms": int(wait_s * 1000),
        }
    )


def task_settings(
    plan: Plan, workers: Mapping[str, RunningWorker], records: Sequence[RecordSource], sampled_below: int = 0
) -> dict[str, Any]:
    """Return the settings that tasks need to run stages, in a query of `wallaroo run` or between DataFrames.

    For the arguments see `microbatch_settings` and `plan_settings`.
    """
    return {
        **plan_settings(plan, workers, sampled_below),
        "topics": {},
        "timed_topics": [],
        "records": [each.settings(plan) for each in records],
        "controls_precede": precede_all(plan, records),
        "targets": plan.targets,
        "later_ports": [sorted(ports) for ports in plan.later_ports],
    }


def _journal(journal: JournalPlace) -> dict[str, Any]:
    if journal.service is None:
        return {"directory": journal.directory}
    return {"gateway": journal.service.address, "epoch": journal.service.epoch}


def put_credentials(session: SparkSession, services: Iterable[Service | None]) -> None:
    """Give the operators the credentials of remote services. The settings have none, because Spark shows them."""
    credentials: Any = java_class(session, "rpc.Credentials")
    for service in filter(None, services):
        credentials.put(service.address, service.token, service.authority)


def plan_settings(plan: Plan, workers: Mapping[str, RunningWorker], sampled_below: int = 0) -> dict[str, Any]:
    """Return the settings of the operators that both modes need: the stages with their workers.

    Args:
        sampled_below: Only traces whose ids are below this number are reported, see `trace.sampled_below`.
    """
    return {
        "levels": list(_levels(plan, workers, sampled_below)),
        "controls": [port for port in CONTROL_PORTS if any(port in stage.entry_ports for stage in plan.stages)],
    }


def _levels(plan: Plan, workers: Mapping[str, RunningWorker], sampled_below: int) -> Iterator[list[dict[str, Any]]]:
    blocks = blocks_of(plan)
    for level in plan.levels:
        yield [_stage(plan, stage, workers[stage.worker], blocks[stage.id], sampled_below) for stage in level]


def _stage(plan: Plan, stage: Stage, worker: RunningWorker, block: int, sampled_below: int) -> dict[str, Any]:
    spec = worker.spec
    return {
        "worker": spec.name,
        "worker_directory": worker.directory,
        "start": worker.request,
        "deadline_ms": spec.deadline_ms,
        "init": _text(init_request(spec)),
        "opening": _text(pb.Opening(application=plan.application, stage=stage_message(stage))),
        "has_state": stage.has_state,
        "entries": sorted(stage.entry_ports),
        "block": block,
        "flush_bytes": FLUSH_BYTES,
        "sampled_below": sampled_below - (sampled_below >> 63 << 64),  # as a number of Java, which has a sign
    }


def _text(message: pb.Opening | pb.InitRequest) -> str:
    return base64.b64encode(message.SerializeToString()).decode()
