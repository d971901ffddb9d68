"""Reads the states that a query has stored, and prepares the states with which another query begins."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.hosted_workers import HostedWorkers
from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.plan.block import blocks_of
from wallaroo_runtime.plan.change import window_shape
from wallaroo_runtime.plan.compile import compile_topology
from wallaroo_runtime.plan.kept_state import KeptState, refusal
from wallaroo_runtime.plan.shape import state_component
from wallaroo_runtime.plan.stage_message import stage_message
from wallaroo_runtime.program.application import Application
from wallaroo_runtime.spark.machine.temporary import temporary_directory
from wallaroo_runtime.spark.row import field_of, refused
from wallaroo_runtime.spark.state_store.choice import StateChoice
from wallaroo_runtime.spark.state_store.layout import SparkStateStore, reason_of, state_store
from wallaroo_runtime.storage.state_log import entries_of, grouped
from wallaroo_runtime.topology.model import Topology
from wallaroo_runtime.worker.idempotent_call import WorkerShower

SHOW_BYTES = 4 << 20  # bytes of states in one request to a worker
OPERATOR, LOG = "transformWithStateExec", "log"
STATE_COLUMNS = {"name": "string", "key": "binary", "encoding": "int", "value": "binary", "type": "string"}
STATES, TAKEN = "the parameter `states`", "pass the result of `states` or `read_states`"
LATER = "leave `states` out if the query has a checkpoint already"
FACTS = -(1 << 32)  # key in Spark's store of the description of states, among the keys of `SparkBucketStore.java`


def state_ports(stages: Iterable[Stage]) -> dict[str, int]:
    """Return the port of each state by the state's name. Frames of a state log name states by their ports."""
    return {node.state: node.state_port for stage in stages for node in stage.nodes if node.state}


def kept_states(topology: Topology) -> dict[str, KeptState]:
    """Describe each state of a program (class, codec, key, window), to compare it with the states that a query stored.

    The place of a state in a query is left out, so that another query can read the state.
    """
    kept = dict[str, KeptState]()
    for name, step in topology.states().items():
        found, language = state_component(topology, step), topology.worker(step.worker).language
        own = topology.component(step.worker, f"{step.path}/state")
        codec, key = (step.state.codec, step.state.key.kind) if step.state else ("", "")
        kept[name] = KeptState(
            type=f"{own.symbol if own else 'a state'} of a worker in {language}, codec {codec}",
            key=key,
            window=window_shape(step.window),
            language=language,
            symbol=found.symbol if found else "",
            shape=found.shape if found else None,
        )
    return kept


def facts_of(plan: Plan, topology: Topology, level: int) -> dict[str, dict[str, Any]]:
    """Describe the states of a level (all stages after the same number of shuffles), and their places in the query.

    The query stores this description. Later runs compare it with that of their own program.
    """
    blocks, kept, facts = blocks_of(plan), kept_states(topology), dict[str, dict[str, Any]]()
    for stage in plan.levels[level]:
        for state, port in state_ports([stage]).items():
            is_of_data = any(node.watermarks for node in stage.nodes if node.state == state)
            place = f"number {port} in block {blocks[stage.id]} of {plan.bucket_count} buckets"
            passing = "that of the data" if is_of_data else "that of a clock"
            time = "" if topology.states()[state].window is None else passing
            facts[state] = kept[state]._replace(place=place, time=time)._asdict()
    return facts


def check_columns(states: DataFrame) -> None:
    """Refuse `states` if it is no DataFrame, is a stream, or does not have the columns of states.

    Raises:
        RunError: R716 in each of these cases.
    """
    if not isinstance(states, DataFrame):
        reason = f"they are a {type(states).__name__}"
        raise refused(STATES, reason, TAKEN)
    for name, kind in STATE_COLUMNS.items():
        field = field_of(states, name, STATES)
        actual = "" if field is None else field.dataType.simpleString()
        if actual != kind:
            reason = f'their column "{name}" is {actual}, not {kind}' if actual else f"they have no column {name}"
            raise refused(STATES, reason, TAKEN)
    if states.isStreaming:
        reason = "they are a streaming DataFrame"
        raise refused(STATES, reason, "write them, and pass the result of `spark.read`")


