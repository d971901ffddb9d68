"""Translates the failure of a query to the error for the user: of Spark, of Java, or of our operators in Java."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any, NamedTuple
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.find_spark_home import _find_spark_home

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RUN, USAGE, WORKER, RunError
from wallaroo_runtime.spark.failure.cause import Cause, causes_of, significant
from wallaroo_runtime.spark.failure.table import LOSS, Outcome, row_of
from wallaroo_runtime.topology.secret import hidden
from wallaroo_runtime.worker.endpoint import remote_error

AGAIN = "run again to continue from the checkpoint"
OTHER_FIX = f"check its address, its permissions and its disk; {AGAIN}"
_NO_METHOD = " does not exist\n"  # Py4J's message for a method or constructor that the jar lacks
_FILE = re.compile(r"while reading file (?:file:/*(?=/))?(\S+?)\.(?:\s|$)")
_OPERATOR = re.compile("wallaroo-operator:([A-Za-z0-9+/=]+):")


class JavaEnded(RunError):
    """The Java virtual machine has ended, or was asked to end (R617)."""

    @classmethod
    def because(cls, reason: str, log: Path) -> "JavaEnded":
        """Return this error (R617) with the reason and the path of Spark's log."""
        return cls(RunError.of("R617", process="Spark process", reason=reason, log=log).diagnostics)


def is_end_of_java(error: BaseException) -> bool:
    """Say whether an error of Py4J means that the Java virtual machine has ended, or is about to end."""
    if not isinstance(error, Py4JJavaError):
        return isinstance(error, Py4JError | ConnectionError)
    try:
        chain = causes_of(error)
    except (Py4JError, ConnectionError):
        return True
    match = row_of(chain)
    return match is not None and match[0].outcome is Outcome.ENDED


@contextmanager
def needing_java(log: Path) -> Iterator[None]:
    """Raise R617 if the Java virtual machine ends during the block. Supervisors then end the workers.

    Args:
        log: Path of Spark's log, for the error.

    Raises:
        RunError: R758 if the jar lacks a method that Python calls.
    """
    try:
        yield
    except (Py4JError, ConnectionError) as error:
        if _NO_METHOD in str(error):
            raise RunError.of("R758", USAGE, reason="the jar is of another build") from error
        if not is_end_of_java(error):
            raise
        reason = "the Java virtual machine is gone"
        raise JavaEnded.because(reason, log) from error


class Described(NamedTuple):
    """A failure of Spark in words for the user. `fix` is empty if no remedy is known."""

    outcome: Outcome
    reason: str
    fix: str


def described(chain: Sequence[Cause], checkpoint: str = "", log: Path | None = None) -> Described:
    """Describe a failure of Spark in words, from its chain of causes, without stacks of Java and without Py4J.

    Example:
        >>> described(causes_of("java.nio.file.AccessDeniedException: /in/a.txt")).reason
        'this user has no permission to read or write a file: /in/a.txt'
    """
    if match := row_of(chain, checkpoint):
        row, cause = match
        fix = row.fix.format(temporary=gettempdir(), log=_source(log), hadoop=_hadoop_version())
        files = "".join(f"; {hidden(file)}" for file in _files(chain) if file not in cause.message)
        return Described(row.outcome, (f"{row.what}: {cause.line}" if row.what else cause.line) + files, fix)
    root = ([*significant(chain)] or [Cause("", "no reason given")])[-1]
    is_named = root.kind and not root.kind.startswith("py4j.")
    return Described(Outcome.QUERY_FAILED, f"{root.kind}: {root.line}" if is_named and root.message else root.line, "")


def _files(chain: Sequence[Cause]) -> list[str]:
    """Return a list with the one file that Spark could not read; an empty list if no message names the file."""
    matches = (_FILE.search(cause.message) for cause in chain if cause.condition.startswith("FAILED_READ_FILE"))
    return list(dict.fromkeys(unquote(each[1]) for each in matches if each))[:1]


def is_loss(chain: Sequence[Cause]) -> bool:
    """Say whether a query failed because a topic of Kafka has lost records."""
    match = row_of(chain)
    return match is not None and match[0] is LOSS


def _hadoop_version() -> str:
    """Return the version of Hadoop in Spark's jars, or a placeholder if it is not found."""
    jars = Path(_find_spark_home(), "jars").glob("hadoop-client-api-*.jar")
    return next((jar.stem.rpartition("-")[2] for jar in jars), "VERSION")


def _source(log: Path | None) -> str:
    return str(log) if log is not None and log.exists() else "what the driver's Spark has logged"


def of_operator(chain: Iterable[Cause]) -> dict[str, Any] | None:
    """Return the failure that an operator in Java reports in the chain of causes; None if there is no report."""
    marked = next(filter(None, (_OPERATOR.search(cause.message) for cause in chain)), None)
    return None if marked is None else json.loads(base64.b64decode(marked[1]))


def operator_error(value: Mapping[str, Any]) -> RunError:
    """Return the error that an operator in Java reports. The report has the code and the values, but not the text."""
    if "reported" in value:
        return remote_error(value["worker"], pb.Failure(**value["reported"]))
    if "found" in value:
        return RunError([Diagnostic.from_json(finding) for finding in value["found"]], WORKER)
    code = value["code"]
    return RunError.of(code, WORKER if code.startswith("W") else RUN, **value["values"])


def translated(chain: Sequence[Cause], checkpoint: str = "", log: Path | None = None) -> RunError:
    """Return the error for the user from the chain of causes of a failure in Spark.

    Args:
        chain: The result of `causes_of` or `query_causes`.
        checkpoint: Checkpoint directory of the query; empty if it has none yet.
        log: Spark's log, unless spark-submit has started Spark.

    Example:
        >>> error = translated(causes_of("java.nio.file.AccessDeniedException: /in/a.txt"))
        >>> error.diagnostics[0].code, error.diagnostics[0].fix[:19]
        ('R611', 'give the permission')
    """
    if (value := of_operator(chain)) is not None:
        return operator_error(value)
    outcome, reason, fix = described(chain, checkpoint, log)
    path = checkpoint or "not made yet"
    if outcome is Outcome.ENDED and log is not None:
        return JavaEnded.because("it was asked to end", log)
    if outcome is Outcome.DISK:
        fix = f"free some space (the checkpoint is {path}, temporary files are in {gettempdir()})"
        return RunError.of("R626", what="Spark", reason=reason, fix=fix)
    if outcome is Outcome.DAMAGED:
        reason = f"Spark cannot read it: {reason}; its log is {_source(log)}"
        return RunError.of("R698", what=f"checkpoint {path}", reason=reason)
    if outcome is Outcome.FILE_SYSTEM:
        return RunError.of("R684", path=path, reason=reason, fix=OTHER_FIX)
    return RunError.of("R611", reason=reason, fix=f"{fix or f'look into {_source(log)}'}; {AGAIN}")
