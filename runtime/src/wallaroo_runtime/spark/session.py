"""Makes the Spark session: quiet, bound to this machine, with the settings that frames need."""

import logging
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.spark.failure import is_end_of_java, needing_java
from wallaroo_runtime.spark.java import check_java
from wallaroo_runtime.spark.temporary import temporary_directory
from wallaroo_runtime.system.class_archive import archive_option

TASK_FAILURES = 4
SUBMITTED = "PYSPARK_GATEWAY_PORT"  # set by spark-submit for the driver that it starts
_log = logging.getLogger(__name__)
STREAMING = "org.apache.spark.sql.execution.streaming"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "2g",  # a row may be a frame of 64 MiB
    "spark.task.maxFailures": str(TASK_FAILURES),
    "spark.speculation": "false",
    "spark.locality.wait": "0s",
    "spark.python.daemon.module": "wallaroo_runtime.spark.daemon",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "64",  # rows are frames
    "spark.sql.execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch": "16",
    "spark.sql.streaming.checkpointFileManagerClass": f"{STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.pollingDelay": "25ms",
    "spark.sql.streaming.stateStore.providerClass": f"{STREAMING}.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}
LOCAL_SETTINGS = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
# A peer at a port of Spark's must know the application's secret. Where Spark makes it and hands it to its
# executors, it is asked for; a standalone cluster has one of its own.
AUTHENTICATION = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.saslFallback": "false",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
}
SECRET_OF_SPARK = ("local", "yarn", "k8s://")
PRIVATE = 0o077  # umask
CONTAINERS = ("yarn", "k8s://")
# PySpark's processes and the worker itself, while the collector holds all of a worker near 1.25 times its cache.
MIB, BESIDE_STATE_MIB = 1024 * 1024, 512
# Paths of a container's directory are too long for Spark's sockets.
YARN_SETTINGS = {"spark.python.unix.domain.socket.enabled": "false"}
# Of HDFS and its like: the other class does not replace what the first attempt at a micro-batch has left there, and a
# name node that is started again should find its clients waiting. Six times six attempts, a second apart: connections
# and calls count by themselves.
REMOTE_FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{STREAMING}.checkpointing.FileContextBasedCheckpointFileManager"
    ),
    "spark.hadoop.dfs.client.retry.policy.enabled": "true",
    "spark.hadoop.dfs.client.retry.policy.spec": "1000,5",
}
# The JVM moves frames and computes little: with the small compiler and collector 24 million words of the word count
# took 25 CPU seconds in all processes, with Spark's defaults 30.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
LOG4J = """\
status = error
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {path}
appender.file.filePattern = {path}.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 8MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 2
"""


def memory_settings(master: str, cache_bytes: int) -> dict[str, str]:
    """Return what the container of an executor needs besides the JVM: Spark's own default knows of no worker.

    Example:
        >>> memory_settings("yarn", 512 * 1024 * 1024), memory_settings("spark://host:7077", 0)
        ({'spark.executor.memoryOverhead': '1152m'}, {})
    """
    if not master.startswith(CONTAINERS):
        return {}
    return {"spark.executor.memoryOverhead": f"{cache_bytes * 5 // 4 // MIB + BESIDE_STATE_MIB}m"}


def create_session(
    application: str, *, master: str, shuffle_partitions: int, directory: Path, settings: dict[str, str] | None = None
) -> SparkSession:
    """Start Spark for one application, or return the session that runs already.

    Nothing of Spark's own reaches the console; it goes to `spark.log` and `spark.out` in `directory`.

    Args:
        application: Name of the application.
        master: As spark-submit takes it; `local[N]` becomes `local[N,4]`, so that a task that was killed is repeated.
        shuffle_partitions: Of the plan.
        directory: Where the logs go; made when it is missing.
        settings: Further settings of Spark; they win over ours.

    Raises:
        RunError: R602 when Spark does not start for want of Java, R611 when it does not for another reason, R617
            when Java ends meanwhile.
    """
    directory.mkdir(parents=True, exist_ok=True)
    log4j = directory / "log4j2.properties"
    log4j.write_text(LOG4J.format(path=directory / "spark.log"), encoding="utf-8")
    settings = settings or {}
    temporary = temporary_directory()
    if SUBMITTED not in os.environ:  # else spark-submit has chosen the interpreters
        own = str(interpreter(temporary)) if is_local(master) else sys.executable
        os.environ["PYSPARK_PYTHON"] = settings.get("spark.pyspark.python", own)
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.Builder().master(retrying(master)).appName(application)
    chosen = (
        SETTINGS
        | _settings_of(master)
        | {
            "spark.sql.shuffle.partitions": str(shuffle_partitions),
            "spark.sql.warehouse.dir": str(temporary / "warehouse"),
            "spark.driver.extraJavaOptions": _java_options(log4j, temporary),
        }
    )
    for name, value in (chosen | settings).items():
        builder = builder.config(name, value)
    output = directory / "spark.out"
    begin = output.stat().st_size if output.exists() else 0
    try:
        with needing_java(output), _output_to(output):
            _start_java(chosen | settings)
            session = builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as error:
        check_java()  # the likeliest reason has a code of its own
        said = output.read_bytes()[begin:].decode("utf-8", "replace").strip().splitlines()[-5:]
        reason = f"Spark did not start: {_first_line(error)}"
        raise RunError.of("R611", reason=reason, fix=f"look into {output}", traceback="\n".join(said)) from error
    _keep_quiet(session)
    return session


