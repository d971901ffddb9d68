"""Starts the Spark session of a run: with the runtime's settings, bound to this machine, quiet on the console."""

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Thread

from py4j.protocol import INPUT_CONVERTER, Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import described, is_end_of_java, needing_java
from wallaroo_runtime.spark.machine.jar import java_class
from wallaroo_runtime.spark.machine.java import check_java
from wallaroo_runtime.spark.machine.log_watch import refused_by_master
from wallaroo_runtime.spark.machine.master import SUBMITTED, open_rest_servers
from wallaroo_runtime.spark.machine.settings import retrying, start_settings
from wallaroo_runtime.spark.machine.virtual_machine import VirtualMachine, launch

SECRET = "PYSPARK_GATEWAY_SECRET"
_log = logging.getLogger(__name__)


def create_session(
    application: str,
    *,
    master: str,
    shuffle_partitions: int,
    directory: Path,
    settings: dict[str, str] | None = None,
    java: VirtualMachine | None = None,
) -> SparkSession:
    """Start Spark for one application, or return the running session.

    Spark writes to `spark.log` and `spark.out` in `directory`, never to the console.

    Args:
        application: Name of the application.
        master: Address as for spark-submit. `local[N]` becomes `local[N,4]`, so that Spark repeats a killed task.
        shuffle_partitions: Number of partitions of each shuffle.
        directory: Directory of the logs; created if it is missing.
        settings: Further settings of Spark, which win over the runtime's.
        java: A Java launched with the same master, directory and settings. None launches Java unless it runs already.

    Raises:
        RunError: R602 if Spark does not start because of Java, R611 if it does not start for another reason, R617
            if Java ends during the start, R659 if a standalone master refuses the driver.
    """
    _keep_quiet()
    _forget_arrays()
    output = directory / "spark.out"
    begin = output.stat().st_size if output.exists() else 0
    java = java or launch(master, directory, settings or {})
    chosen = java.settings if java else start_settings(master, directory, settings or {})
    partitions = {"spark.sql.shuffle.partitions": str(shuffle_partitions)}
    builder = SparkSession.Builder().master(retrying(master)).appName(application)
    for name, value in (partitions | chosen).items():
        builder = builder.config(name, value)
    watch = refused_by_master(master, directory / "spark.log", java.kill) if java is not None else nullcontext()
    try:
        with watch, needing_java(output), _connected(java) if java is not None else nullcontext():
            session = builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        check_java()  # R602: the most likely reason is a missing or old Java
        printed = output.read_bytes()[begin:] if output.exists() else b""
        last = printed.decode("utf-8", "replace").strip().splitlines()[-5:]
        _, reason, fix = described(causes_of(error))
        fix = fix or f"look into {output}"
        raise RunError.of(
            "R611", reason=f"Spark did not start: {reason}", fix=fix, traceback="\n".join(last)
        ) from error
    _keep_accumulators_quiet(session)
    return session


def begin_session(create: Callable[[], SparkSession]) -> Callable[[], SparkSession]:
    """Call `create_session` in a thread, because other parts of a run start at the same time.

    Returns:
        A function that waits for the session and returns it. It raises the errors of `create_session`.
    """
    session: Future[SparkSession] = Future()

    def begin() -> None:
        try:
            session.set_result(create())
        except BaseException as error:
            session.set_exception(error)

    Thread(target=begin, name="spark-start", daemon=True).start()
    return session.result


def _forget_arrays() -> None:
    """Remove PySpark's converters for arrays of NumPy, which would load NumPy and pandas (40 MB) at the first call."""
    array = (NumpyArrayConverter, NumpyScalarConverter)
    INPUT_CONVERTER[:] = [converter for converter in INPUT_CONVERTER if not isinstance(converter, array)]


def running_session() -> SparkSession | None:
    """Return the Spark session of this process; None if there is no session."""
    return SparkSession._instantiatedSession


@contextmanager
def _connected(java: VirtualMachine) -> Iterator[None]:
    """Let PySpark use a Java virtual machine that this process has launched. The block starts the session.

    PySpark finds it by environment variables. `SessionStart` in Java makes the start of the session shorter.
    """
    port, secret = java.wait()
    os.environ |= {SUBMITTED: str(port), SECRET: secret}
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        del os.environ[SUBMITTED], os.environ[SECRET]
    gateway.proc = java.process
    SparkContext._ensure_initialized(gateway=gateway)
    start = java_class(SparkContext, "query.SessionStart")
    start.begin()
    try:
        yield
    finally:
        start.end()


def open_cluster(settings: SparkConf) -> Iterator[Diagnostic]:
    """Yield a warning (R713) for each way in which others can run code on the cluster without a secret."""
    master = settings.get("spark.master") or ""
    if settings.get("spark.authenticate", "false") != "true":
        fix = "give the cluster a secret (docs/operators.md)"
        yield Diagnostic.of(
            "R713", what="Spark, which asks for no secret,", address=master, deed="run code there", fix=fix
        )
    for address in open_rest_servers(master):
        yield Diagnostic.of(
            "R713",
            what="Spark's REST server, which asks for no secret,",
            address=address,
            deed="run code there as Spark's user",
            fix="set spark.master.rest.enabled to false for the master, and start it again (docs/operators.md)",
        )


def _keep_quiet() -> None:
    """Keep Py4J and PySpark from printing errors that findings report: a JVM that ended (R617), wrong SQL (R716)."""
    of_py4j = logging.getLogger("py4j")
    of_py4j.addHandler(logging.NullHandler())
    of_py4j.propagate = False
    logging.getLogger().addFilter(_is_not_of_py4j)
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):  # prints errors of R716 with Java's stack
        PySparkLogger.getLogger(name).disabled = True


def _keep_accumulators_quiet(session: SparkSession) -> None:
    """Let PySpark's thread for accumulators log the end of the JVM, instead of printing a traceback.

    Also stop Spark without waiting for this thread, which checks only every half second (every second if it has a
    connection) whether it shall end.
    """
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None and "handle_error" not in vars(server):  # once for each session
        server.handle_error = lambda *_: _log.debug("a thread of PySpark failed", exc_info=True)
        server.shutdown = Thread(target=server.shutdown, name="accumulators-end", daemon=True).start


def stop_session(session: SparkSession) -> None:
    """Stop Spark. If Java has ended already, there is nothing to stop, and the query has reported this (R617)."""
    try:
        session.stop()
    except (Py4JError, ConnectionError) as error:
        if not is_end_of_java(error):
            raise


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Say whether a record of the root logger is not from Py4J, which uses the root logger for some records."""
    return "py4j" not in Path(record.pathname).parts
