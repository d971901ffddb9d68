"""The public interface for steps of an application between DataFrames of a PySpark job."""

from collections.abc import Callable, Sequence
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError, check_arguments
from wallaroo.message.timer import FIRST_MS, LAST_MS
from wallaroo_runtime.dataframe.query import LETTERS, Call, applied, check_topology
from wallaroo_runtime.dataframe.session import check_session
from wallaroo_runtime.dataframe.state import (
    STATE_COLUMNS,
    check_columns,
    check_states,
    kept_states,
    shown_states,
    stored_states,
    with_types,
)
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.program.application import Application, load_application
from wallaroo_runtime.program.pack import PackOptions, pack
from wallaroo_runtime.spark.machine.settings import is_local
from wallaroo_runtime.spark.machine.temporary import temporary_directory
from wallaroo_runtime.spark.row import rows_of
from wallaroo_runtime.topology.error_policy import ErrorPolicy
from wallaroo_runtime.topology.model import SparkSink, place_of

Write = Callable[[DataFrame, int], object]
ROWS = {"output", "key", "value", "dead_letter"}


def load(app: str | PathLike[str], args: Sequence[str] = ()) -> "Steps":
    """Return the steps of an application, for DataFrames of a PySpark job.

    Args:
        app: As for `wallaroo run`: a Python file or module, a Go package directory, a worker binary, an archive, or a
            topology file.
        args: The application's command-line arguments.

    Raises:
        DiagnosticError: There is no such application, it is not correct, or it has parts that cannot be between
            DataFrames (P303). The error has every finding. T207 if `app` or `args` is of another type.
    """
    if not isinstance(app, str | PathLike):
        raise DiagnosticError(Diagnostic.wrong("load", "app", app, "the path of a program"))
    check_arguments("load", args)
    found = load_application(fspath(app), args, "", "")
    check_topology(found.topology)
    return Steps(found, fspath(app), args)