def check_states(
    rows: Iterable[Row], topology: Topology, *, accepts_changed: bool, later: str = f", or {LATER}"
) -> None:
    """Refuse rows that are not states of the application.

    Args:
        accepts_changed: Whether fields of states may be lost.
        later: Addition to the remedy for states of a changed program.

    Raises:
        RunError: R716 for the first row that is not a state of the application.
    """
    kept = kept_states(topology)
    for row in rows:
        if null := ", ".join(name for name in row.__fields__ if row[name] is None):
            raise refused(STATES, f"a row has null in {null}", TAKEN)
        name, kind = row["name"], row["type"]
        if name not in kept:
            reason = f'the application has no state "{name}"'
            raise refused(STATES, reason, "drop its rows, or rename the state")
        try:
            before = KeptState(**json.loads(kind))
        except (TypeError, ValueError):
            reason = f'the type of state "{name}" is "{kind[:80]}"'
            raise refused(STATES, reason, f"{TAKEN}{later}") from None
        if found := refusal({name: before._asdict()}, {name: kept[name]._asdict()}, accepts_changed=accepts_changed):
            raise refused(STATES, found["reason"], f"{found['fix']}{later}")


def first_states(plan: Plan, topology: Topology, states: DataFrame, *, accepts_changed: bool) -> list[Any]:
    """Convert given states to the rows with which Spark's state stores begin.

    Args:
        states: Rows with the columns of `STATE_COLUMNS`.
        accepts_changed: Whether fields of states may be lost.

    Returns:
        A Java dataset for each shuffle of the plan, with the states of the stages after this shuffle.

    Raises:
        RunError: R716 if the states do not belong to the application.
    """
    check_columns(states)
    is_null = reduce(or_, (F.col(name).isNull() for name in STATE_COLUMNS))
    kinds = states.select("name", "type").distinct().collect()
    holes = states.where(is_null).select(*STATE_COLUMNS).limit(1).collect()
    check_states([*holes, *kinds], topology, accepts_changed=accepts_changed)
    return [_of_level(plan, level, states) for level in plan.levels[1:]]


def _of_level(plan: Plan, level: Iterable[Stage], states: DataFrame) -> Any:
    java, blocks = state_store(states.sparkSession), blocks_of(plan)
    rows = states.sparkSession.range(0).selectExpr("CAST(NULL AS BINARY) AS row")._jdf
    for stage in level:
        for name, port in state_ports([stage]).items():
            mine = states.where(F.col("name") == name).select(F.lit(port).alias("port"), "key", "encoding", "value")
            rows = rows.union(java.given(mine._jdf, blocks[stage.id], plan.bucket_count, plan.targets))
    return rows


def stored_states(session: SparkSession, topology: Topology, checkpoint: str, part: int | None) -> DataFrame:
    """Return the states in a streaming query's checkpoint after its last micro-batch, with the columns `STATE_COLUMNS`.

    Args:
        part: Number of one use of the application, if the query applies it several times; else None.

    Raises:
        RunError: R771 if the checkpoint has no states of this application.
    """
    try:
        found = session.read.format("state-metadata").load(checkpoint).orderBy(F.desc("operatorId")).collect()
    except (PySparkException, Py4JError) as error:
        raise _unreadable(checkpoint, reason_of(error)) from error
    operators = [row for row in found if row["operatorName"] == OPERATOR and has_logs(row["operatorProperties"])]
    partitions = operators[0]["numPartitions"] if operators else 1
    plan = compile_topology(topology, shuffle_partitions=partitions)
    operators, kept = _of_part(session, plan, topology, checkpoint, operators, part)
    java, stored = state_store(session), SparkStateStore(session, checkpoint, plan)
    rows = session.createDataFrame([], "name STRING, key BINARY, encoding INT, value BINARY")
    for operator, level in zip(operators, plan.levels[1:], strict=True):
        for stage in level if operator["maxBatchId"] >= 0 else ():
            names = {port: name for name, port in state_ports([stage]).items()}
            logs = stored.logs(stage.id, operator["operatorId"], operator["maxBatchId"])
            chosen = DataFrame(java.chosen(logs, StateChoice(frozenset(names)).to_json()), session)
            rows = rows.union(chosen.select(_looked_up(names, "port").alias("name"), "key", "encoding", "value"))
    return with_types(rows, kept)


