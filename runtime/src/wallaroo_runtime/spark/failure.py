"""Carries errors through Spark, which knows only texts."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.errors import RUN, RunError

MARK = "wallaroo-error:"
HADOOP_ADVICE = "; For more details see"
_MARKED = re.compile(MARK + r"([A-Za-z0-9+/=]+):")
_ENDS = ("stopped SparkContext", "SparkContext was shut down", "Shutdown in progress")  # what Spark says at its end
_NO_ROOM = re.compile(r"^.*(?:No space left on device|Disk quota exceeded|File too large).*$", re.MULTILINE)
# What Hadoop's checksums, the state store's files and Spark's logs say when a file of a checkpoint is not as written.
_DAMAGE = re.compile(
    r"^.*(?:ChecksumException|CHECKSUM_VERIFICATION|EOFException|FileNotFoundException|Corruption|Incomplete log file"
    r"|CANNOT_READ_(?:STREAMING_STATE_FILE|MISSING_SNAPSHOT_FILE|CHECKPOINT)|CANNOT_LOAD_STATE_STORE\.).*$",
    re.MULTILINE,
)
# What the client says when no broker answers, and Spark when a broker has nothing for a task.
_NO_ANSWER = re.compile(
    r"org\.apache\.kafka\.common\.errors\.TimeoutException: (.+)|(Cannot fetch record for offset .+)"
)
_PYTHON_ERROR = re.compile(r"^([A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit)): (.+)$", re.MULTILINE)


class TaskFailure(RuntimeError):
    """A `RunError` in a form that Spark's report of a failed task keeps whole."""

    def __init__(self, error: RunError) -> None:
        value = {"exit_code": error.exit_code, "diagnostics": [finding.to_json() for finding in error.diagnostics]}
        text = base64.b64encode(json.dumps(value).encode()).decode()
        super().__init__(f"{error}\n{MARK}{text}:")


@contextmanager
def carried() -> Iterator[None]:
    """Turn a `RunError` of the block into one that crosses Spark."""
    try:
        yield
    except RunError as error:
        raise TaskFailure(error) from error


class JavaEnded(RunError):
    """The Java virtual machine has ended, or was asked to (R617)."""

    @classmethod
    def because(cls, reason: str, log: Path) -> "JavaEnded":
        """Say how it is known to have ended, and what Spark's log is."""
        return cls(RunError.of("R617", process="Spark process", reason=reason, log=log).diagnostics)


def is_end_of_java(error: BaseException) -> bool:
    """Say whether an error of Py4J means that the Java virtual machine has ended, or is about to."""
    if not isinstance(error, Py4JJavaError):
        return isinstance(error, Py4JError | ConnectionError)
    try:
        text = str(error.java_exception.toString())
    except (Py4JError, ConnectionError):
        return True
    return any(sign in text for sign in _ENDS)


@contextmanager
def needing_java(log: Path) -> Iterator[None]:
    """Raise R617 when the Java virtual machine ends below the block; supervisors then end the workers.

    Args:
        log: Spark's, which the error names.
    """
    try:
        yield
    except (Py4JError, ConnectionError) as error:
        if not is_end_of_java(error):
            raise
        reason = "the Java virtual machine is gone"
        raise JavaEnded.because(reason, log) from error


def _damage(report: str, checkpoint: str) -> str:
    """Return the line of a report that names a file of the checkpoint which cannot be read; empty: none does."""
    place = checkpoint.partition("://")[2] or checkpoint
    found = [
        line.strip().removeprefix("Caused by: ").removeprefix(": ")
        for line in _DAMAGE.findall(report)
        if place and place in line
    ]
    return found[-1][:300] if found else ""


def translated(report: str, checkpoint: str = "", log: Path | None = None) -> RunError:
    """Return the error that Spark's report of a failed query is about, without Spark's and the JVM's stack traces.

    Args:
        checkpoint: Its checkpoint directory; empty: it has none yet.
        log: Where Spark writes, unless spark-submit has started it.

    Example:
        >>> print(translated(str(TaskFailure(RunError.of("R602", reason="no `java` on PATH")))))
        R602 Java was not found; no `java` on PATH
          fix: install Java 17 and put `java` on PATH, or set JAVA_HOME
    """
    if marked := _MARKED.search(report):
        value = json.loads(base64.b64decode(marked[1]))
        return RunError([Diagnostic.from_json(finding) for finding in value["diagnostics"]], value["exit_code"])
    if full := _NO_ROOM.search(report):
        # The line names the file where the system told it.
        reason, place = full[0].strip().removeprefix("Caused by: "), checkpoint or "not made yet"
        return RunError.of("R630", RUN, reason=reason, path=place, temporary=gettempdir())
    if reason := _damage(report, checkpoint):
        return RunError.of("R633", RUN, path=checkpoint, reason=reason, log=log)
    if log is not None and any(sign in report for sign in _ENDS):
        return JavaEnded.because("it was asked to end", log)
    if silent := _NO_ANSWER.search(report):
        fix = "start the brokers, and run again to continue from the checkpoint"
        return RunError.of("R611", RUN, reason=f"Kafka gave no answer: {silent[1] or silent[2]}", fix=fix)
    python_errors = _PYTHON_ERROR.findall(report)
    reason = (
        ": ".join(python_errors[-1]) if python_errors else next(iter(report.strip().splitlines()), "no reason given")
    )
    reason = reason.partition(HADOOP_ADVICE)[0]
    source = str(log) if log is not None and log.exists() else "what the driver's Spark has logged"
    return RunError.of("R611", RUN, reason=reason, fix=f"look into {source}; run again to continue from the checkpoint")
