"""Finds the state logs of stages in Spark's store, in the form that micro-batches have and in that of real-time mode.

Micro-batches have a version and a log for each stage, by bucket. Real-time mode has one operator with maps: `version`
by number of a bucket, `log` by number of a bucket and of an entry. A stage has a block of these numbers.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, lit, shiftright, struct

from wallaroo_runtime.plan import Plan
from wallaroo_runtime.plan.block import blocks_of
from wallaroo_runtime.spark.task.state import LOG_SCHEMA

LOG, VERSION = "log", "version"  # of real-time mode; those of micro-batches have the stage after them
BUCKET_BITS = 32  # as `SparkBucketStore` has it
_ENTRY = LOG_SCHEMA.partition(" ")[0]


def variable_of(kind: str, stage: str, variables: Sequence[str]) -> str:
    """Return which of an operator's state variables has something of a stage; empty: none has.

    Args:
        kind: `LOG` or `VERSION`.
        stage: Id of the stage.
        variables: Names, as the operator has them.

    Example:
        >>> variable_of(LOG, "a", ["version_a", "log_a"]), variable_of(LOG, "a", ["version", "log"])
        ('log_a', 'log')
        >>> variable_of(LOG, "a", ["version_b", "log_b"])
        ''
    """
    return next((name for name in (f"{kind}_{stage}", kind) if name in variables), "")


def stage_log(variable: str, content: DataFrame, stage: str, plan: Plan) -> DataFrame:
    """Return the log of a stage with the columns of micro-batches; entries of a bucket follow each other, oldest first.

    Args:
        variable: That of the stage.
        content: Of the variable.
        stage: Id of the stage.
        plan: Of the checkpoint.
    """
    if variable != LOG:
        return content
    count, number = len(plan.bucket_ids), col("user_map_key.value")
    bucket = (shiftright(number, BUCKET_BITS) - lit(blocks_of(plan)[stage] * count)).cast("int")
    return (
        content.where((bucket >= 0) & (bucket < count))
        .sortWithinPartitions(number)
        .select(
            struct(bucket.alias("bucket")).alias("key"),
            struct(col("user_map_value.value").alias(_ENTRY)).alias("list_element"),
        )
    )
