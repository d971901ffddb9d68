"""Unwraps exceptions of Spark, py4j and Java into typed causes: class, Spark's condition, message."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.sql.streaming import StreamingQuery

from wallaroo_runtime.topology.secret import hidden

HADOOP_ADVICE = "; For more details see"
MAX_CAUSES, LINE = 64, 300
# The class of an error in a report: at its beginning, after "Caused by:", or after "Lost task".
_NAMED = re.compile(
    r"(?<![\w.$/\[])((?:[A-Za-z_][\w$]*\.)*[A-Z][\w$]*(?:Error|Exception|Interrupt|Exit))(?=: |:?$)", re.MULTILINE
)
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\] ")
_STATE = re.compile(r"\s*SQLSTATE: \w+")
_CALL = re.compile(
    r"An error occurred while calling .*|An exception was raised by the Python Proxy.*"
    r"|Lost task \S+ in stage \S+ \(TID \d+\) \([^)]*\): (?:[\w.$]+(?:Error|Exception): )?"
)
_REASON = "Reason: "  # precedes the reason in messages of KAFKA_DATA_LOSS
_MORE = re.compile(r"\.\.\. \d+ more")
# Classes of errors that only carry another error.
_WRAPPERS = re.compile(
    r"(py4j|pyspark)\..*|java\.util\.concurrent\.(Execution|Completion)Exception|java\.lang\.reflect\..*"
    r"|java\.lang\.RuntimeException|.*\.(StreamingQuery|Spark|Python|UncheckedExecution|UncheckedIO)Exception"
)
_CARRYING = {"STREAM_FAILED", "PYTHON_EXCEPTION", "TASK_WRITE_FAILED"}


@dataclass(frozen=True, slots=True)
class Cause:
    """One error in a chain of causes.

    Attributes:
        kind: Name of the error's class, in Java or Python.
        message: Message of the error; may have several lines.
        condition: Name of the error in Spark's catalogue, e.g. `PATH_NOT_FOUND`; empty if it has none.
    """

    kind: str
    message: str = ""
    condition: str = ""

    @property
    def line(self) -> str:
        """The first useful line of the message; the name of the class if the error has no message."""
        text = self.message.rpartition(_REASON)[2] if self.condition else self.message
        lines = (_CALL.sub("", _MORE.sub("", line)).strip(": ") for line in text.splitlines())
        first = next((line for line in lines if line and not line.startswith("at ")), "")
        text = _STATE.sub("", first.partition(HADOOP_ADVICE)[0]).strip()
        return hidden(text)[:LINE] or self.kind.rpartition(".")[2]

    @property
    def is_wrapper(self) -> bool:
        """Whether the error is of a class that only wraps other errors, e.g. `ExecutionException`."""
        return _WRAPPERS.fullmatch(self.kind) is not None and not self.condition


def causes_in(text: str) -> Iterator[Cause]:
    r"""Yield the errors that a text names. Java may send e.g. a stack trace in place of an exception.

    Example:
        >>> [*causes_in("a.B.FailException: x\n\tat a.b.C\nCaused by: java.io.IOException: y")]
        ... # doctest: +NORMALIZE_WHITESPACE
        [Cause(kind='a.B.FailException', message='x', condition=''),
         Cause(kind='java.io.IOException', message='y', condition='')]
    """
    for match in _NAMED.finditer(text):
        message = text[match.end() :].partition("\n")[0].removeprefix(":").strip()
        known = _CONDITION.match(message)
        condition = known[1] if known else ""
        yield Cause(match[1], message, "" if condition in _CARRYING else condition)


def causes_of(error: BaseException | str) -> list[Cause]:
    """Return the causes of an error, outermost first. For a text, return the errors that it names.

    Raises:
        Py4JError: Java has ended, so that it cannot be asked for the causes.
    """
    return _expanded([Cause("", error)] if isinstance(error, str) else _python_causes(error))


def query_causes(query: StreamingQuery) -> list[Cause]:
    """Return the causes of the error that has stopped a query; empty if there is no such error."""
    error = query._jsq.exception()
    return _expanded(_java_causes(error.get())) if error.isDefined() else []


def significant(chain: Sequence[Cause]) -> list[Cause]:
    """Return the causes that do not only wrap another error, outermost first; if all are wrappers, return all."""
    return [cause for cause in chain if cause.kind and not cause.is_wrapper] or list(chain)


def _expanded(chain: Iterable[Cause]) -> list[Cause]:
    """Add the errors that each cause's message names. Return the innermost `MAX_CAUSES` causes, each once."""
    causes = [each for cause in chain for each in (cause, *causes_in(cause.message))]
    return [*dict.fromkeys(reversed(causes))][:MAX_CAUSES][::-1]


def _python_causes(error: BaseException) -> Iterator[Cause]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        java = following.java_exception if isinstance(following, Py4JJavaError) else getattr(following, "_origin", None)
        if java is not None:
            yield from _java_causes(java)
            return
        if isinstance(following, Py4JError):
            is_gone = isinstance(following, Py4JNetworkError) or not str(following)
            yield Cause("py4j.Py4JError", "Java gives no answer" if is_gone else str(following))
        else:
            described = getattr(following, "_desc", None)  # the message, without Java's stack
            yield Cause(_name_of(following), str(following) if described is None else str(described))
        following = getattr(following, "_cause", None) or following.__cause__


def _name_of(error: BaseException) -> str:
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _java_causes(throwable: Any) -> Iterator[Cause]:
    gateway = SparkContext._gateway
    for _ in range(MAX_CAUSES):
        if throwable is None:
            return
        kind, message = str(throwable.getClass().getName()), str(throwable.getMessage() or "")
        condition = ""
        if gateway is not None and is_instance_of(gateway, throwable, "org.apache.spark.SparkThrowable"):
            condition = str(throwable.getCondition() or "")
        yield Cause(kind, message, "" if condition in _CARRYING else condition)
        throwable = throwable.getCause()
