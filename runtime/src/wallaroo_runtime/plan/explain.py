"""Explains a plan to people: stages, steps, shuffles, buckets, and how Spark runs them."""

from collections.abc import Iterator

from wallaroo_runtime.errors import count
from wallaroo_runtime.plan.plan import Node, NodeKind, Plan, Stage
from wallaroo_runtime.topology.model import (
    KafkaSink,
    KafkaSource,
    Part,
    Sink,
    Source,
    SparkSource,
    Step,
    TcpSink,
    Topology,
)

_VERBS = {
    NodeKind.SOURCE: "decode",
    NodeKind.COMPUTATION: "compute",
    NodeKind.COMPUTATION_MULTI: "compute*",
    NodeKind.STATE_COMPUTATION: "state",
    NodeKind.STATE_COMPUTATION_MULTI: "state*",
    NodeKind.KEY: "key",
    NodeKind.SINK: "encode",
    NodeKind.KEY_BY: "key by",
    NodeKind.COLLECT: "collect",
    NodeKind.WINDOW: "window",
    NodeKind.SEND: "send",
    NodeKind.RECEIVE: "receive",
    NodeKind.OUTPUT: "output",
}
_PARTS = {NodeKind.KEY: "/partition"}


def explain(plan: Plan, topology: Topology) -> str:
    """Describe a plan in plain text.

    Args:
        plan: The result of `compile_topology`.
        topology: The topology of the plan, for names and the user's symbols.

    Returns:
        Lines for people, with a newline at the end. Equal arguments give equal lines on all machines.
    """
    return "\n".join(_lines(plan, topology)) + "\n"


def _lines(plan: Plan, topology: Topology) -> Iterator[str]:
    yield f'application "{plan.application}"'
    yield f"{count(len(plan.stages), 'stage')}, {count(len(plan.levels) - 1, 'shuffle')}"
    if len(plan.levels) > 1:
        partitions = count(plan.shuffle_partitions, "shuffle partition")
        yield f"{plan.bucket_count} buckets of keys over {partitions}"
    parts = {part.path: part for part in topology.parts()}
    for level, stages in enumerate(plan.levels):
        for stage in stages:
            yield ""
            yield f"stage {stage.id} on worker {stage.worker}" + (f", after shuffle {level}" if level else "")
            for node in stage.nodes:
                yield from _node_lines(node, stage, parts[node.path], topology)
    if any(_VERBS[node.kind].endswith("*") for stage in plan.stages for node in stage.nodes):
        yield ""
        yield "steps marked * give any number of messages for each one"
    yield ""
    yield "on Spark"
    yield from _spark_lines(plan, topology)


def _node_lines(node: Node, stage: Stage, part: Part, topology: Topology) -> Iterator[str]:
    crosses = node.kind in (NodeKind.SEND, NodeKind.RECEIVE)
    component = None if crosses else topology.component(part.worker, node.path + _PARTS.get(node.kind, ""))
    symbol = f" ({component.symbol})" if component else ""
    more = ""
    if node.component:
        symbol = f' (component "{node.component}")'
    if crosses:
        more = f" as {node.codec or 'its own form'}"
    elif isinstance(part, Step) and part.state is not None and node.kind is not NodeKind.KEY:
        more = f', state "{part.state.name}"{_window_text(part)}{_time_text(part)}{_visits_text(part)}'
    elif node.timestamps:
        more = " with timestamps"
    if isinstance(part, Source | Sink) and part.kind != "tcp" and not crosses:
        more = f", {part.kind} {part.place}".rstrip()
    reads = f" <- {', '.join(node.inputs)}" if node.inputs else ""
    port = f" [port {node.port}]" if node in (*stage.entries, *stage.exits) else ""
    label = f"for {node.path}" if node.kind is NodeKind.KEY else node.path
    yield f'  {_VERBS[node.kind]:<9}{label} "{part.name}"{symbol}{more}{port}{reads}'


def _window_text(step: Step) -> str:
    window = step.window
    if window is None:
        return ""
    if window.kind == "count":
        return f", every {count(window.count, 'message')}"
    if window.kind == "session":
        return f", sessions with gaps of {window.gap_ms} ms"
    return f", {window.range_ms} ms every {window.slide_ms} ms"


def _time_text(step: Step) -> str:
    ttl = f", ttl {step.state.ttl_ms} ms" if step.state and step.state.ttl_ms else ""
    names = ", ".join(f'"{name}"' for name in step.timers)
    return f"{ttl}{f', timers {names}' if names else ''}{f' by {step.time} time' if step.time else ''}"


def _visits_text(step: Step) -> str:
    names = ", ".join(f'"{name}"' for name in step.visits)
    return f", visits {names}" if names else ""


def _spark_lines(plan: Plan, topology: Topology) -> Iterator[str]:
    if not all(isinstance(source, KafkaSource | SparkSource) for source in topology.sources()):
        yield "  source             ranges of the journal, read by the tasks themselves"
    elif any(step.window or step.visits or step.time for step in topology.state_steps()):
        yield "  source             ticks and visits, from the journal"
    for source in topology.sources():
        if isinstance(source, KafkaSource) and source.table:
            yield f"  source             kafka {source.place}, a table: read whole, before the rest of a micro-batch"
        elif isinstance(source, KafkaSource | SparkSource):
            yield f"  source             {source.kind} {source.place}: rows are packed into frames by the tasks"
    for level, stages in enumerate(plan.levels):
        names = ", ".join(stage.id for stage in stages)
        if level == 0:
            yield f"  mapPartitions      {names}: calls of the worker, each of up to 1 MiB of messages"
            continue
        yield f"  repartition        by bucket into {plan.shuffle_partitions} partitions"
        yield f"  transformWithState {names}: version and log of each bucket in RocksDB"
    yield "  sink               publishes the staged output to the outbox, once for each batch"
    for sink in topology.sinks():
        if isinstance(sink, KafkaSink):
            how = " in transactions, each record exactly once" if sink.exactly_once else ", each record at least once"
            yield f"  egress             writes kafka {sink.place}{how}"
        elif not isinstance(sink, TcpSink):
            yield f"                     writes what is staged for {sink.kind} {sink.place}"
