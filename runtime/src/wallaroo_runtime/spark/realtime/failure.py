"""Translates errors of a query in real-time mode, which a dead letter may end at once."""

import base64
from collections.abc import Sequence
from pathlib import Path

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.failure.cause import Cause
from wallaroo_runtime.spark.failure.translate import of_operator, translated
from wallaroo_runtime.topology.error_policy import ErrorPolicy, stopped_by


def translated_operator(chain: Sequence[Cause], checkpoint: str, log: Path, policy: ErrorPolicy) -> RunError:
    """Return the error for the user from the causes of a failed query.

    Args:
        chain: The result of `query_causes`.
        checkpoint: Spark's own checkpoint.
        log: Path of Spark's log.
        policy: Says which dead letters stop the query.
    """
    value = of_operator(chain) or {}
    if "letter" in value:
        return stopped_by(pb.DeadLetter.FromString(base64.b64decode(value["letter"])), policy)
    return translated(chain, checkpoint, log)