def _of_part(
    session: SparkSession, plan: Plan, topology: Topology, checkpoint: str, operators: list[Row], part: int | None
) -> tuple[list[Row], dict[str, KeptState]]:
    """Find the operators of Spark that keep the states of an application. A query may apply it in several places.

    Returns:
        An operator for each level after the first, and the stored descriptions of their states by name.

    Raises:
        RunError: R771 if the query does not use the application so often, or several times and `part` is None.
    """
    levels = len(plan.levels) - 1
    if len(operators) == levels and not part and all(row["maxBatchId"] < 0 for row in operators):
        return operators, {}  # they have no states and no facts yet
    kept = {row["operatorId"]: _facts(session, checkpoint, row) for row in operators}
    own = [facts_of(plan, topology, level + 1) for level in range(levels)]
    places = [[row for row in operators if not _difference(kept[row["operatorId"]], mine)] for mine in own]
    count = min(map(len, places), default=0)
    if not count:
        lacking = (mine for mine, rows in zip(own, places, strict=True) if not rows)
        reasons = [_difference(facts, mine) for mine in lacking for facts in kept.values()]
        raise _unreadable(checkpoint, "; ".join(reasons) or "it has no states of an application")
    if part is None and count > 1:
        numbers = ", ".join(str(row["operatorId"]) for rows in places for row in rows)
        reason = f"its query has the steps {count} times, as the operators {numbers} of Spark"
        raise _unreadable(checkpoint, reason, f"choose one of them: read_states(..., part=0) to part={count - 1}")
    if not 0 <= (part or 0) < count:
        reason = f"its query has the steps {count} times; part {part} was asked for"
        raise _unreadable(checkpoint, reason, f"give a part from 0 to {count - 1}")
    chosen = [sorted(rows, key=lambda row: int(row["operatorId"]))[part or 0] for rows in places]
    facts = {name: each for row in chosen for name, each in kept[row["operatorId"]].items()}
    return chosen, {name: KeptState(**each)._replace(place="", time="") for name, each in facts.items()}


def _facts(session: SparkSession, checkpoint: str, operator: Row) -> dict[str, Any]:
    """Return the description of an operator's states, which `ProgramCheck.java` has stored in each partition."""
    if operator["maxBatchId"] < 0:
        return {}
    stored = session.read.format("statestore").option("operatorId", operator["operatorId"])
    rows = stored.option("batchId", operator["maxBatchId"]).option("stateVarName", LOG).load(checkpoint)
    notes = rows.where(F.col("user_map_key.value") == FACTS).select(F.col("user_map_value.value").alias("note"))
    return next((json.loads(row["note"]) for row in notes.limit(1).collect()), {})


def _difference(stored: Mapping[str, Any], own: Mapping[str, Any]) -> str:
    """Return the difference between stored descriptions of states and those of the program; empty if there is none."""
    mine = {name: {**stored[name], "time": own[name]["time"]} for name in stored.keys() & own.keys()}
    if own and not mine:
        return f"it has the states {', '.join(stored) or 'of no application'}; the application has {', '.join(own)}"
    return refusal(mine, own, accepts_changed=True).get("reason", "")


def has_logs(properties: str) -> bool:
    """Say from the metadata of an operator of Spark whether it has states of a Wallaroo application."""
    return [each["stateName"] for each in json.loads(properties)["stateVariables"]] == [LOG]


def with_types(states: DataFrame, kept: Mapping[str, KeptState]) -> DataFrame:
    """Return states with an additional column `type`: the description of each state from `kept`, as JSON."""
    types = {name: json.dumps(each._asdict(), sort_keys=True) for name, each in kept.items()}
    return states.withColumn("type", _looked_up(types, "name"))


def _looked_up(names: Mapping[Any, str], column: str) -> Column:
    pairs = F.create_map(*(F.lit(each) for pair in names.items() for each in pair))
    return pairs[F.col(column)] if names else F.lit(None).cast("string")


def _unreadable(
    checkpoint: str,
    reason: str,
    fix: str = "give the checkpointLocation of a query with its steps, or load the program that the query runs",
) -> RunError:
    return RunError.of("R771", path=checkpoint, reason=reason, fix=fix)


def shown_states(application: Application, states: Iterable[Any]) -> Iterator[tuple[str, bytes, str]]:
    """Yield name, key and value of states, the value as JSON. Workers of the application decode the values.

    The workers start for this call and stop at its end.

    Args:
        application: Application that has the states.
        states: Rows with the columns of `STATE_COLUMNS`.

    Raises:
        RunError: An error of a worker, e.g. W416 if it cannot show states.
    """
    rows, folder = list(states), Path(tempfile.mkdtemp(dir=temporary_directory()))
    with ExitStack() as stack:
        workers = stack.enter_context(closing(HostedWorkers(application.topology, folder, application.archive)))
        for stage in compile_topology(application.topology, shuffle_partitions=1).stages:
            names = {port: name for name, port in state_ports([stage]).items()}
            mine = [(port, row) for port, name in names.items() for row in rows if row["name"] == name]
            if not mine:
                continue
            shower = stack.enter_context(closing(WorkerShower(workers.target(stage.worker), stage.worker)))
            for part in grouped(mine, lambda each: len(each[1]["value"]), SHOW_BYTES):
                logs = {(port, bytes(row["key"])): (row["encoding"], bytes(row["value"])) for port, row in part}
                shown = shower.show(stage_message(stage), entries_of(logs))
                yield from ((names[port], key, json.dumps(value)) for (port, key), value in shown.items())
