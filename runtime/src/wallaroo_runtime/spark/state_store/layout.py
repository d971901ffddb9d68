"""Finds the states of each stage in Spark's state store; `docs/internals/checkpoint.md` has the layout."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from wallaroo_runtime.plan import Plan, Stage
from wallaroo_runtime.plan.block import blocks_of
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import described, of_operator
from wallaroo_runtime.spark.machine.jar import java_class


def state_store(session: SparkSession) -> Any:
    """Return the Java class that reads and writes states."""
    _ = session.streams  # this access makes Spark 4.2 start the coordinator of its stores
    return java_class(session, "state.StateStore")


def operator_count(checkpoint: Path) -> int:
    """Return the number of operators with state in one of Spark's checkpoints."""
    return sum(path.name.isdigit() for path in checkpoint.glob("state/*"))


def operators_of(plan: Plan, *, is_realtime: bool) -> list[list[Stage]]:
    """Return the stages of each operator of Spark with state, in the order of the operators' numbers.

    Spark numbers its operators from the end of its plan. With micro-batches, stages after the same number of shuffles
    have one operator. In real-time mode one operator has all stages.
    """
    levels = [[stage for stage in level if stage.has_state] for level in plan.levels[:0:-1]]
    return [sum(levels, [])] if is_realtime and levels else levels


def operator_of(plan: Plan, stage: str, count: int) -> int | None:
    """Return the number of the operator that has a stage's state; None if the checkpoint has no such operator.

    Args:
        stage: Id of the stage.
        count: Number of operators with state in the checkpoint.
    """
    for operator, stages in enumerate(operators_of(plan, is_realtime=count == 1)):
        if any(each.id == stage for each in stages) and operator < count:
            return operator
    return None


def reason_of(error: BaseException) -> str:
    """Return the reason why Spark could not read or write states, as our Java code or Spark reports it."""
    chain = causes_of(error)
    value = of_operator(chain)
    return described(chain).reason if value is None else str(value["values"]["reason"])


@dataclass(frozen=True, slots=True)
class SparkStateStore:
    """The state store in one of Spark's checkpoints, to read the states of an application.

    Attributes:
        path: URL of the checkpoint, see `spark_path`.
        plan: The plan with the checkpoint's numbers of buckets and partitions.
    """

    session: SparkSession
    path: str
    plan: Plan

    def logs(self, stage: str, operator: int, batch: int, buckets: Sequence[int] = ()) -> Any:
        """Return the state logs of a stage as rows of a Java dataset, of some buckets, or of all if `buckets` is empty.

        Args:
            stage: Id of the stage.
            operator: Spark's number of the operator that has the stage.
            batch: Number of the micro-batch after which the states are read.
            buckets: Numbers of the buckets; empty for all.
        """
        java, count = state_store(self.session), len(self.plan.bucket_ids)
        first = blocks_of(self.plan)[stage] * count
        logs = java.logs(self.session._jsparkSession, self.path, operator, batch, first, count)
        return java.ofBuckets(logs, [first + bucket for bucket in buckets]) if buckets else logs
