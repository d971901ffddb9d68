"""What makes time pass for the windows, timers and ttl of an application between DataFrames.

A stream has ticks of a clock, or of the watermarks of its DataFrames. A batch ends with a tick that is later than all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import TimestampType

from wallaroo_runtime.plan import NodeKind, Plan
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
LEAST_MS, MOST_MS = 1000, 10_000  # from one tick of a clock to the next: each is a micro-batch
DELAY = "spark.watermarkDelayMs"  # where Spark keeps the delay of a column's watermark
_TIMESTAMPED = 'DataFrameSourceConfig(..., timestamp="at"), in Go DataFrameSource[T]().Timestamp("at")'


@dataclass(frozen=True, slots=True)
class Ticks:
    """The ticks of a query.

    Attributes:
        kind: `clock`, `watermarks`, or `end`: all that is there has come; empty: there are none.
        interval_ms: From one tick of the clock to the next.
        delays: Of `watermarks`: how much earlier than its latest row the watermark of a source is, in milliseconds.
        is_of_data: Whether their times are those of the data.
    """

    kind: str = ""
    interval_ms: int = 0
    delays: Mapping[str, int] | None = None
    is_of_data: bool = False

    def settings(self) -> dict[str, Any]:
        """Return what `Ticks.java` has of them."""
        return {"kind": self.kind, "interval_ms": self.interval_ms, "delays": dict(self.delays or {})}

    def planned(self, plan: Plan) -> Plan:
        """Return a plan whose windows and timed steps take these ticks."""
        if not self.is_of_data:
            return plan
        levels = tuple(
            tuple(
                replace(
                    stage,
                    nodes=tuple(
                        replace(node, watermarks=True) if node.kind is NodeKind.WINDOW or node.is_timed else node
                        for node in stage.nodes
                    ),
                )
                for stage in level
            )
            for level in plan.levels
        )
        return replace(plan, levels=levels)


def ticks_of(
    topology: Topology, sources: Sequence[SparkSource], inputs: Mapping[str, DataFrame], *, gives_states: bool
) -> Ticks:
    """Return what makes time pass.

    Args:
        sources: Those of the topology, as sources of rows.
        inputs: By the name of their source.
        gives_states: Whether a batch gives its states: what is open is one, then.

    Raises:
        RunError: R716, the inputs give no such time.
    """
    passing = [each for each in map(_passing, topology.steps()) if each is not None]
    if not passing:
        return Ticks()
    is_stream = any(frame.isStreaming for frame in inputs.values())
    times = {each.time for each in passing} - {""}  # windows of a number of messages have none
    by_arrival = next((each.what for each in passing if each.time == "ingest"), None)
    is_of_data = times == {"event"}
    if is_of_data:
        _check_times(topology, sources, inputs)
    if not is_stream:
        if by_arrival is not None:
            reason = f"{by_arrival} by the time of arrival, which rows of a batch do not have"
            fix = f"give each source event time: {_TIMESTAMPED}"
            raise refused(CALL, reason, fix)
        return Ticks("" if gives_states else END, is_of_data=True)
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
    """Return what of a step needs time to pass; None: nothing does."""
    if step.window is not None:
        return _Passing(f'step "{step.name}" has windows', step.window.time, step.window.step_ms)
    if not step.time or step.state is None:
        return None
    what, step_ms = ("timers", TIMER_MS) if step.timers else ("a ttl", step.state.ttl_ms)
    return _Passing(f'step "{step.name}" has {what}', step.time, step_ms)


def _check_times(topology: Topology, sources: Sequence[SparkSource], inputs: Mapping[str, DataFrame]) -> None:
    """Refuse rows that lack the time that their source gives otherwise."""
    for declared, source in zip(topology.sources(), sources, strict=True):
        if isinstance(declared, KafkaSource | ConnectorSource) and not source.timestamp:
            reason = "it has no column `timestamp`, by which time passes"
            columns = inputs[source.name].schema.fields
            time = next((each.name for each in columns if isinstance(each.dataType, TimestampType)), "at")
            fix = f'add it, e.g. .withColumn("timestamp", F.col("{time}"))'
            raise refused(place_of(source), reason, fix)


def _delays(sources: Sequence[SparkSource], inputs: Mapping[str, DataFrame]) -> dict[str, int]:
    """Return the delays of the watermarks, of all inputs with event time or of none."""
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
            fix = "give the watermark to the column of event time, or declare the other one as it"
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