class Steps:
    """The steps of an application, from `load`, to apply to DataFrames.

    An executor starts workers of the application when a task needs them. The workers end with the executor or Spark.
    A streaming query has its states in its own checkpoint, so that its sink is as exact as with steps of Spark.

    Attributes:
        inputs: Names of the sources.
        outputs: Names of the sinks.
    """

    def __init__(self, application: Application, app: str, args: Sequence[str]) -> None:
        self._application, self._app, self._args = application, app, args
        self._topology = application.topology
        self.inputs = tuple(source.name for source in self._topology.sources())
        self.outputs = tuple(sink.name for sink in self._topology.sinks())

    def apply(
        self,
        *rows: DataFrame,
        order_by: str = "",
        states: DataFrame | None = None,
        accept_changed: bool = False,
        observation: Observation | str = "",
        **inputs: DataFrame,
    ) -> DataFrame:
        """Return the rows of the only sink. A dead letter ends the query.

        Args:
            rows: The DataFrame for the only source, so that `orders.transform(steps.apply)` works.
            order_by: Name of a column of each input, of times, dates or integers. In a batch, and in each micro-batch,
                each key gets its rows in the order of this column, null first. Without it, the order is event time if
                every source has event time. Otherwise the order depends on Spark's partitions, so code that needs the
                order of events needs `order_by`.
            states: States from `states` or `read_states`, with which a batch, or a query with a new checkpoint, begins.
            accept_changed: Whether a changed program may lose fields of `states`, or of states in a streaming query's
                checkpoint, as with `wallaroo run --accept-changed`.
            observation: Name under which the progress of a streaming query (`observedMetrics`) has the counts of all
                sources, steps and sinks, or an `Observation`, which gives them after a batch; see `DataFrame.observe`.
            inputs: A DataFrame, streaming or not, for each source by its name. It has at least the columns that the
                source declares; if it declares none: `value`, and perhaps `key` and `timestamp`.

        Returns:
            The columns that the sink declares, or `key` and `value` if it declares none. The DataFrame is streaming if
            an input is streaming.

        Raises:
            DiagnosticError: R716 if an input is missing or lacks columns, or the session cannot run steps.
        """
        if len(self.outputs) != 1:
            has = f"several sinks: {', '.join(self.outputs)}" if self.outputs else "no sink"
            reason = f"the application has {has}; `apply` returns the rows of one"
            raise _refused(reason, "call apply_all, and select the rows of each")
        (sink,) = self._topology.sinks()
        # `select` would drop the row of a dead letter without a report.
        call = self._call(
            rows, inputs, policy=ErrorPolicy(fails=True), way_out="call apply_all, which gives dead letters as rows",
            joins_rows=isinstance(sink, SparkSink) and bool(sink.schema), order_by=order_by, states=states,
            accept_changed=accept_changed, observation=observation,
        )  # fmt: skip
        return self.select(applied(call), sink.name)

    def apply_all(
        self,
        *rows: DataFrame,
        order_by: str = "",
        states: DataFrame | None = None,
        gives_states: bool = False,
        accept_changed: bool = False,
        observation: Observation | str = "",
        **inputs: DataFrame,
    ) -> DataFrame:
        """Return the rows of all sinks, and a row for each dead letter, in one DataFrame.

        Args:
            rows: As for `apply`.
            order_by: As for `apply`.
            states: As for `apply`.
            gives_states: Whether the result has rows for the states at the end of a batch; `states` selects them.
            accept_changed: As for `apply`.
            observation: As for `apply`.
            inputs: As for `apply`.

        Returns:
            Columns `output`, the sink's name; `key` and `value`, as bytes; `dead_letter`, null for a row of a sink.
            `select`, `dead_letters` and `states` return the rows of one kind with their own columns.

        Raises:
            DiagnosticError: As `apply`.
        """
        call = self._call(
            rows, inputs, policy=ErrorPolicy.of(self._topology), gives_states=gives_states,
            order_by=order_by, states=states, accept_changed=accept_changed, observation=observation,
        )  # fmt: skip
        return applied(call)

    def select(self, rows: DataFrame, output: str) -> DataFrame:
        """Return the rows of one sink with the columns that it declares.

        Args:
            rows: Result of `apply_all`.
            output: The sink's name.

        Raises:
            DiagnosticError: R720 if there is no such sink; R716 if the rows are not a result of `apply_all`.
        """
        sink = next((each for each in self._topology.sinks() if each.name == output), None)
        if sink is None:
            known = ", ".join(self.outputs)
            raise RunError.of("R720", USAGE, place="the application", what="sink", name=f'"{output}"', known=known)
        _check_rows(rows, "select")
        mine = rows.where((F.col("output") == output) & F.col("value").isNotNull())
        if not isinstance(sink, SparkSink) or not sink.schema:
            return mine.select("key", "value")
        return rows_of(mine, sink.schema, place_of(sink))

    def dead_letters(self, rows: DataFrame) -> DataFrame:
        """Return the dead letters with these columns: code, step, error, traceback, input, preview, key and at.

        `at` is the time of the message, or of the timer that failed; null if it is not in the years 1 to 9999.

        Args:
            rows: Result of `apply_all`.

        Raises:
            DiagnosticError: R716 if the rows are not a result of `apply_all`.
        """
        _check_rows(rows, "dead_letters")
        found = rows.where(F.col("dead_letter").isNotNull()).select("dead_letter.*")
        is_time = F.col("at_ms").between(FIRST_MS, LAST_MS)  # Python supports no other years
        return found.withColumn("at", F.when(is_time, F.timestamp_millis(F.col("at_ms")))).drop("at_ms")

    def states(self, rows: DataFrame) -> DataFrame:
        """Return the states at the end of a batch: name, key, encoding, value and type. Key and value are bytes.

        The states may be written, e.g. as Parquet, and passed to another query as its first states.

        Args:
            rows: Result of `apply_all` with `gives_states`.

        Raises:
            DiagnosticError: R716 if the rows are not such a result.
        """
        _check_rows(rows, "states")
        if "state" not in rows.columns:
            reason = "the rows were made without states"
            raise _refused(reason, "make them with steps.apply_all(..., gives_states=True)", "states")
        return with_types(rows.where(F.col("state").isNotNull()).select("state.*"), kept_states(self._topology))

    def read_states(self, session: SparkSession, checkpoint: str | PathLike[str], part: int | None = None) -> DataFrame:
        """Return the states after the last micro-batch of a streaming query, with the columns of `states`.

        A query with a new checkpoint that begins with these states continues the old query, with other partitions too.

        Args:
            checkpoint: The query's `checkpointLocation`.
            part: If the query applies the steps several times: which use to read, from 0, in Spark's order.

        Raises:
            DiagnosticError: R771 if the query has no states of this application, or uses it several times and `part`
                is missing.
        """
        if not isinstance(checkpoint, str | PathLike) or not fspath(checkpoint):
            reason = f"the checkpoint is {checkpoint!r}"
            raise _refused(reason, "give the checkpointLocation of a query with these steps", "read_states")
        check_session(session, has_state=True)
        return stored_states(session, self._topology, fspath(checkpoint), part)

    def show_states(self, states: DataFrame, limit: int = 1000) -> DataFrame:
        """Return some states in readable form: name, key, and value as JSON, as in `wallaroo state`.

        The driver collects these states and starts the application's workers, which decode them.

        Args:
            states: Result of `states` or `read_states`, perhaps filtered with `where`.
            limit: Greatest number of states.

        Raises:
            DiagnosticError: R716 if the rows are not states of this application. A worker does not start, or it cannot
                show states (W416).
        """
        if not isinstance(limit, int) or limit < 0:
            reason = f"limit is {limit!r}"
            raise _refused(reason, "give a number of states, e.g. limit=1000", "show_states")
        check_columns(states)
        chosen = states.select(*STATE_COLUMNS).limit(limit).collect()
        check_states(chosen, self._topology, accepts_changed=True, later="")
        shown = list(shown_states(self._application, chosen))
        return states.sparkSession.createDataFrame(shown, "name STRING, key BINARY, value STRING")

    def each(self, **writes: Write) -> Write:
        """Return a function for `foreachBatch`. It passes the rows of each sink, and the dead letters, to a function.

        A micro-batch is computed once. A dead letter that ends the query does so before the first function is called.

        Args:
            writes: A function for each sink by its name, and for `dead_letters`. Its arguments are a DataFrame and the
                number of the micro-batch.

        Raises:
            DiagnosticError: R716 if a kind has no function.
        """
        kinds = [*self.outputs, LETTERS]
        if set(writes) != set(kinds):
            reason = f"functions were given for {', '.join(writes) or 'none'}"
            raise _refused(reason, f"give one for each of {', '.join(kinds)}", "each")
        for name, function in writes.items():
            if not callable(function):
                reason = f"{name} is a {type(function).__name__}"
                raise _refused(reason, "give a function of a DataFrame and the number of the micro-batch", "each")

        def write(batch: DataFrame, number: int) -> None:
            kept = batch.persist()
            try:
                kept.count()  # Spark stores states only of rows that are computed, and functions may leave out some
                for name, function in writes.items():
                    function(self.dead_letters(kept) if name == LETTERS else self.select(kept, name), number)
            finally:
                kept.unpersist()

        return write

    @cached_property
    def _archived(self) -> Application:
        """The application as an archive, because executors may not see the program's files."""
        if self._application.archive:
            return self._application
        output = Path(mkdtemp(dir=temporary_directory()), "steps.tar.gz")
        pack(PackOptions(self._app, output, tuple(self._args)))
        return load_application(str(output), (), "", "")

    def _call(self, rows: Sequence[DataFrame], inputs: dict[str, DataFrame], **more: Any) -> Call:
        given = dict(inputs)
        if "gives_states" in given:
            reason = "only apply_all has gives_states"
            raise _refused(reason, "call steps.apply_all(..., gives_states=True)")
        if len(rows) == len(self.inputs) == 1 and self.inputs[0] not in given:
            given[self.inputs[0]] = rows[0]
        elif rows:
            reason = f"{len(rows)} DataFrames were given without a name"
            raise _refused(reason, f"name them: {_shown(self.inputs)}")
        if set(given) != set(self.inputs):
            known, names = ", ".join(self.inputs), ", ".join(given) or "none"
            reason = f"the application has the sources {known}; the call has {names}"
            raise _refused(reason, f"give a DataFrame for each: {_shown(self.inputs)}")
        for name, frame in given.items():
            if not isinstance(frame, DataFrame):
                reason = f"{name} is a {type(frame).__module__}.{type(frame).__name__}".replace(" builtins.", " ")
                raise _refused(reason, f"pass a DataFrame of PySpark: {_shown([name])}")
        order_by, observation = more["order_by"], more["observation"]
        if not isinstance(order_by, str):
            reason = f"order_by is a {type(order_by).__name__}"
            raise _refused(reason, 'give the name of a column, e.g. order_by="at"')
        if not isinstance(observation, str | Observation):
            reason = f"observation is a {type(observation).__name__}"
            raise _refused(reason, 'give a name for metrics, e.g. observation="alerts"')
        session = next(iter(given.values())).sparkSession
        check_session(session, has_state=bool(self._topology.states()))
        live = [name for name, frame in given.items() if frame.isStreaming]
        if live and len(live) < len(given):
            reason = f"of the inputs {', '.join(given)}, only {', '.join(live)} are streams"
            raise _refused(reason, "read all with spark.readStream, or join the others to the stream before `apply`")
        if live and more.get("gives_states"):
            reason = "a streaming query has no end, and keeps its states in its checkpoint"
            raise _refused(reason, "leave gives_states out, and read them with read_states", "apply_all")
        if live and isinstance(observation, Observation):
            reason = "an Observation works only with a batch"
            raise _refused(reason, 'give the name of metrics in its place, e.g. observation="alerts"')
        application = self._application if is_local(session.sparkContext.master) else self._archived
        return Call(application, given, **more)


def _check_rows(rows: DataFrame, method: str) -> None:
    if not isinstance(rows, DataFrame):
        reason = f"the rows are a {type(rows).__name__}"
    elif set(rows.columns) >= ROWS:
        return
    else:
        reason = f"the rows have the columns {', '.join(rows.columns) or 'none'}"
    raise _refused(reason, "pass the result of steps.apply_all(...)", method)


def _refused(reason: str, fix: str, method: str = "apply") -> RunError:
    return RunError.of("R716", USAGE, what=f"the call of `{method}`", reason=reason, fix=fix)


def _shown(names: Sequence[str]) -> str:
    if all(map(str.isidentifier, names)):
        return f"steps.apply({', '.join(f'{name}=...' for name in names)})"
    return "steps.apply(**{" + ", ".join(f'"{name}": ...' for name in names) + "})"
