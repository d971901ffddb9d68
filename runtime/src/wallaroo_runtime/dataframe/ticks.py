"""Chooses the ticks of an application that `apply` runs on DataFrames.

Ticks are signals that make time pass for windows, timers and times to live.

A stream has ticks of a clock, or of the watermarks of its DataFrames. A batch has ticks after all rows.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from wallaroo_runtime.plan import Node, NodeKind, Plan
from wallaroo_runtime.spark.row import refused
from wallaroo_runtime.spark.source.record import analysed
from wallaroo_runtime.topology.model import (
    TIMER_MS,
    ConnectorSource,
    KafkaSource,
    SparkSource,
    Step,
    Topology,
    place_of,
)

CLOCK, WATERMARKS, END = "clock", "watermarks", "end"
CALL = "the call of `apply`"
_CARRYING = {NodeKind.KEY, NodeKind.SEND, NodeKind.RECEIVE}
LEAST_MS, MOST_MS = 1000, 10_000  # time between two ticks of a clock: each is a micro-batch
DELAY = "spark.watermarkDelayMs"  # where Spark keeps the delay of a column's watermark
_TIMESTAMPED = 'DataFrameSourceConfig(..., timestamp="at"), in Go DataFrameSource[T]().Timestamp("at")'


@dataclass(frozen=True, slots=True)
class Ticks:
    """The kind of ticks (signals that make time pass) that a query gets.

    Attributes:
        kind: `clock`, `watermarks`, or `end` for ticks after all rows of a batch; empty if there are no ticks.
        interval_ms: Time between two ticks of the clock.
        delays: For each source with a watermark: milliseconds from the watermark to the time of the latest row.
        is_of_data: Whether the times of the ticks are event times.
    """

    kind: str = ""
    interval_ms: int = 0
    delays: Mapping[str, int] = field(default_factory=dict)
    is_of_data: bool = False

    def timed_plan(self, plan: Plan, *, has_times: bool) -> Plan:
        """Return a plan whose windows and timed steps take the time from the ticks, if the ticks have event times.

        Args:
            has_times: Whether all frames carry times.
        """
        if not self.is_of_data:
            return plan

        def timed(node: Node) -> Node:
            carries = node.timestamps or has_times and node.kind in _CARRYING
            return replace(node, timestamps=carries, watermarks=node.kind is NodeKind.WINDOW or node.is_timed)

        levels = ([replace(stage, nodes=tuple(map(timed, stage.nodes))) for stage in level] for level in plan.levels)
        return replace(plan, levels=tuple(map(tuple, levels)))


def steps_in_time(plan: Plan, topology: Topology, *, is_in_time: bool) -> frozenset[int]:
    """Return the ports of the steps after windows or timers. `EventOrder.java` sorts the messages for them by time.

    Windows and timers emit some results late, so these steps would not get messages in the order of event time.

    Args:
        is_in_time: Whether rows come in the order of event time. If not, only messages for windows of time are sorted.
    """
    windows = {step.path for step in topology.steps() if step.window is not None and step.window.time}
    later, states, nodes = set[str](), set[str](), [node for stage in plan.stages for node in stage.nodes]
    for node in nodes:
        if node.state and node.path in later:
            states.add(node.state)
        if node.kind is NodeKind.WINDOW or node.is_timed or not later.isdisjoint(node.inputs):
            later.add(node.path)  # a node that sends messages to a step has the path of the step
    return frozenset(node.port for node in nodes if node.state in states and (is_in_time or node.path in windows))


def ticks_of(topology: Topology, sources: Sequence[SparkSource], inputs: Mapping[str, DataFrame]) -> Ticks:
    """Choose the ticks for an application and its inputs: none if no step needs time to pass.

    Args:
        sources: The sources of the topology, as sources of rows.
        inputs: DataFrames by the name of their source.

    Raises:
        RunError: R716 if the inputs lack the time that a step needs.
    """
    passing = [each for each in map(_passing, topology.steps()) if each is not None]
    if not passing:
        return Ticks()
    is_stream = any(frame.isStreaming for frame in inputs.values())
    times = {each.time for each in passing} - {""}  # windows of a number of messages need no time
    by_arrival = next((each.what for each in passing if each.time == "ingest"), None)
    is_of_data = times == {"event"}
    if is_of_data:
        _check_times(topology, sources, inputs)
    if not is_stream:
        if by_arrival is not None:
            reason = f"{by_arrival} by the time of arrival, which rows of a batch do not have"
            fix = f"give each source event time: {_TIMESTAMPED}"
            raise refused(CALL, reason, fix)
        return Ticks(END, is_of_data=True)
    delays = _delays(sources, inputs) if is_of_data else {}
    if delays:
        return Ticks(WATERMARKS, delays=delays, is_of_data=True)
    shortest = min(each.step_ms for each in passing)
    return Ticks(CLOCK, interval_ms=max(LEAST_MS, min(MOST_MS, shortest // 2)))


class _Passing(NamedTuple):
    what: str
    time: str
    step_ms: int


def _passing(step: Step) -> _Passing | None:
    """Return the reason why a step needs time to pass, with the interval; None if the step does not depend on time."""
    if step.window is not None:
        return _Passing(f'step "{step.name}" has windows', step.window.time, step.window.step_ms)
    if not step.time or step.state is None:
        return None
    what, step_ms = ("timers", TIMER_MS) if step.timers else ("a ttl", step.state.ttl_ms)
    return _Passing(f'step "{step.name}" has {what}', step.time, step_ms)


def _check_times(topology: Topology, sources: Sequence[SparkSource], inputs: Mapping[str, DataFrame]) -> None:
    """Refuse an input without a column `timestamp` if its source (Kafka or a connector) gives messages times."""
    for declared, source in zip(topology.sources(), sources, strict=True):
        if isinstance(declared, KafkaSource | ConnectorSource) and not source.timestamp:
            reason = "it has no column `timestamp`, which the steps need as event time"
            columns = inputs[source.name].schema.fields
            time = next((each.name for each in columns if isinstance(each.dataType, TimestampType)), "at")
            fix = f'add it, e.g. .withColumn("timestamp", F.col("{time}"))'
            raise refused(place_of(source), reason, fix)


def _delays(sources: Sequence[SparkSource], inputs: Mapping[str, DataFrame]) -> dict[str, int]:
    """Return the delay of each input's watermark; empty if none has a watermark. Refuse inputs if only some do."""
    delays, without = dict[str, int](), list[SparkSource]()
    for source in sources:
        rows = inputs[source.name]
        delay = None
        if source.timestamp:
            with analysed(place_of(source), source.timestamp):
                delay = rows.select(F.expr(source.timestamp)).schema.fields[0].metadata.get(DELAY)
        others = [field.name for field in rows.schema.fields if DELAY in field.metadata]
        if delay is not None:
            delays[source.name] = int(delay)
        elif others and source.timestamp:
            reason = f'its watermark is on the column "{others[0]}"; event time is `{source.timestamp}`'
            fix = "give the watermark to the column of event time, or declare the column of the watermark as event time"
            raise refused(place_of(source), reason, fix)
        elif source.timestamp:
            without.append(source)
    if delays and without:
        names = ", ".join(source.name for source in without)
        reason = f"{', '.join(delays)} has a watermark, {names} has none"
        column = without[0].timestamp.strip("`")
        fix = f'give each input one, e.g. {without[0].name}={without[0].name}.withWatermark("{column}", "10 minutes")'
        raise refused(CALL, reason, fix)
    return delays
