"""Applies an application to DataFrames, and returns one DataFrame with all output."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from wallaroo.message.spark_format import DATAFRAME
from wallaroo_runtime.dataframe.state import facts_of, first_states, state_ports
from wallaroo_runtime.dataframe.ticks import CALL, steps_in_time, ticks_of
from wallaroo_runtime.errors import TOPOLOGY, RunError
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.counter import COUNTERS, MESSAGES
from wallaroo_runtime.program.application import Application
from wallaroo_runtime.spark.machine.jar import java_class
from wallaroo_runtime.spark.machine.temporary import temporary_directory
from wallaroo_runtime.spark.operators import task_settings
from wallaroo_runtime.spark.options import QueryOptions
from wallaroo_runtime.spark.row import field_of, refused
from wallaroo_runtime.spark.source.record import IN_TIME, RecordSource, selected
from wallaroo_runtime.spark.worker_start import running_in_tasks, start_foreign, worker_specs
from wallaroo_runtime.storage.place import OutputPlace
from wallaroo_runtime.topology.error_policy import ErrorPolicy
from wallaroo_runtime.topology.model import GeneratorSource, Sink, Source, SparkSource, Topology, has_records, place_of

COLUMN = "counts"  # column of `OutputRows.java`
PARTITIONS = "spark.sql.shuffle.partitions"
LETTERS = "dead_letters"  # parameter of `Steps.each`
PARAMETERS = {"self", "order_by", "states", "gives_states", "accept_changed", "observation"}  # of `Steps.apply_all`


def check_topology(topology: Topology) -> None:
    """Refuse a topology with a source, step or sink that cannot work between DataFrames.

    Raises:
        RunError: P303 with every finding.
    """
    findings, names = [], set[str]()
    for part in topology.parts():
        what = fix = ""
        if isinstance(part, Sink):
            if part.name in {*names, LETTERS}:
                what = f'a {"second " if part.name in names else ""}sink "{part.name}" between DataFrames'
                fix = 'give it a name: DataFrameSinkConfig(..., name="a"), DataFrameSink[T]().Named("a") in Go'
            names.add(part.name)
        if isinstance(part, Source) and part.name in PARAMETERS:
            what = f'a source "{part.name}" between DataFrames'
            fix = "give it another name, since `apply` has a parameter of this name"
        elif isinstance(part, GeneratorSource):
            what, fix = "a generator between DataFrames", "make its messages a DataFrame, and declare a source for it"
        elif isinstance(part, Source | Sink) and has_records(part):
            end = "Source" if isinstance(part, Source) else "Sink"
            what = f"a {end.lower()} of whole records between DataFrames"
            fix = f"declare a {end.lower()} of values, or DataFrame{end}Config"
        elif getattr(part, "visits", ()):
            what = "a visit between DataFrames"
            fix = "declare a source of rows in its place, which the step reads, or use `wallaroo run`"
        if what:
            findings += RunError.of("P303", TOPOLOGY, path=part.path, what=what, fix=fix).diagnostics
    if findings:
        raise RunError(findings, TOPOLOGY)


@dataclass(frozen=True, slots=True)
class Call:
    """The arguments of a call of `apply` or `apply_all`, and the loaded application.

    Attributes:
        application: The application. Its archive has the workers; without one they are installed on every machine.
        inputs: DataFrames by the name of their source.
        policy: Policy that decides which dead letters end the query.
        way_out: Advice to the user for going on after a dead letter that has ended the query.
        order_by: Column of all inputs that gives the order of each key's messages; empty for the order of arrival.
        states: States with which a new query begins, with the columns `STATE_COLUMNS`; None if it begins without any.
        joins_rows: Whether each row has several messages of the sink, as an array of JSON, which Spark parses faster.
        gives_states: Whether the result has a row for each state at the end of a batch, too.
        accept_changed: Whether a changed program may lose fields of states.
        observation: Name of the metrics with the counts of all sources, steps and sinks, or the object of PySpark that
            has these counts after a batch; empty for no counts.
    """

    application: Application
    inputs: Mapping[str, DataFrame]
    policy: ErrorPolicy
    way_out: str = 'declare on_error "dead_letter", which makes it a row'
    order_by: str = ""
    states: DataFrame | None = None
    joins_rows: bool = False
    gives_states: bool = False
    accept_changed: bool = False
    observation: Observation | str = ""


def applied(call: Call) -> DataFrame:
    """Return the output of an application for its inputs, as rows with the columns of `OutputRows.java`.

    Raises:
        RunError: P303 if the application cannot be applied; R716 if an input or the states do not fit.
    """
    session, topology = next(iter(call.inputs.values())).sparkSession, call.application.topology
    sources = [as_rows(source, call.inputs[source.name]) for source in topology.sources()]
    ticks = ticks_of(topology, sources, call.inputs)
    plan = compile_topology(topology, shuffle_partitions=int(str(session.conf.get(PARTITIONS))))
    is_in_time = _is_in_time(call, sources)
    in_time = steps_in_time(plan, topology, is_in_time=is_in_time) if ticks.is_of_data else frozenset[int]()
    plan = ticks.timed_plan(plan, has_times=bool(in_time))
    logs = temporary_directory() / "logs"
    logs.mkdir(0o700, exist_ok=True)
    options = QueryOptions("", logs, (), OutputPlace(str(logs)), archive=call.application.archive)
    specs = {  # a program that is changed while the session runs gets new workers
        name: replace(spec, run=f"{spec.run}-{topology.worker(name).code_hash}")
        for name, spec in worker_specs(session, topology, options).items()
    }
    workers = running_in_tasks(session, plan, specs)
    start_foreign(session, topology, workers)
    records = [RecordSource(plan.ports[source.path], source) for source in sources]
    counts = counts_of(plan, topology) if call.observation else {}
    own = {  # fields of `AppliedSettings.java`
        "in_time": sorted(in_time),
        "ticks": {"kind": ticks.kind, "interval_ms": ticks.interval_ms, "delays": ticks.delays},
        "facts": [facts_of(plan, topology, level) for level in range(len(plan.levels))],
        "outputs": {plan.ports[sink.path]: sink.name for sink in topology.sinks()},
        "states": {port: name for name, port in state_ports(plan.stages).items()},
        "counts": [count._asdict() for count in counts.values()],
        "gives_states": call.gives_states,
        "joins_rows": call.joins_rows,
        "is_ordered": bool(call.order_by),
        "accepts_changed": call.accept_changed,
        "is_stream": any(rows.isStreaming for rows in call.inputs.values()),
        "way_out": call.way_out,
    }
    settings = {
        **task_settings(plan, workers, records),
        "applied": own,
        "controls_precede": not ticks.is_of_data,
        "policy": {"fails": call.policy.fails, "parts": dict(call.policy.parts)},
    }
    _check_order(call)
    order = call.order_by or (IN_TIME if all(source.timestamp for source in sources) else "")
    frames = [selected(call.inputs[source.name], source, order)._jdf for source in sources]
    left = call.states
    states = [] if left is None else first_states(plan, topology, left, accepts_changed=call.accept_changed)
    operators: Any = java_class(session, "microbatch.MicroBatch")
    rows = DataFrame(operators.apply(json.dumps(settings), frames, states), session)
    rows = observed(rows, call.observation, counts) if counts else rows
    return rows.drop(COLUMN) if call.gives_states else rows.drop(COLUMN, "state")


def _is_in_time(call: Call, sources: Sequence[SparkSource]) -> bool:
    """Say whether rows come in the order of event time: all sources have one, and `order_by` names no other column."""
    for source in sources:
        rows, place = call.inputs[source.name], place_of(source)
        column = field_of(rows, source.timestamp.strip("`"), place)
        if not source.timestamp or call.order_by and field_of(rows, call.order_by, place) != column:
            return False
    return True


def _check_order(call: Call) -> None:
    """Refuse `order_by` for a column whose types do not fit: a number in one input, a time or date in another.

    Raises:
        RunError: R716, see above.
    """
    kinds = {
        source.name: field.dataType
        for source in call.application.topology.sources()
        if (field := field_of(call.inputs[source.name], call.order_by, place_of(source))) is not None
    }
    if len({isinstance(kind, IntegralType) for kind in kinds.values()}) > 1:
        listed = ", ".join(f"{kind.simpleString()} in {name}" for name, kind in kinds.items())
        reason = f'the column "{call.order_by}", which order_by names, is {listed}'
        raise refused(CALL, reason, "give it a time type in all inputs, or an integer type in all inputs")


def as_rows(source: Source, rows: DataFrame) -> SparkSource:
    """Convert a source of any kind to a Spark source whose messages are rows of a DataFrame.

    If the source declares no columns, the DataFrame has `value`, and perhaps `key` and `timestamp`.

    Raises:
        RunError: R716 if the rows have no column `value`, or several columns of one of these names.
    """
    if isinstance(source, SparkSource):
        return source
    place = place_of(source)
    if field_of(rows, "value", place) is None:
        reason = f'it has no column "value" for its messages; it has {", ".join(rows.columns) or "none"}'
        raise refused(place, reason, "rename the column with the messages, or declare the columns of a DataFrame")
    key, time = (f"`{field.name}`" if (field := field_of(rows, name, place)) else "" for name in ("key", "timestamp"))
    return SparkSource(
        path=source.path, name=source.name, kind="spark", worker=source.worker, on_error=source.on_error,
        codec=source.codec, format=DATAFRAME, options={}, value="`value`", key=key if source.gives_keys else "",
        timestamp=time, max_message_bytes=getattr(source, "max_message_bytes", 16 << 20),
    )  # fmt: skip


class Count(NamedTuple):
    """Identifies a counter: by the path of a source, step or sink, and by the counter's name."""

    path: str
    name: str


def counts_of(plan: Plan, topology: Topology) -> dict[str, Count]:
    """Return the counters of all sources, steps and sinks by the name of their metric, e.g. `history.timers_fired`.

    If several of them have one name, their path follows the name.
    """
    parts = list(topology.parts())
    names = Counter(part.name for part in parts)
    nodes = [node for stage in plan.stages for node in stage.nodes]
    found = dict[str, Count]()
    for part in parts:
        label = part.name if names[part.name] == 1 else f"{part.name} ({part.path})"
        mine = [node for node in nodes if node.path == part.path]
        more = (name for name, counter in COUNTERS.items() if any(map(counter.is_of, mine)))
        found |= {f"{label}.{name}": Count(part.path, name) for name in (*MESSAGES, *more)}
    return found


def observed(rows: DataFrame, observation: Observation | str, counts: Mapping[str, Count]) -> DataFrame:
    """Let Spark add up the counts as an observation with this name, and remove the rows that only have counts."""
    sums = (F.coalesce(F.sum(F.col(COLUMN)[at]), F.lit(0)).alias(name) for at, name in enumerate(counts))
    return rows.observe(observation, *sums).where(F.col(COLUMN).isNull())