def _java_options(log4j: Path, temporary: Path) -> str:
    kept = archive_option("spark", pyspark.__version__, os.path.dirname(pyspark.__file__))
    options = (kept, f"-Dlog4j2.configurationFile=file:{log4j}", f"-Djava.io.tmpdir={temporary}")
    return " ".join((JAVA_OPTIONS, *(f'"{option}"' for option in options if option)))


def interpreter(directory: Path) -> Path:
    """Write a program that starts this interpreter for Spark's processes, and return its path.

    Spark puts archives of PySpark's sources first into their PYTHONPATH, and Python compiles what it imports from an
    archive in each process again. Here they are to import what this process has imported.

    Args:
        directory: Where to write it.
    """
    given = os.environ.get("PYTHONPATH")
    path = "unset PYTHONPATH" if given is None else f"export PYTHONPATH={shlex.quote(given)}"
    program = directory / "python"
    program.write_text(f'#!/bin/sh\n{path}\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    program.chmod(0o700)
    return program


def _start_java(settings: dict[str, str]) -> None:
    """Start the Java virtual machine as a session of its own, unless it is there.

    A signal for the process group, as shells and `timeout` send it, must not end Spark before the query is stopped.
    """
    if SUBMITTED in os.environ or SparkContext._gateway is not None:
        return
    configuration = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    options = {"start_new_session": True, "umask": PRIVATE}
    gateway = launch_gateway(configuration, options)  # type: ignore[no-untyped-call]
    SparkContext._ensure_initialized(gateway=gateway)


def _first_line(error: Exception) -> str:
    """Return what an error says, without the JVM's stack trace."""
    text = str(error.java_exception.toString()) if isinstance(error, Py4JJavaError) else str(error)
    return text.strip().partition("\n")[0]


def _settings_of(master: str) -> dict[str, str]:
    secret = authentication(master)
    if is_local(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Blocks on disk hold messages. Remote executors have directories of their own.
        own = {name: str(temporary_directory()) for name in ("spark.local.dir", "spark.python.unix.domain.socket.dir")}
        return LOCAL_SETTINGS | secret | own
    return {"spark.executor.extraJavaOptions": JAVA_OPTIONS} | secret | (YARN_SETTINGS if master == "yarn" else {})


def authentication(master: str) -> dict[str, str]:
    """Return the settings by which Spark's processes take connections of one another only.

    Example:
        >>> authentication("local[2]")["spark.authenticate"], authentication("spark://host:7077")
        ('true', {})
    """
    return AUTHENTICATION if master.startswith(SECRET_OF_SPARK) else {}


def open_cluster(settings: SparkConf) -> Diagnostic | None:
    """Return the finding that Spark's processes ask nobody for a secret (R713); None when they do.

    Args:
        settings: Of the running Spark.
    """
    is_closed = settings.get("spark.authenticate", "false") == "true"
    return None if is_closed else Diagnostic.of("R713", master=settings.get("spark.master"))


def is_local(master: str | None) -> bool:
    """Say whether executors are on this machine, in the driver's own JVM."""
    return (master or "").startswith("local")


def retrying(master: str) -> str:
    """Return a local master that repeats failed tasks; others do by themselves.

    Example:
        >>> retrying("local"), retrying("local[*]"), retrying("local[2,1]"), retrying("spark://host:7077")
        ('local[1,4]', 'local[*,4]', 'local[2,1]', 'spark://host:7077')
    """
    if master == "local":
        master = "local[1]"
    return re.sub(r"^local\[([^],]+)\]$", rf"local[\1,{TASK_FAILURES}]", master)


def _keep_quiet(session: SparkSession) -> None:
    """Let threads of PySpark and Py4J log, not print, that the JVM is gone; the query's caller gets R617."""
    of_py4j = logging.getLogger("py4j")
    of_py4j.addHandler(logging.NullHandler())
    of_py4j.propagate = False
    logging.getLogger().addFilter(_is_not_of_py4j)
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: _log.debug("a thread of PySpark failed", exc_info=True)


def stop_session(session: SparkSession) -> None:
    """Stop Spark; a Java virtual machine that is gone has nothing left to stop, and its query has told so (R617)."""
    try:
        session.stop()
    except (Py4JError, ConnectionError) as error:
        if not is_end_of_java(error):
            raise


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    """Say whether a record of the root logger, which Py4J uses for some of its own, is another's."""
    return "py4j" not in Path(record.pathname).parts


@contextmanager
def _output_to(path: Path) -> Iterator[None]:
    """Let processes that are started inside write their output and errors to a file.

    The JVM inherits the two descriptors, and its notes about modules and log levels are for nobody's console.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = os.dup(1), os.dup(2)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for number in (*kept, descriptor):
            os.close(number)
