"""Reads states from Spark's store after the last committed micro-batch, even while a query runs."""

from collections.abc import Iterator
from dataclasses import dataclass

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from wallaroo_runtime.durable.directory import Directory
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.spark.machine.hadoop import spark_path
from wallaroo_runtime.spark.state_store.choice import StateChoice, StateRow
from wallaroo_runtime.spark.state_store.layout import SparkStateStore, operator_of, reason_of, state_store
from wallaroo_runtime.storage.spark_log import last_batch


@dataclass(frozen=True, slots=True)
class StateReader:
    """Reads states of an application from the state store in Spark's checkpoint.

    Attributes:
        files: The checkpoint directory of the application.
        plan: Plan of the application with the checkpoint's numbers of buckets and partitions.
        name: Name of Spark's checkpoint in that directory.
    """

    session: SparkSession
    files: Directory
    plan: Plan
    name: str = "spark"

    def batch(self) -> int:
        """Return the number of the last committed micro-batch; -1 if there is none."""
        return last_batch(self.files.names(f"{self.name}/commits"))

    def rows(self, stage: str, choice: StateChoice, batch: int, buckets: tuple[int, ...] = ()) -> Iterator[StateRow]:
        """Yield the chosen states of a stage.

        Args:
            stage: Id of the stage.
            choice: Chooses the states. With a limit, the states of the first keys of all buckets come in order.
            batch: Number of a committed micro-batch.
            buckets: Buckets to read; empty for all.

        Raises:
            RunError: R771 if the store cannot be read.
        """
        try:
            count = sum(map(str.isdigit, self.files.names(f"{self.name}/state")))
            operator = operator_of(self.plan, stage, count)
            if operator is None:
                return
            stored = SparkStateStore(self.session, spark_path(f"{self.files}/{self.name}"), self.plan)
            logs = stored.logs(stage, operator, batch, buckets)
            states = DataFrame(state_store(self.session).chosen(logs, choice.to_json()), self.session)
            if choice.limit is not None:
                states = states.orderBy("key", "port").limit(choice.limit)
            for row in states.toLocalIterator():
                yield StateRow(row["port"], bytes(row["key"]), row["encoding"], row["size"], bytes(row["value"]))
        except (PySparkException, Py4JError, OSError, ValueError, KeyError) as error:
            fix = "ask again if a run goes on; of a damaged checkpoint restore all from one backup, as R698 says"
            raise RunError.of("R771", path=self.files, reason=reason_of(error), fix=fix) from error
