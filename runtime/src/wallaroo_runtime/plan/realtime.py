"""Finds the obstacles to Spark's real-time mode in an application."""

from collections.abc import Iterator

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.message.kafka_record import PREFIX
from wallaroo_runtime.plan.plan import NodeKind, Plan
from wallaroo_runtime.topology.model import GeneratorSource, KafkaSource, Part, Sink, Source, Topology

PARTITIONS, BUCKETS = 1, 4  # one task does all work, without a shuffle; a call for each bucket, at the same time
MICROBATCH = "leave out --mode"
LOCAL = f"{MICROBATCH}: micro-batches run there; or give --master local[*], without --deploy-mode, to use this machine"
_SERVED = {"tcp", "generator", "kafka"}


def obstacles(plan: Plan, topology: Topology, *, cluster: str = "") -> list[Diagnostic]:
    """Return a finding (R755) for each obstacle; empty if the application can run in real-time mode.

    Args:
        plan: The plan of the topology, with any number of partitions.
        topology: The topology of the application.
        cluster: Spark master of a cluster; empty for a local one.
    """
    return [*_of_cluster(cluster), *_of_plan(plan), *_of_parts(topology)]


def _of_cluster(cluster: str) -> Iterator[Diagnostic]:
    if cluster:
        yield Diagnostic.of("R755", what=f"the cluster {cluster}; it needs a local Spark master", fix=LOCAL)


def _obstacle(what: str, part: Part | None = None) -> Diagnostic:
    return Diagnostic.of("R755", what=what, fix=MICROBATCH, pointer=f"/{part.path}" if part else "")


def _of_plan(plan: Plan) -> Iterator[Diagnostic]:
    readers = [stage for stage in plan.levels[0] if any(node.kind is NodeKind.SOURCE for node in stage.entries)]
    if len(readers) > 1:
        workers = ", ".join(sorted(stage.worker for stage in readers))
        yield _obstacle(f"sources of {len(readers)} workers, {workers}; one worker must have them all")


def _of_parts(topology: Topology) -> Iterator[Diagnostic]:
    part: Source | Sink
    for part in topology.sources():
        if part.kind not in _SERVED and not isinstance(part, GeneratorSource):
            yield _obstacle(f'the {part.kind} source "{part.name}"', part)
        elif isinstance(part, KafkaSource) and (own := [name for name in part.options if not name.startswith(PREFIX)]):
            yield _obstacle(
                f'option {own[0]} of source "{part.name}", an option of Spark, which does not read it', part
            )
    for part in topology.sinks():
        if part.kind not in ("tcp", "kafka"):
            yield _obstacle(f'the {part.kind} sink "{part.name}"', part)


def in_realtime(plan: Plan, topology: Topology, *, cluster: str = "") -> list[str]:
    """Return lines that describe how Spark runs the plan in real-time mode, or the obstacles. See `obstacles`."""
    findings = obstacles(plan, topology, cluster=cluster)
    if findings:
        places = (f" at {finding.pointer}" if finding.pointer else "" for finding in findings)
        return [
            "refused:",
            *(f"  {finding.message}{pointer}" for finding, pointer in zip(findings, places, strict=True)),
        ]
    first, *rest = plan.levels
    names = ", ".join(stage.id for stage in first)
    lines = ["source             the journal, as soon as it has something", f"mapPartitions      {names}"]
    if rest:
        names = "; then ".join(", ".join(stage.id for stage in level) for level in rest)
        lines.append(f"transformWithState {names}: {BUCKETS} buckets, calls that stay open")
    return [*lines, "sink               the egress, which drops what it has already", "all of it is one task"]
