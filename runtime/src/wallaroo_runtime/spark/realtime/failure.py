"""Errors of the operators in Java, which know codes and values but not the texts of the catalogue."""

import base64
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RUN, WORKER, RunError
from wallaroo_runtime.spark.failure.cause import Cause
from wallaroo_runtime.spark.failure.translate import translated
from wallaroo_runtime.topology.error_policy import ErrorPolicy, stopped_by
from wallaroo_runtime.worker.endpoint import remote_error

_MARKED = re.compile("wallaroo-operator:([A-Za-z0-9+/=]+):")


def translated_operator(chain: Sequence[Cause], checkpoint: str, log: Path, policy: ErrorPolicy) -> RunError:
    """Return the error that the causes of a failed query come to.

    Args:
        chain: From `query_causes`.
        checkpoint: Spark's own.
        log: Where Spark writes.
        policy: Which dead letters stop the query.
    """
    marked = next(filter(None, (_MARKED.search(cause.message) for cause in chain)), None)
    if marked is None:
        return translated(chain, checkpoint, log)
    value: dict[str, Any] = json.loads(base64.b64decode(marked[1]))
    if "reported" in value:
        return remote_error(value["worker"], pb.Failure(**value["reported"]))
    if "letter" in value:
        return stopped_by(pb.DeadLetter.FromString(base64.b64decode(value["letter"])), policy)
    if "found" in value:
        return RunError([Diagnostic.from_json(finding) for finding in value["found"]], WORKER)
    code = value["code"]
    return RunError.of(code, WORKER if code.startswith("W") else RUN, **value["values"])
